"use strict";

// The settings. Cost, share reviewed and error rate determine each other: the reader sets one, the others follow.
const Controls = (() => {
  const { byId, make, setText } = Elements;
  const { percent, quantity } = Format;
  const SLIDER_STEPS = 400;
  const PRICE_FIELDS = {
    review: "price-review",
    falseNegative: "price-false-negative",
    falsePositive: "price-false-positive",
  };

  /** What costs 1, or as much as the prices say, as a clause. */
  function unitOf(loss, { falseNegative, falsePositive }) {
    if (!loss.hasPrices) return loss.unitDescription;
    return falseNegative === falsePositive
      ? `a wrong label costs ${quantity(falseNegative)}`
      : `a false negative costs ${quantity(falseNegative)} and a false positive ${quantity(falsePositive)}`;
  }

  /** A step of 1, 2 or 5 times a power of ten, so that the values of a slider are short. */
  function roundStep(range) {
    const power = 10 ** Math.floor(Math.log10(range / SLIDER_STEPS));
    return power * [1, 2, 5, 10].find((factor) => factor * power >= range / SLIDER_STEPS * 0.999);
  }

  // The slider is finer at small costs, where most decisions change: cost = largest · position².
  const costScale = (largest) => ({
    max: SLIDER_STEPS,
    step: 1,
    toSlider: (cost) => SLIDER_STEPS * Math.sqrt(Math.min(cost / largest, 1)),
    fromSlider: (position) => Number((largest * (position / SLIDER_STEPS) ** 2).toPrecision(3)),
    toField: (cost) => cost,
    fromField: (number) => number,
  });

  // Shares are fractions in the state and per cent on the screen.
  const percentScale = (largest) => {
    const step = roundStep(100 * largest);
    const max = step * Math.ceil(100 * largest / step - 1e-9);
    return {
      max,
      step,
      toSlider: (share) => 100 * share,
      fromSlider: (number) => Number((number / 100).toPrecision(6)),
      toField: (share) => 100 * share,
      fromField: (number) => Number((number / 100).toPrecision(12)),
    };
  };

  const targets = ({ largestPrice }) => ({
    cost: { title: "Cost of asking", unit: "", max: largestPrice },
    share: { title: "Share reviewed", unit: "%", max: 100 },
    error: { title: "Errors in answers", unit: "%", max: 100 },
  });

  /** A slider and a field for the cost, the share or the error rate. */
  function targetRow(name, { title, unit, max }, store, scaleOf) {
    const slider = make("input", { type: "range", id: `${name}-slider`, min: 0, "aria-describedby": `${name}-hint` });
    const field = make("input", {
      type: "text", id: `${name}-field`, inputmode: "decimal",
      "aria-label": unit ? `${title}, per cent` : title, "aria-describedby": `${name}-hint ${name}-mistake`,
    });
    const hint = make("p", { class: "hint", id: `${name}-hint` });
    const mistake = make("p", { class: "mistake", id: `${name}-mistake`, "aria-live": "polite" });
    slider.addEventListener("input", () => {
      store.set({ target: name, value: scaleOf(name).fromSlider(slider.valueAsNumber), page: 0 });
    });
    NumberField.listen(field, mistake, {
      name: title,
      max,
      accept: (number) => store.set({ target: name, value: scaleOf(name).fromField(number), page: 0 }),
      getState: () => ({ target: store.get().target, value: store.get().value }),
      restore: store.set,
    });
    const row = make("div", { class: "target", id: `${name}-target` },
      make("label", { for: slider.id }, title),
      make("span", { class: "number" }, field, unit && make("span", { "aria-hidden": "true" }, unit)),
      slider, mistake, hint);
    return { row, slider, field, hint };
  }

  function create(dataset, store) {
    let scales = {};
    const described = targets(dataset.constants);
    const makeRow = (name) => [name, targetRow(name, described[name], store, (target) => scales[target])];
    const rows = Object.fromEntries(Store.TARGETS.map(makeRow));
    byId("targets").append(...Store.TARGETS.map((name) => rows[name].row));
    byId("controls").addEventListener("submit", (event) => event.preventDefault());

    const lossOption = ({ name, title, isInPage }) =>
      ({ value: name, text: isInPage ? title : `${title} (not in the page)`, disabled: !isInPage });
    const penaltyOption = ({ name, title }) => ({ value: name, text: title });
    Elements.fillSelect(byId("loss"), dataset.losses.map(lossOption), store.get().loss);
    Elements.fillSelect(byId("penalty"), dataset.penalties.map(penaltyOption), store.get().penalty);
    byId("loss").addEventListener("change", (event) => chooseLoss(event.target.value));
    byId("penalty").addEventListener("change", (event) => store.set({ penalty: event.target.value, page: 0 }));

    /** Costs mean something else for each loss, so another loss keeps the share reviewed instead of the cost. */
    function chooseLoss(name) {
      const { target } = store.get();
      const { givesRankings } = dataset.losses.find((loss) => loss.name === name);
      const keepsTarget = target === "share" || (target === "error" && !givesRankings);
      store.set({ loss: name, page: 0, ...(keepsTarget ? {} : { target: "share", value: latestShare }) });
    }
    let latestShare = 0.1;

    for (const price of Store.PRICES) {
      const field = byId(PRICE_FIELDS[price]);
      NumberField.listen(field, byId("price-mistake"), {
        name: field.labels[0].textContent,
        max: dataset.constants.largestPrice,
        mayBeEmpty: price === "review",
        accept: (value) => store.set({ [price]: value, page: 0 }),
        getState: () => ({ [price]: store.get()[price] }),
        restore: store.set,
      });
    }
    // A new entry in any field clears the messages about earlier ones.
    const mistakes = [...byId("controls").querySelectorAll(".mistake")];
    byId("controls").addEventListener("input", () => mistakes.forEach((mistake) => setText(mistake, "")), true);
    byId("controls").addEventListener("focusout", () => store.set({})); // numbers are shown rounded again

    /** Shows cost, share and error rate, and returns the values that are reached. */
    function showTargets({ state, setting, full, problem, loss: { givesRankings } }) {
      const known = setting.wrong !== null;
      const rate = (of) => (of.answered === 0 ? 0 : (known ? of.wrong : of.expectedWrong) / of.answered);
      const reached = { cost: setting.cost, share: setting.share, error: givesRankings ? 0 : rate(setting) };
      scales = {
        cost: costScale(problem.largestCost),
        share: percentScale(1),
        error: percentScale(givesRankings ? 1 : Math.max(rate(full), 0.001)),
      };
      rows.error.row.hidden = givesRankings;
      for (const name of Store.TARGETS) {
        const { slider, field } = rows[name];
        const scale = scales[name];
        const value = state.target === name ? state.value : reached[name];
        if (slider.max !== String(scale.max)) slider.max = scale.max;
        if (slider.step !== "any" && slider.step !== String(scale.step)) slider.step = scale.step;
        slider.value = scale.toSlider(value);
        slider.style.setProperty("--filled", `${100 * slider.valueAsNumber / scale.max}%`);
        slider.setAttribute("aria-valuetext", name === "cost" ? quantity(value) : percent(value));
        NumberField.show(field, String(Number(scale.toField(value).toPrecision(4))));
        rows[name].row.classList.toggle("chosen", state.target === name);
      }
      return reached;
    }

    function showHints({ state, loss }, reached) {
      const unit = unitOf(loss, state);
      setText(rows.cost.hint, unit === "" ? "for one label" : `for one label, where ${unit}`);
      setText(rows.share.hint, state.target === "share" && reached.share < state.value - 0.0005
        ? `at most this; it comes to ${percent(reached.share)}` : "the budget: at most this goes to a person");
      const target = state.target === "error" ? state.value : reached.error;
      let note = dataset.hasTruth ? "the target: at most this much is wrong" : "expected, from the probabilities";
      const comesTo = percent(reached.error);
      const isMissed = reached.error > target + 1e-9;
      if (isMissed) note = `not within reach: at a cost of 0 it still comes to ${comesTo}`;
      else if (reached.error < target - 0.0005) note = `at most this; it comes to ${comesTo}`;
      rows.error.hint.classList.toggle("warning", isMissed);
      setText(rows.error.hint, note);
    }

    function showPrices({ state, loss }) {
      byId("prices").hidden = loss.givesRankings;
      for (const price of Store.PRICES) {
        NumberField.show(byId(PRICE_FIELDS[price]), state[price] === null ? "" : String(state[price]));
      }
      setText(byId("price-meaning"), loss.hasPrices
        ? "What these errors cost decides what is answered, and how."
        : `Prices only make the bill: ${loss.title} decides by its own measure, whatever they are.`);
    }

    function render(view) {
      const { state, setting, loss } = view;
      latestShare = Number(setting.share.toPrecision(3));
      byId("loss").value = state.loss;
      byId("penalty").value = state.penalty;
      const { description } = dataset.penalties.find(({ name }) => name === state.penalty);
      setText(byId("meaning"), `${loss.description} ${description}`.trim());
      showHints(view, showTargets(view));
      showPrices(view);
    }

    return { render };
  }

  return Object.freeze({ create });
})();
