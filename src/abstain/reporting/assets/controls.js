"use strict";

// Cost, share reviewed and error are three ways to say one thing: the one that is moved leads, the others follow.
const Controls = (() => {
  const { byId, make, setText } = Elements;
  const { percent, quantity } = Format;
  const STEPS = 400;
  const PRICES = ["review", "missed", "wrong"];

  const UNIT = {
    hamming: "a wrong label costs 1",
    rank: "a pair of labels in the wrong order costs 1",
    f1: "an instance with an F1 of 0 costs 1",
    jaccard: "an instance with a Jaccard index of 0 costs 1",
    subset: "an instance with any wrong answer costs 1",
  };
  const LOSS = {
    hamming: "Each wrong label counts.",
    rank: "The answer is an order: what is relevant should come first.",
    f1: "What counts is how well the labels answered yes agree with the relevant ones.",
    jaccard: "What counts is the overlap of the labels answered yes with the relevant ones.",
    subset: "One wrong answer spoils the whole instance.",
  };
  const PENALTY = {
    linear: "Asking costs the same for each label.",
    concave: "Further questions about one instance get cheaper, down to half.",
  };

  /** A step of 1, 2 or 5 times a power of ten, so that the values of a slider are short. */
  function roundStep(range) {
    const power = 10 ** Math.floor(Math.log10(range / STEPS));
    return power * [1, 2, 5, 10].find((factor) => factor * power >= range / STEPS * 0.999);
  }

  // Small costs matter most, so the slider is finer there: cost = largest · position².
  const costScale = (largest) => ({
    max: STEPS,
    step: 1,
    toSlider: (cost) => STEPS * Math.sqrt(Math.min(cost / largest, 1)),
    fromSlider: (position) => Number((largest * (position / STEPS) ** 2).toPrecision(3)),
    toField: (cost) => cost,
    fromField: (number) => number,
    fieldMax: largest,
  });

  // Shares are fractions inside and per cent outside.
  const percentScale = (largest) => {
    const step = roundStep(100 * largest);
    const max = step * Math.ceil(100 * largest / step - 1e-9);
    return {
      max,
      step,
      toSlider: (share) => 100 * share,
      fromSlider: (number) => Number((number / 100).toPrecision(6)),
      toField: (share) => 100 * share,
      fromField: (number) => number / 100,
      fieldMax: 100,
    };
  };

  const KNOBS = {
    cost: { title: "Cost of asking", unit: "" },
    share: { title: "Share reviewed", unit: "%" },
    error: { title: "Errors in answers", unit: "%" },
  };

  function knobRow(name, store, scaleOf) {
    const { title, unit } = KNOBS[name];
    const slider = make("input", { type: "range", id: `${name}-slider`, min: 0, "aria-describedby": `${name}-hint` });
    const field = make("input", {
      type: "number", id: `${name}-field`, min: 0, step: "any", inputmode: "decimal",
      "aria-label": unit ? `${title}, per cent` : title,
    });
    const hint = make("p", { class: "hint", id: `${name}-hint` });
    slider.addEventListener("input", () => {
      store.set({ knob: name, value: scaleOf(name).fromSlider(slider.valueAsNumber), page: 0 });
    });
    field.addEventListener("input", () => {
      const number = field.valueAsNumber;
      if (!Number.isFinite(number) || number < 0) return;
      store.set({ knob: name, value: scaleOf(name).fromField(number), page: 0 });
    });
    const row = make("div", { class: "knob", id: `${name}-knob` },
      make("label", { for: slider.id }, title),
      make("span", { class: "number" }, field, unit && make("span", { "aria-hidden": "true" }, unit)),
      slider, hint);
    return { row, slider, field, hint };
  }

  function create(dataset, store) {
    let scales = {};
    const rows = Object.fromEntries(Store.KNOBS.map((name) => [name, knobRow(name, store, (knob) => scales[knob])]));
    byId("knobs").append(...Store.KNOBS.map((name) => rows[name].row));
    byId("controls").addEventListener("submit", (event) => event.preventDefault());

    for (const [id, choices] of [["loss", dataset.losses], ["penalty", dataset.penalties]]) {
      Elements.fillSelect(byId(id), choices.map(({ name, title }) => ({ value: name, text: title })), store.get()[id]);
    }
    byId("loss").addEventListener("change", (event) => chooseLoss(event.target.value));
    byId("penalty").addEventListener("change", (event) => store.set({ penalty: event.target.value, page: 0 }));

    /** Costs of one loss mean nothing to another: what stays is the share, so that the effort stays the same. */
    function chooseLoss(loss) {
      const leads = store.get().knob !== "cost" && !(store.get().knob === "error" && loss === "rank");
      store.set({ loss, page: 0, ...(leads ? {} : { knob: "share", value: latestShare }) });
    }
    let latestShare = 0.1;

    for (const price of PRICES) {
      const field = byId(`price-${price}`);
      field.addEventListener("input", () => {
        const value = field.valueAsNumber;
        if (Number.isFinite(value) && value >= 0) store.set({ [price]: value });
        else if (price === "review" && field.value === "") store.set({ review: null });
      });
    }

    // A field is left alone while it is being typed in: "0." is on its way to "0.05". Numbers are shown rounded.
    function show(field, value) {
      const typed = field.valueAsNumber;
      const isTheSame = Number.isNaN(typed) || Math.abs(typed - value) <= 6e-4 * Math.abs(value);
      if (document.activeElement !== field || !isTheSame) field.value = value;
    }
    byId("controls").addEventListener("focusout", () => store.set({})); // what was not understood is replaced

    function knobs({ state, setting, full }) {
      const known = setting.wrong !== null;
      const rate = (of) => (of.answered === 0 ? 0 : (known ? of.wrong : of.expectedWrong) / of.answered);
      const largest = dataset.losses.find(({ name }) => name === state.loss).largestCost;
      const isRanking = state.loss === "rank";
      const reached = { cost: setting.cost, share: setting.share, error: isRanking ? 0 : rate(setting) };
      scales = {
        cost: costScale(largest),
        share: percentScale(1),
        error: percentScale(isRanking ? 1 : Math.max(rate(full), 0.001)),
      };
      rows.error.row.hidden = isRanking;
      for (const name of Store.KNOBS) {
        const { slider, field } = rows[name];
        const scale = scales[name];
        const value = state.knob === name ? state.value : reached[name];
        if (slider.max !== String(scale.max)) slider.max = scale.max;
        if (slider.step !== "any" && slider.step !== String(scale.step)) slider.step = scale.step;
        field.max = scale.fieldMax;
        slider.value = scale.toSlider(value);
        slider.style.setProperty("--filled", `${100 * slider.valueAsNumber / scale.max}%`);
        slider.setAttribute("aria-valuetext", name === "cost" ? quantity(value) : percent(value));
        show(field, String(Number(scale.toField(value).toPrecision(4))));
        rows[name].row.classList.toggle("leads", state.knob === name);
      }
      return reached;
    }

    function hints({ state }, reached) {
      setText(rows.cost.hint, `for one label, where ${UNIT[state.loss]}`);
      setText(rows.share.hint, state.knob === "share" && reached.share < state.value - 0.0005
        ? `at most this; it comes to ${percent(reached.share)}` : "the budget: at most this goes to a person");
      const target = state.knob === "error" ? state.value : reached.error;
      let note = dataset.hasTruth ? "the target: at most this much is wrong" : "expected, from the probabilities";
      const comesTo = percent(reached.error);
      if (reached.error > target + 1e-9) note = `not within reach: ${comesTo} is what is left at a cost of 0`;
      else if (reached.error < target - 0.0005) note = `at most this; it comes to ${comesTo}`;
      setText(rows.error.hint, note);
    }

    function render(view) {
      const { state, setting } = view;
      latestShare = Number(setting.share.toPrecision(3));
      byId("loss").value = state.loss;
      byId("penalty").value = state.penalty;
      setText(byId("meaning"), `${LOSS[state.loss]} ${PENALTY[state.penalty]}`);
      hints(view, knobs(view));
      byId("prices").hidden = state.loss === "rank";
      for (const price of PRICES) show(byId(`price-${price}`), state[price] === null ? "" : String(state[price]));
      byId("price-review").placeholder = quantity(Figures.reviewPrice(state, setting.cost));
    }

    return { render };
  }

  return Object.freeze({ create });
})();
