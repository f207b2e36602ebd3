"use strict";

// The Python that gives these decisions.
const Recipe = (() => {
  const { byId, setText } = Elements;
  const PENALTY = { linear: "Linear", concave: "Concave" };

  function text({ state, setting, dataset }) {
    const penalty = `abstain.${PENALTY[state.penalty]}(${Format.python(setting.cost)})`;
    const lines = [
      "import abstain",
      "",
      `# probabilities: the table this report was made from, instances × ${Format.count(dataset.nLabels)} labels`,
      "prediction = abstain.decide(",
      `    probabilities, loss="${state.loss}", penalty=${penalty}`,
      ")",
      "print(abstain.metrics.abstention_rate(prediction))"
        + (dataset.nTotal > dataset.nInstances ? "  # of all rows; the report shows a sample" : `  # ${setting.share}`),
    ];
    if (dataset.hasTruth && state.loss !== "rank") {
      lines.push("print(abstain.metrics.answered_error_rate(truth, prediction))");
    }
    return lines.join("\n");
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
    const button = byId("copy");
    const back = Elements.afterPause(2000, () => setText(button, "Copy"));
    button.addEventListener("click", async () => {
      setText(button, await copy(byId("code")));
      back();
    });
  }

  const render = (view) => setText(byId("code").firstElementChild, text(view));

  return Object.freeze({ start, render });
})();
