"use strict";

// What all charts share: quiet axes, colours of the style sheet, no tools, no gestures that catch a scrolling thumb.
const Plots = (() => {
  const CONFIG = Object.freeze({ displayModeBar: false, responsive: true, scrollZoom: false, doubleClick: false });

  const axis = (title, more = {}) => ({
    title: { text: title, standoff: 8 },
    fixedrange: true,
    zeroline: false,
    showline: true,
    linecolor: Theme.colour("line"),
    gridcolor: Theme.colour("grid"),
    automargin: true,
    ...more,
  });

  const layout = (more) => ({
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: Theme.colour("quiet") },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 48, r: 12, t: 8, b: 40 },
    dragmode: false,
    hovermode: "x",
    hoverlabel: {
      bgcolor: Theme.colour("raised"), bordercolor: Theme.colour("line"), font: { color: Theme.colour("text") },
    },
    showlegend: true,
    legend: {
      orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { color: Theme.colour("text") },
      itemclick: false, itemdoubleclick: false,
    },
    ...more,
  });

  const line = (name, x, y, colour, more = {}) => ({
    type: "scatter", mode: "lines", name, x, y, line: { color: Theme.colour(colour), width: 2 }, ...more,
  });

  let loading = null;
  const areReady = () => typeof Plotly !== "undefined";

  /** The library comes asleep, because waking it takes a second: everything else is on the screen before that. */
  function load() {
    loading ??= new Promise((resolve) => setTimeout(resolve, 50)).then(() => {
      if (areReady()) return;
      document.body.append(Elements.make("script", {}, Elements.byId("plotly").textContent));
    });
    return loading;
  }

  const draw = (place, traces, arrangement) => Plotly.react(place, traces, arrangement, CONFIG);

  return Object.freeze({ load, areReady, axis, layout, line, draw });
})();
