"use strict";

// What the reader has chosen, kept in the address so that it can be shared, and told to whoever draws it.
const Store = (() => {
  const KNOBS = ["cost", "share", "error"];
  const LARGEST = 1e12; // of costs and prices, as in Python; shares end at 1
  const most = (name) => (name === "share" || name === "error" ? 1 : LARGEST);

  function create(dataset) {
    const prices = dataset.prices;
    const defaults = Object.freeze({
      loss: dataset.losses[0].name,
      penalty: dataset.penalties[0].name,
      knob: "share", // which of the three was moved last; the others follow
      value: 0.1,
      review: prices.review, // null: nobody has said it, and there is no bill
      missed: prices.falseNegative,
      wrong: prices.falsePositive,
      label: null,
      show: "all",
      find: "",
      page: 0,
      everyNo: false,
    });

    const listeners = [];
    let state = { ...defaults, ...read(location.hash) };

    /** Only what is understood is taken over: an address can be mistyped, or come from another report. */
    function read(hash) {
      const given = new URLSearchParams(hash.replace(/^#/, ""));
      const found = {};
      const number = (name, least = 0) => {
        const value = given.get(name) === null || given.get(name) === "" ? NaN : Number(given.get(name));
        return value >= least && value <= most(name) ? value : null;
      };
      if (dataset.losses.some(({ name }) => name === given.get("loss"))) found.loss = given.get("loss");
      if (dataset.penalties.some(({ name }) => name === given.get("penalty"))) found.penalty = given.get("penalty");
      for (const knob of KNOBS) {
        if (number(knob) !== null) Object.assign(found, { knob, value: number(knob) });
      }
      for (const price of ["review", "missed", "wrong"]) {
        if (number(price) !== null) found[price] = number(price);
      }
      if (given.get("review") === "") found.review = null;
      if (number("label") !== null && number("label") < dataset.nLabels) found.label = Math.floor(number("label"));
      if (given.has("show")) found.show = given.get("show");
      if (given.has("find")) found.find = given.get("find");
      if (number("page", 1) !== null) found.page = Math.floor(number("page", 1)) - 1;
      if (given.get("no") === "all") found.everyNo = true;
      if ((found.loss ?? defaults.loss) === "rank" && found.knob === "error") {
        delete found.knob; // a ranking has no wrong labels to aim at
        delete found.value;
      }
      return found;
    }

    function written() {
      const parts = new URLSearchParams({ loss: state.loss, penalty: state.penalty, [state.knob]: state.value });
      for (const name of ["review", "missed", "wrong", "label", "show", "find"]) {
        if (state[name] !== defaults[name]) parts.set(name, state[name] ?? "");
      }
      if (state.page > 0) parts.set("page", state.page + 1);
      if (state.everyNo) parts.set("no", "all");
      return `#${parts}`;
    }

    // Browsers refuse an address that changes with every step of a slider. A frame in a notebook has no address.
    const remember = Elements.afterPause(250, () => {
      if (location.protocol !== "about:" && location.hash !== written()) history.replaceState(null, "", written());
    });

    function set(changes) {
      state = { ...state, ...changes };
      remember();
      for (const listener of listeners) listener(state);
    }

    addEventListener("hashchange", () => {
      // A link within the page, such as the one to the settings, is not a setting.
      if (!location.hash.includes("=") || location.hash === written()) return;
      set({ ...defaults, ...read(location.hash) });
    });

    return Object.freeze({ get: () => state, set, listen: (listener) => listeners.push(listener) });
  }

  return Object.freeze({ create, KNOBS, most });
})();
