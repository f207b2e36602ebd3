"use strict";

// The Python code and the commands that give the same decisions.
const CodeExamples = (() => {
  const { byId, setText } = Elements;
  const { count, plural } = Format;

  const hasOwnPrices = ({ loss, state }) => loss.hasPrices && !(state.falseNegative === 1 && state.falsePositive === 1);

  function lossInPython(view) {
    if (!hasOwnPrices(view)) return JSON.stringify(view.loss.name);
    const [falseNegative, falsePositive] = [view.state.falseNegative, view.state.falsePositive].map(Format.python);
    return `abstain.${view.loss.className}(false_negative=${falseNegative}, false_positive=${falsePositive})`;
  }

  function lossOnCommandLine(view) {
    const { loss, state } = view;
    const costs = `:false_negative=${state.falseNegative},false_positive=${state.falsePositive}`;
    return `${loss.name}${hasOwnPrices(view) ? costs : ""}`;
  }

  /** Code that prints the numbers of the page; if it shows a sample, Python prints other ones. */
  function prints({ setting, dataset, loss }) {
    const { hasTruth, nInstances, nTotal } = dataset;
    const print = (call, value, what) => {
      const shown = nTotal > nInstances ? `${what} of all rows` : `${what}: ${value}`;
      return `print(metrics.${call})  # ${shown}`;
    };
    const short = (value) => Number(value.toPrecision(6));
    const lines = [
      print("abstention_rate(prediction)", short(setting.share), "share reviewed"),
      print("expected_generalized_loss(probabilities, prediction, loss=loss, penalty=0.0)", short(setting.expectedLoss),
        "expected loss"),
    ];
    if (!hasTruth) return lines;
    lines.push(print("generalized_loss(truth, prediction, loss=loss, penalty=0.0)", short(setting.realizedLoss),
      "realised loss"));
    if (!loss.givesRankings && setting.answered > 0) {
      const rate = short(setting.wrong / setting.answered);
      lines.push(print("answered_error_rate(truth, prediction)", rate, "errors in answers"));
    }
    return lines;
  }

  function python(view) {
    const { state, setting, dataset } = view;
    const penalty = dataset.penalties.find(({ name }) => name === state.penalty);
    const size = `${plural(dataset.nTotal, "instance")} × ${plural(dataset.nLabels, "label")}`;
    const of = dataset.nTotal > dataset.nInstances ? `; the report shows ${count(dataset.nInstances)} of them` : "";
    return [
      "import abstain",
      "from abstain import metrics",
      "",
      `# What this report was made from, ${size}${of}:`.replaceAll("\u00a0", " ").replaceAll("\u202f", " "),
      '# probabilities = abstain.read_table("probabilities.parquet")',
      ...(dataset.hasTruth ? ['# truth = abstain.read_table("labels.parquet")'] : []),
      "",
      `loss = ${lossInPython(view)}`,
      `penalty = abstain.${penalty.className}(${Format.python(setting.cost)})`,
      "prediction = abstain.decide(probabilities, loss, penalty)",
      ...prints(view),
    ].join("\n");
  }

  /** The commands that write the same decisions to files, long ones on several lines. */
  function commands(view) {
    const { state, setting, dataset } = view;
    const loss = lossOnCommandLine(view);
    const decide = [
      "abstain decide probabilities.parquet",
      `--loss ${loss}`,
      `--penalty ${state.penalty}:${setting.cost}`,
      "-o answers.parquet",
      "--queue review.csv",
    ];
    const evaluate = ["abstain evaluate answers.parquet labels.parquet", `--loss ${loss}`, "--penalty 0",
      "--probabilities probabilities.parquet"];
    return [decide, ...(dataset.hasTruth ? [evaluate] : [])].map((parts) => parts.join(" \\\n    ")).join("\n");
  }

  async function copy(code) {
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      // Without permission to write to the clipboard, the text is at least selected.
      getSelection().selectAllChildren(code);
      return "Selected: copy it with your keyboard";
    }
    return "Copied";
  }

  function start() {
    for (const what of ["code", "command"]) {
      const button = byId(`copy-${what}`);
      const back = Elements.afterPause(2000, () => setText(button, "Copy"));
      button.addEventListener("click", async () => {
        setText(button, await copy(byId(what)));
        back();
      });
    }
  }

  function render(view) {
    setText(byId("code").firstElementChild, python(view));
    setText(byId("command").firstElementChild, commands(view));
  }

  return Object.freeze({ start, render });
})();
