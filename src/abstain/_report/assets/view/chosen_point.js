"use strict";

// The dot of the chosen setting is an element above its chart: moving it is cheap, while plotly would redraw all axes.
const ChosenPoint = (() => {
  const { make } = Elements;

  /** A dot on the chart in `place`, in its subplot "xy" or "xy2". */
  function create(place, subplot, colour) {
    const element = make("span", { class: "dot", hidden: true });
    element.style.backgroundColor = `var(--${colour})`;
    place.parentElement.append(element);
    const vertical = subplot === "xy2" ? "yaxis2" : "yaxis";
    let point = null;

    /** Places the dot: the axes change with the data, and with the width of the window. */
    function show() {
      const area = place.querySelector(`.nsewdrag[data-subplot="${subplot}"]`);
      element.hidden = point === null || area === null;
      if (element.hidden) return;
      const [left, top, width, height] = ["x", "y", "width", "height"].map((name) => Number(area.getAttribute(name)));
      const share = (value, [from, to]) => Math.min(Math.max((value - from) / (to - from), 0), 1);
      const x = left + width * share(point.x, place.layout.xaxis.range);
      const y = top + height * (1 - share(point.y, place.layout[vertical].range));
      element.style.transform = `translate(${x}px, ${y}px)`;
    }

    return {
      show,
      moveTo(x, y) {
        point = y === null ? null : { x, y };
        show();
      },
    };
  }

  return Object.freeze({ create });
})();
