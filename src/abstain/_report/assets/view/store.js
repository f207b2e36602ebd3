"use strict";

// What the reader has chosen: kept in the address, so that it can be shared, and passed on to listeners.
const Store = (() => {
  const TARGETS = ["cost", "share", "error"];
  const PRICES = ["review", "falseNegative", "falsePositive"];

  function create(dataset) {
    const losses = dataset.losses.filter(({ isInPage }) => isInPage);
    const defaults = Object.freeze({
      loss: losses[0].name,
      penalty: dataset.penalties[0].name,
      target: "share", // the one of the three that was set last; the others follow
      value: 0.1,
      ...dataset.prices, // review is null if its price is not given; then there is no bill
      label: null,
      show: "all",
      find: "",
      page: 0,
      everyNo: false,
    });

    const largest = (name) => (name === "share" || name === "error" ? 1 : dataset.constants.largestPrice);
    const listeners = [];
    let state = { ...defaults, ...read(location.hash) };

    /** Ignores what it does not understand: an address can be mistyped, or come from another report. */
    function read(hash) {
      const given = new URLSearchParams(hash.replace(/^#/, ""));
      const found = {};
      const number = (name, least = 0) => {
        const value = given.get(name) === null || given.get(name) === "" ? NaN : Number(given.get(name));
        return value >= least && value <= largest(name) ? value : null;
      };
      if (losses.some(({ name }) => name === given.get("loss"))) found.loss = given.get("loss");
      if (dataset.penalties.some(({ name }) => name === given.get("penalty"))) found.penalty = given.get("penalty");
      for (const target of TARGETS) {
        if (number(target) !== null) Object.assign(found, { target, value: number(target) });
      }
      for (const price of PRICES) {
        if (number(price) !== null) found[price] = number(price);
      }
      if (given.get("review") === "") found.review = null;
      if (number("label") !== null && number("label") < dataset.nLabels) found.label = Math.floor(number("label"));
      if (given.has("show")) found.show = given.get("show");
      if (given.has("find")) found.find = given.get("find");
      if (number("page", 1) !== null) found.page = Math.floor(number("page", 1)) - 1;
      if (given.get("no") === "all") found.everyNo = true;
      const { givesRankings } = losses.find(({ name }) => name === (found.loss ?? defaults.loss));
      if (givesRankings && found.target === "error") {
        delete found.target; // rankings have no wrong labels, and so no error rate
        delete found.value;
      }
      return found;
    }

    function toHash() {
      const parts = new URLSearchParams({ loss: state.loss, penalty: state.penalty, [state.target]: state.value });
      for (const name of [...PRICES, "label", "show", "find"]) {
        if (state[name] !== defaults[name]) parts.set(name, state[name] ?? "");
      }
      if (state.page > 0) parts.set("page", state.page + 1);
      if (state.everyNo) parts.set("no", "all");
      return `#${parts}`;
    }

    // Browsers refuse an address that changes with every step of a slider. A frame in a notebook has no address.
    const updateAddress = Elements.afterPause(250, () => {
      if (location.protocol !== "about:" && location.hash !== toHash()) history.replaceState(null, "", toHash());
    });

    function set(changes) {
      state = { ...state, ...changes };
      updateAddress();
      for (const listener of listeners) listener(state);
    }

    addEventListener("hashchange", () => {
      // A link within the page, such as the one to the settings, is not a setting.
      if (!location.hash.includes("=") || location.hash === toHash()) return;
      set({ ...defaults, ...read(location.hash) });
    });

    return Object.freeze({ get: () => state, set, listen: (listener) => listeners.push(listener) });
  }

  return Object.freeze({ create, TARGETS, PRICES });
})();
