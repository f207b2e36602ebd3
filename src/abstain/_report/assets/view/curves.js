"use strict";

// Loss and share against the cost, and error against coverage, each with a dot at the chosen setting.
const Curves = (() => {
  const { byId, setText } = Elements;
  const { percent, quantity } = Format;
  const inPercent = (values) => values.map((value) => (value === null ? null : 100 * value));

  function drawCosts(place, curve, hasTruth) {
    const costs = curve.map(({ cost }) => cost);
    const trace = (name, values, colour, hovertemplate, more) =>
      Plots.line(name, costs, values, colour, { hovertemplate, ...more });
    const traces = [
      trace("expected loss", curve.map((point) => point.expectedLoss), "blue", "%{y:.4~g}"),
      trace("reviewed", inPercent(curve.map(({ share }) => share)), "orange", "%{y:.1f} %", { yaxis: "y2" }),
    ];
    traces[0].line.dash = "dot";
    if (hasTruth) {
      traces.splice(1, 0, trace("realised loss", curve.map((point) => point.realizedLoss), "blue", "%{y:.4~g}"));
    }
    const shares = { domain: [0, 0.38], range: [0, 104], tickvals: [0, 50, 100], ticktext: ["0 %", "50 %", "100 %"] };
    return Plots.draw(place, traces, Plots.layout({
      xaxis: Plots.axis("cost of asking about a label", { range: [0, costs[costs.length - 1]], anchor: "y2" }),
      yaxis: Plots.axis("loss", { domain: [0.48, 1], rangemode: "tozero", nticks: 5 }),
      yaxis2: Plots.axis("reviewed", shares),
    }));
  }

  function drawCoverage(place, curve, { givesRankings, hasTruth }) {
    const coverage = inPercent(curve.map(({ share }) => 1 - share));
    const losses = curve.map((point) => (hasTruth ? point.realizedLoss : point.expectedLoss));
    const values = givesRankings ? losses : inPercent(curve.map(({ errorRate }) => errorRate));
    const title = givesRankings ? "pairs in the wrong order" : "wrong among the answers";
    const trace = Plots.line(title, coverage, values, "red", {
      hovertemplate: givesRankings ? "%{y:.4~g}<extra></extra>" : "%{y:.2f} % wrong<extra></extra>",
    });
    return Plots.draw(place, [trace], Plots.layout({
      showlegend: false,
      xaxis: Plots.axis("answered by the model", { range: [0, 104], ticksuffix: " %" }),
      yaxis: Plots.axis(hasTruth ? title : `${title}, expected`, {
        rangemode: "tozero",
        ticksuffix: givesRankings ? "" : " %",
      }),
    }));
  }

  function create(dataset, store) {
    const { hasTruth } = dataset;
    const costPlace = byId("cost-curve");
    const coveragePlace = byId("coverage-curve");
    let drawn = null; // the curve on the screen, compared by identity
    let hasListeners = false;
    const dots = {
      loss: ChosenPoint.create(costPlace, "xy", "blue"),
      share: ChosenPoint.create(costPlace, "xy2", "orange"),
      risk: ChosenPoint.create(coveragePlace, "xy", "red"),
    };

    function pick({ points: [point] }) {
      store.set({ target: "cost", value: drawn[point.pointIndex].cost, page: 0 });
    }

    async function draw(curve, givesRankings) {
      await Promise.all([
        drawCosts(costPlace, curve, hasTruth),
        drawCoverage(coveragePlace, curve, { givesRankings, hasTruth }),
      ]);
      if (hasListeners) return;
      hasListeners = true;
      for (const place of [costPlace, coveragePlace]) {
        place.on("plotly_click", pick);
        place.on("plotly_afterplot", () => Object.values(dots).forEach((dot) => dot.show()));
      }
    }

    const lossOf = (setting) => setting.realizedLoss ?? setting.expectedLoss;
    const errorOf = (setting) => (setting.wrong ?? setting.expectedWrong) / setting.answered;

    function move(setting, givesRankings) {
      const { cost, share, answered } = setting;
      const error = answered === 0 ? null : 100 * errorOf(setting);
      dots.loss.moveTo(cost, lossOf(setting));
      dots.share.moveTo(cost, 100 * share);
      dots.risk.moveTo(100 * (1 - share), givesRankings ? lossOf(setting) : error);
    }

    function describe(setting, givesRankings) {
      const { share, answered } = setting;
      setText(byId("cost-caption"), `At a cost of ${quantity(setting.cost)}, ${percent(share)} of labels are reviewed`);
      const errors = answered === 0 ? "nothing can be wrong" : `${percent(errorOf(setting))} of it is wrong`;
      setText(byId("coverage-caption"), givesRankings
        ? `Ranking ${percent(1 - share)} of the labels: ${quantity(lossOf(setting))} pairs in the wrong order`
        : `Answering ${percent(1 - share)}: ${errors}`);
    }

    async function render({ setting, loss: { givesRankings }, curve }) {
      describe(setting, givesRankings);
      if (curve === null || !Plots.areReady()) return;
      if (drawn !== curve) {
        drawn = curve;
        await draw(curve, givesRankings);
      }
      move(setting, givesRankings);
    }

    function redraw() {
      if (drawn === null) return;
      drawn = null;
      store.set({});
    }

    return { render, redraw };
  }

  return Object.freeze({ create });
})();
