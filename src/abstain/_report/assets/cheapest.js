"use strict";

// The setting of least bill. For Hamming theory knows it; for other losses it is looked for.
const Cheapest = (() => {
  const { byId, setText } = Elements;
  const { plural, quantity } = Format;
  const ROUNDS = 2; // of looking closer, at so many costs each
  const BETWEEN = 9;
  const SLICE = 20; // milliseconds of work before the page may answer its reader

  const least = (points) => points.reduce((best, point) => (point.bill < best.bill ? point : best));

  /** Looks closer around the best point of a curve; null once nobody wants it any more. */
  async function refine(curve, pointAt, isWanted) {
    let points = curve;
    let since = performance.now();
    for (let round = 0; round < ROUNDS; round++) {
      const at = points.indexOf(least(points));
      const around = points.slice(Math.max(at - 1, 0), at + 2);
      const [low, high] = [around[0].cost, around[around.length - 1].cost];
      for (let k = 1; k <= BETWEEN; k++) {
        around.push(pointAt(Number((low + (high - low) * (k / (BETWEEN + 1))).toPrecision(6))));
        if (performance.now() - since < SLICE) continue;
        await new Promise((resume) => setTimeout(resume));
        if (!isWanted()) return null;
        since = performance.now();
      }
      points = around.sort((a, b) => a.cost - b.cost);
    }
    return least(points);
  }

  function create(store) {
    const button = byId("cheapest");
    const note = byId("cheapest-note");
    let target = null; // what the button sets
    let found = { key: "", best: null }; // the last one known or looked for
    let latest = null;
    button.addEventListener("click", () => store.set({ ...target, knob: "cost", page: 0 }));

    function show(text, setting = null) {
      target = setting;
      button.disabled = setting === null;
      setText(note, text);
    }

    /** A review that costs r pays wherever answering is expected to cost more than r: no setting can do better. */
    function know({ state, setting, problem, bill }) {
      const key = JSON.stringify([state.review, state.missed, state.wrong]);
      if (found.key !== key) found = { key, best: Figures.billOf(state, problem.point("linear", state.review)) };
      const { expected, realized } = found.best;
      const isHere = setting.penalty === "linear" && setting.cost === state.review;
      const where = `a linear penalty at the price of a review, ${quantity(state.review)}`;
      const first = isHere ? `This is the cheapest setting: ${where}.` : `The cheapest setting is ${where}.`;
      const promise = `No other is expected to cost less than its ${quantity(expected)}`;
      const seen = realized === null ? "." : `; with the truth it comes to ${quantity(realized)}.`;
      const isBeaten = realized !== null && bill.here < realized;
      const luck = isBeaten
        ? ` On these instances the current one comes to ${quantity(bill.here)}: chance, or probabilities that are off.`
        : "";
      show(`${first} ${promise}${seen}${luck}`, { penalty: "linear", value: state.review });
    }

    async function look({ state, problem, curve }, key) {
      const total = (point) => {
        const { expected, realized } = Figures.billOf(state, point);
        return { cost: point.cost, bill: realized ?? expected };
      };
      found = { key, best: null };
      const best = await refine(
        curve.map(total), (cost) => total(problem.point(state.penalty, cost)), () => found.key === key);
      if (best === null || found.key !== key) return;
      found = { key, best };
      tell();
    }

    function tell() {
      const { setting, bill, dataset } = latest;
      if (found.best === null) return show("Looking for the cheapest setting …");
      // What the reader has found counts too.
      if (bill.here < found.best.bill) found.best = { cost: setting.cost, bill: bill.here };
      const { cost, bill: lowest } = found.best;
      const first = bill.here === lowest
        ? `No setting of this penalty is found to cost less than this one, ${quantity(lowest)},`
        : `At a cost of ${quantity(cost)} the bill is the least found, ${quantity(lowest)},`;
      const instances = dataset.nInstances === 1 ? "this instance" : `these ${plural(dataset.nInstances, "instance")}`;
      const value = bill.here === lowest ? setting.cost : cost;
      return show(`${first} on ${instances}; expect a little more on new ones.`, { value });
    }

    function render(view) {
      latest = view;
      const { state, curve, bill } = view;
      if (bill === null) {
        found = { key: "", best: null };
        show("Say what a review costs, and the page finds the cheapest setting.");
      } else if (state.loss === "hamming") {
        know(view);
      } else if (curve === null) {
        found = { key: "", best: null };
        show("Looking for the cheapest setting …");
      } else {
        const key = JSON.stringify([state.loss, state.penalty, state.review, state.missed, state.wrong]);
        if (found.key === key) tell();
        else {
          show("Looking for the cheapest setting …");
          look(view, key);
        }
      }
    }

    return { render };
  }

  return Object.freeze({ create });
})();
