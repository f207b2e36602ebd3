"use strict";

// How often a label is relevant, given its probability. Names stay out of the chart: it would read tags in them.
const Reliability = (() => {
  const { byId, setText } = Elements;
  const { quantity } = Format;

  function create(dataset, store) {
    const place = byId("reliability-chart");
    const select = byId("reliability-label");
    if (!dataset.reliability) {
      select.parentElement.hidden = true;
      place.hidden = true;
      setText(byId("reliability-note"), "Only the truth could say: this report was made without it.");
      return { render() {}, redraw() {} };
    }

    const choice = LabelSelect.create(select, dataset, store, "all labels");
    let drawn; // the label on the screen

    function draw(label) {
      const { pooled, labels } = dataset.reliability;
      const { predicted, observed, count: sizes, low, high } = label === null ? pooled : labels[label];
      const up = high.map((value, i) => value - observed[i]);
      const down = low.map((value, i) => observed[i] - value);
      const grey = Theme.colour("quiet");
      Plots.draw(place, [
        {
          type: "scatter", mode: "lines", x: [0, 1], y: [0, 1], hoverinfo: "skip",
          line: { color: grey, width: 1, dash: "dash" },
        },
        {
          type: "scatter", mode: "lines+markers", x: [...predicted], y: [...observed], customdata: [...sizes],
          line: { color: Theme.colour("blue"), width: 2 }, marker: { size: 7 },
          error_y: {
            type: "data", symmetric: false, array: up, arrayminus: down,
            color: Theme.colour("blue"), thickness: 1, width: 3,
          },
          hovertemplate: "given %{x:.2f}, found %{y:.2f}<br>%{customdata} cases<extra></extra>",
        },
      ], Plots.layout({
        showlegend: false,
        hovermode: "closest",
        xaxis: Plots.axis("probability given", { range: [-0.02, 1.02], nticks: 6 }),
        yaxis: Plots.axis("share that is relevant", { range: [-0.02, 1.02], nticks: 6 }),
      }));
    }

    function describe(label) {
      const mean = (values) => values.reduce((sum, value) => sum + (value ?? 0), 0) / values.length;
      const error = label === null
        ? mean(dataset.labelFacts.map(({ calibrationError }) => calibrationError))
        : dataset.labelFacts[label].calibrationError;
      setText(byId("reliability-note"),
        `On the dashed line probabilities are what they claim. They are off by ${quantity(error)} on average`
        + `${label === null ? ", label by label" : ""}. Each dot stands for a tenth of the scale, or for more of it where `
        + "there are few cases; bars are 95 % intervals.");
    }

    function render({ state }) {
      if (drawn === state.label) return;
      if (!Plots.areReady()) return;
      drawn = state.label;
      choice.show(state.label);
      describe(state.label);
      draw(state.label);
    }

    return { render, redraw: () => { if (drawn !== undefined) draw(drawn); } };
  }

  return Object.freeze({ create });
})();
