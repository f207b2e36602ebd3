"use strict";

// The setting with the lowest bill. If the prices are parameters of the loss it is known; otherwise it is searched for.
const LowestBill = (() => {
  const { byId, setText } = Elements;
  const { plural, quantity } = Format;
  const N_ROUNDS = 2; // of refining the search
  const N_COSTS = 9; // tried in each round
  const MILLISECONDS_AT_ONCE = 20; // of work, before the browser may handle events

  const lowest = (points) => points.reduce((best, point) => (point.bill < best.bill ? point : best));

  /** Searches around the best point of a curve; gives up, with null, once the result is not wanted any more. */
  async function refine(curve, pointAt, isWanted) {
    let points = curve;
    let since = performance.now();
    for (let round = 0; round < N_ROUNDS; round++) {
      const at = points.indexOf(lowest(points));
      const around = points.slice(Math.max(at - 1, 0), at + 2);
      const [low, high] = [around[0].cost, around[around.length - 1].cost];
      for (let k = 1; k <= N_COSTS; k++) {
        around.push(pointAt(Number((low + (high - low) * (k / (N_COSTS + 1))).toPrecision(6))));
        if (performance.now() - since < MILLISECONDS_AT_ONCE) continue;
        await new Promise((resume) => setTimeout(resume));
        if (!isWanted()) return null;
        since = performance.now();
      }
      points = around.sort((a, b) => a.cost - b.cost);
    }
    return lowest(points);
  }

  function create(store) {
    const button = byId("lowest-bill");
    const note = byId("lowest-bill-note");
    let changes = null; // what a click changes
    let found = { key: "", best: null }; // the last result, and the prices and setting it is for
    let latest = null;
    button.addEventListener("click", () => store.set({ ...changes, target: "cost", page: 0 }));

    function show(text, newChanges = null) {
      changes = newChanges;
      button.disabled = changes === null;
      setText(note, text);
    }

    /** A review that costs r pays wherever answering is expected to cost more than r: no setting can do better. */
    function showKnown({ state, setting, problem, bill }) {
      const key = JSON.stringify([state.review, state.falseNegative, state.falsePositive]);
      if (found.key !== key) found = { key, best: Bill.of(state, problem.point("linear", state.review)) };
      const { expected, realized } = found.best;
      const isHere = setting.penalty === "linear" && setting.cost === state.review;
      const where = `a linear penalty at the price of a review, ${quantity(state.review)}`;
      const first = isHere ? `This is the cheapest setting: ${where}.` : `The cheapest setting is ${where}.`;
      const bound = `No other is expected to cost less than its ${quantity(expected)}`;
      const comesTo = realized === null ? "." : `; with the truth it comes to ${quantity(realized)}.`;
      const isBeaten = realized !== null && bill.here < realized;
      const chance = isBeaten
        ? ` On these instances the current one comes to ${quantity(bill.here)}: chance, or probabilities that are off.`
        : "";
      show(`${first} ${bound}${comesTo}${chance}`, { penalty: "linear", value: state.review });
    }

    async function search({ state, problem, curve }, key) {
      const total = (point) => {
        const { expected, realized } = Bill.of(state, point);
        return { cost: point.cost, bill: realized ?? expected };
      };
      found = { key, best: null };
      const best = await refine(
        curve.map(total), (cost) => total(problem.point(state.penalty, cost)), () => found.key === key);
      if (best === null || found.key !== key) return;
      found = { key, best };
      showFound();
    }

    function showFound() {
      const { setting, bill, dataset } = latest;
      if (found.best === null) return show("Looking for the cheapest setting …");
      // The reader may have found a better setting.
      if (bill.here < found.best.bill) found.best = { cost: setting.cost, bill: bill.here };
      const { cost, bill: lowestBill } = found.best;
      const first = bill.here === lowestBill
        ? `No setting of this penalty is found to cost less than this one, ${quantity(lowestBill)},`
        : `At a cost of ${quantity(cost)} the bill is the least found, ${quantity(lowestBill)},`;
      const instances = dataset.nInstances === 1 ? "this instance" : `these ${plural(dataset.nInstances, "instance")}`;
      const value = bill.here === lowestBill ? setting.cost : cost;
      return show(`${first} on ${instances}; expect a little more on new ones.`, { value });
    }

    function render(view) {
      latest = view;
      const { state, curve, bill, loss } = view;
      if (bill === null) {
        found = { key: "", best: null };
        show("Say what a review costs, and the page finds the cheapest setting.");
      } else if (loss.hasPrices) {
        showKnown(view);
      } else if (curve === null) {
        found = { key: "", best: null };
        show("Looking for the cheapest setting …");
      } else {
        const key = JSON.stringify([loss.name, state.penalty, state.review, state.falseNegative, state.falsePositive]);
        if (found.key === key) showFound();
        else {
          show("Looking for the cheapest setting …");
          search(view, key);
        }
      }
    }

    return { render };
  }

  return Object.freeze({ create });
})();
