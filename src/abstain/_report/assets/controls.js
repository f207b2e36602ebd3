"use strict";

// Cost, share reviewed and error are three ways to say one thing: the one that is moved leads, the others follow.
const Controls = (() => {
  const { byId, make, setText } = Elements;
  const { percent, quantity } = Format;
  const STEPS = 400;
  const PRICES = ["review", "missed", "wrong"];

  const UNIT = {
    hamming: ({ missed, wrong }) => (missed === wrong
      ? `a wrong label costs ${quantity(wrong)}`
      : `a missed label costs ${quantity(missed)} and a wrong one ${quantity(wrong)}`),
    rank: () => "a pair of labels in the wrong order costs 1",
    f1: () => "an instance with an F1 of 0 costs 1",
    jaccard: () => "an instance with a Jaccard index of 0 costs 1",
    subset: () => "an instance with any wrong answer costs 1",
  };
  const LOSS = {
    hamming: "Each wrong label counts, at its price.",
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
      fromField: (number) => Number((number / 100).toPrecision(12)),
    };
  };

  const KNOBS = {
    cost: { title: "Cost of asking", unit: "", most: Store.most("cost") },
    share: { title: "Share reviewed", unit: "%", most: 100 },
    error: { title: "Errors in answers", unit: "%", most: 100 },
  };

  function knobRow(name, store, scaleOf) {
    const { title, unit, most } = KNOBS[name];
    const slider = make("input", { type: "range", id: `${name}-slider`, min: 0, "aria-describedby": `${name}-hint` });
    const field = make("input", {
      type: "text", id: `${name}-field`, inputmode: "decimal",
      "aria-label": unit ? `${title}, per cent` : title, "aria-describedby": `${name}-hint ${name}-mistake`,
    });
    const hint = make("p", { class: "hint", id: `${name}-hint` });
    const mistake = make("p", { class: "mistake", id: `${name}-mistake`, "aria-live": "polite" });
    slider.addEventListener("input", () => {
      store.set({ knob: name, value: scaleOf(name).fromSlider(slider.valueAsNumber), page: 0 });
    });
    Entry.watch(field, mistake, {
      name: title,
      most,
      take: (number) => store.set({ knob: name, value: scaleOf(name).fromField(number), page: 0 }),
      hold: () => ({ knob: store.get().knob, value: store.get().value }),
      restore: store.set,
    });
    const row = make("div", { class: "knob", id: `${name}-knob` },
      make("label", { for: slider.id }, title),
      make("span", { class: "number" }, field, unit && make("span", { "aria-hidden": "true" }, unit)),
      slider, mistake, hint);
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
      Entry.watch(field, byId("price-mistake"), {
        name: field.labels[0].textContent,
        most: Store.most(price),
        mayBeEmpty: price === "review",
        take: (value) => store.set({ [price]: value, page: 0 }),
        hold: () => ({ [price]: store.get()[price] }),
        restore: store.set,
      });
    }
    // What was said of one entry is no longer of interest with the next, wherever that is.
    const mistakes = [...byId("controls").querySelectorAll(".mistake")];
    byId("controls").addEventListener("input", () => mistakes.forEach((mistake) => setText(mistake, "")), true);
    byId("controls").addEventListener("focusout", () => store.set({})); // numbers are shown rounded again

    function knobs({ state, setting, full, problem }) {
      const known = setting.wrong !== null;
      const rate = (of) => (of.answered === 0 ? 0 : (known ? of.wrong : of.expectedWrong) / of.answered);
      const isRanking = state.loss === "rank";
      const reached = { cost: setting.cost, share: setting.share, error: isRanking ? 0 : rate(setting) };
      scales = {
        cost: costScale(problem.largestCost),
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
        slider.value = scale.toSlider(value);
        slider.style.setProperty("--filled", `${100 * slider.valueAsNumber / scale.max}%`);
        slider.setAttribute("aria-valuetext", name === "cost" ? quantity(value) : percent(value));
        Entry.show(field, String(Number(scale.toField(value).toPrecision(4))));
        rows[name].row.classList.toggle("leads", state.knob === name);
      }
      return reached;
    }

    function hints({ state }, reached) {
      setText(rows.cost.hint, `for one label, where ${UNIT[state.loss](state)}`);
      setText(rows.share.hint, state.knob === "share" && reached.share < state.value - 0.0005
        ? `at most this; it comes to ${percent(reached.share)}` : "the budget: at most this goes to a person");
      const target = state.knob === "error" ? state.value : reached.error;
      let note = dataset.hasTruth ? "the target: at most this much is wrong" : "expected, from the probabilities";
      const comesTo = percent(reached.error);
      const isMissed = reached.error > target + 1e-9;
      if (isMissed) note = `not within reach: at a cost of 0 it still comes to ${comesTo}`;
      else if (reached.error < target - 0.0005) note = `at most this; it comes to ${comesTo}`;
      rows.error.hint.classList.toggle("warning", isMissed);
      setText(rows.error.hint, note);
    }

    function prices({ state }) {
      byId("prices").hidden = state.loss === "rank";
      for (const price of PRICES) Entry.show(byId(`price-${price}`), state[price] === null ? "" : String(state[price]));
      const { title } = dataset.losses.find(({ name }) => name === state.loss);
      setText(byId("price-meaning"), state.loss === "hamming"
        ? "What a missed label and a wrong one cost decides what is answered, and how."
        : `They only make the bill: ${title} decides by its own measure, whatever they are.`);
    }

    function render(view) {
      const { state, setting } = view;
      latestShare = Number(setting.share.toPrecision(3));
      byId("loss").value = state.loss;
      byId("penalty").value = state.penalty;
      setText(byId("meaning"), `${LOSS[state.loss]} ${PENALTY[state.penalty]}`);
      hints(view, knobs(view));
      prices(view);
    }

    return { render };
  }

  return Object.freeze({ create });
})();
