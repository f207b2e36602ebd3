"use strict";

// The setting of least bill, among the points of the curve.
const Cheapest = (() => {
  const { byId, setText } = Elements;
  const { quantity } = Format;

  function find(curve, { review, missed, wrong }) {
    const total = (point) => review * point.reviewed + missed * point.missed + wrong * point.falseAlarms;
    return curve
      .map((point) => ({ cost: point.cost, bill: total(point) }))
      .reduce((best, point) => (point.bill < best.bill ? point : best));
  }

  function create(store) {
    const button = byId("cheapest");
    let best = null;
    button.addEventListener("click", () => store.set({ knob: "cost", value: best.cost, page: 0 }));

    function render({ state, curve }) {
      const isKnown = state.review !== null && curve !== null && state.loss !== "rank";
      best = isKnown ? find(curve, state) : null;
      button.disabled = best === null;
      setText(byId("cheapest-note"), best === null
        ? "Say what a review costs, and the page finds the cheapest setting."
        : `At a cost of ${quantity(best.cost)} the bill is least: ${quantity(best.bill)}.`);
    }

    return { render };
  }

  return Object.freeze({ create });
})();
