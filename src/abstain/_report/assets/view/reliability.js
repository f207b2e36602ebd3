"use strict";

// How often a label is relevant, given its probability. Names stay out of the chart: it would read tags in them.
const Reliability = (() => {
  const { byId, setText } = Elements;
  const { quantity } = Format;
  const TICKS = [0.0001, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999];
  const SMALLEST_SHARE = 1e-5; // that the axes show

  const logOdds = (share) => Math.log(share / (1 - share));

  /** The limits of both axes, in log-odds: all shares but those of 0 and 1 are inside, and so are 0.1 and 0.9. */
  function rangeOf(shares) {
    const inside = shares.filter((share) => share > SMALLEST_SHARE && share < 1 - SMALLEST_SHARE);
    return [logOdds(Math.min(0.1, ...inside) / 2), logOdds((1 + Math.max(0.9, ...inside)) / 2)];
  }

  function create(dataset, store) {
    const chart = byId("reliability-chart");
    const select = byId("reliability-label");
    if (!dataset.reliability) {
      select.parentElement.hidden = true;
      chart.hidden = true;
      setText(byId("reliability-note"), "Only the truth could say: this report was made without it.");
      return { render() {}, redraw() {} };
    }

    const choice = LabelSelect.create(select, dataset, store, "all labels");
    let drawn; // the label on the screen

    function draw(label) {
      const { pooled, labels } = dataset.reliability;
      const { predicted, observed, count, low, high } = label === null ? pooled : labels[label];
      const range = rangeOf([...predicted, ...observed]);
      const place = (share) => Math.min(Math.max(logOdds(share), range[0]), range[1]); // shares of 0 and 1: at the edge
      const y = observed.map(place);
      const axis = (title) => Plots.axis(title, {
        range, tickvals: TICKS.map(logOdds), ticktext: TICKS.map(String), tickangle: 0, tickfont: { size: 10 },
      });
      Plots.draw(chart, [
        {
          type: "scatter", mode: "lines", x: range, y: range, hoverinfo: "skip",
          line: { color: Theme.colour("quiet"), width: 1, dash: "dash" },
        },
        {
          type: "scatter", mode: "lines+markers", x: predicted.map(place), y,
          customdata: predicted.map((p, i) => [quantity(p), quantity(observed[i]), count[i]]),
          line: { color: Theme.colour("blue"), width: 2 },
          marker: { size: count.map((cases) => 4 + 1.2 * Math.log10(cases)), opacity: 1 },
          error_y: {
            type: "data", symmetric: false,
            array: high.map((share, i) => place(share) - y[i]), arrayminus: low.map((share, i) => y[i] - place(share)),
            color: Theme.colour("blue"), thickness: 1, width: 3,
          },
          hovertemplate: "given %{customdata[0]}, found %{customdata[1]}<br>%{customdata[2]} cases<extra></extra>",
        },
      ], Plots.layout({
        showlegend: false, hovermode: "closest", xaxis: axis("probability given"), yaxis: axis("share that is relevant"),
      }));
    }

    function describe(label) {
      const mean = (values) => values.reduce((sum, value) => sum + (value ?? 0), 0) / values.length;
      const error = label === null
        ? mean(dataset.labelFacts.map(({ calibrationError }) => calibrationError))
        : dataset.labelFacts[label].calibrationError;
      setText(byId("reliability-note"),
        `On the dashed line probabilities are what they claim. They are off by ${quantity(error)} on average`
        + `${label === null ? ", label by label" : ""}. The scale is stretched near 0 and 1, where rare labels are; `
        + "larger dots stand for more cases, and bars are 95 % intervals.");
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
