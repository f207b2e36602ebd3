"use strict";

// The Python and the commands that give these decisions.
const Recipe = (() => {
  const { byId, setText } = Elements;
  const { count, plural } = Format;
  const PENALTY = { linear: "Linear", concave: "Concave" };

  function lossOf({ loss, missed, wrong }) {
    if (loss !== "hamming" || (missed === 1 && wrong === 1)) return `"${loss}"`;
    return `abstain.Hamming(false_negative=${Format.python(missed)}, false_positive=${Format.python(wrong)})`;
  }

  /** Each number that the page shows as code that prints it; of a sample, Python prints another. */
  function prints({ state, setting, dataset }) {
    const { hasTruth, nInstances, nTotal } = dataset;
    const print = (call, value, what) => {
      const shown = nTotal > nInstances ? `${what} of all rows` : `${what}: ${value}`;
      return `print(metrics.${call})  # ${shown}`;
    };
    const short = (value) => Number(value.toPrecision(6));
    const lines = [
      print("abstention_rate(prediction)", short(setting.share), "share reviewed"),
      print("expected_generalized_loss(probabilities, prediction, loss, 0.0)", short(setting.expectedLoss),
        "expected loss"),
    ];
    if (!hasTruth) return lines;
    lines.push(print("generalized_loss(truth, prediction, loss, 0.0)", short(setting.realizedLoss), "realised loss"));
    if (state.loss !== "rank" && setting.answered > 0) {
      const rate = short(setting.wrong / setting.answered);
      lines.push(print("answered_error_rate(truth, prediction)", rate, "errors in answers"));
    }
    return lines;
  }

  function python(view) {
    const { state, setting, dataset } = view;
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
      `loss = ${lossOf(state)}`,
      `penalty = abstain.${PENALTY[state.penalty]}(${Format.python(setting.cost)})`,
      "prediction = abstain.decide(probabilities, loss, penalty)",
      ...prints(view),
    ].join("\n");
  }

  /** The commands that write the same decisions to files; a backslash ends a line that goes on. */
  function commands({ state, setting, dataset }) {
    const { loss, missed, wrong } = state;
    const prices = loss === "hamming" && !(missed === 1 && wrong === 1) ? `:missed=${missed},wrong=${wrong}` : "";
    const decide = [
      "abstain decide probabilities.parquet",
      `--loss ${loss}${prices}`,
      `--penalty ${state.penalty}:${setting.cost}`,
      "-o answers.parquet",
      "--queue review.csv",
    ];
    const evaluate = ["abstain evaluate answers.parquet labels.parquet", `--loss ${loss}${prices}`, "--penalty 0",
      "--probabilities probabilities.parquet"];
    return [decide, ...(dataset.hasTruth ? [evaluate] : [])].map((parts) => parts.join(" \\\n    ")).join("\n");
  }

  async function copy(code) {
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      // Without leave to write to the clipboard, the text is at least selected.
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
