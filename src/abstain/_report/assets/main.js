"use strict";

// Opens the data, turns choices into decisions, and lets every part of the page draw them; the last choice wins.
(async () => {
  const { byId, setText } = Elements;
  const root = document.documentElement;

  // The settings stay in sight beside the results; where they are taller than the window, their end does.
  const watchHeight = new ResizeObserver(([{ target }]) => {
    root.style.setProperty("--settings-height", `${target.offsetHeight}px`);
  });
  watchHeight.observe(byId("settings"));

  // In a frame of a notebook, a link to a place within the page would lead to the notebook.
  byId("skip").addEventListener("click", (event) => {
    event.preventDefault();
    byId("settings").focus();
  });

  function introduce(dataset) {
    const { nInstances, nLabels, nTotal } = dataset;
    setText(byId("title"), dataset.title);
    const size = `${Format.plural(nInstances, "instance")} × ${Format.plural(nLabels, "label")}`;
    const isSample = nTotal > nInstances;
    const sampled = isSample ? `, drawn at random from ${Format.count(nTotal)}: all figures are of this sample` : "";
    const truth = dataset.hasTruth ? "" : "; made without the truth, so errors are the ones the probabilities expect";
    setText(byId("size"), `${size}${sampled}${truth}`);
    const origin = `Written by abstain ${dataset.abstainVersion}.`;
    setText(byId("foot"), `${origin} Everything is in this file: it works offline and sends nothing.`);
  }

  async function costOf(problem, { loss, penalty, knob, value }) {
    if (knob === "share") return problem.shorten(penalty, problem.costForShare(penalty, value));
    if (knob === "error" && loss !== "rank") return problem.shorten(penalty, problem.costForError(penalty, value));
    return value;
  }

  function start(dataset) {
    const store = Store.create(dataset);
    const controls = Controls.create(dataset, store);
    const curves = Curves.create(dataset, store);
    const reliability = Reliability.create(dataset, store);
    const drawLabels = InSight.drawer(byId("label-table"), Labels.create(dataset, store).render);
    const drawInstances = InSight.drawer(byId("browser"), Instances.create(dataset, store).render);
    const cheapest = Cheapest.create(store);
    Theme.start(byId("theme"));
    Recipe.start();
    Theme.listen(() => { curves.redraw(); reliability.redraw(); });

    const decided = { key: "", setting: null, full: null };
    let curve = { key: "", points: null };

    async function decide(state) {
      const problem = await dataset.problem(state.loss, { falseNegative: state.missed, falsePositive: state.wrong });
      // Prices are the costs of Hamming's errors; the other losses have their own.
      const prices = state.loss === "hamming" ? [state.missed, state.wrong] : [];
      const fullKey = JSON.stringify([state.loss, state.penalty, ...prices]);
      const key = JSON.stringify([fullKey, state.knob, state.value]);
      if (decided.key !== key) {
        if (decided.fullKey !== fullKey) {
          Object.assign(decided, { fullKey, problem, full: problem.setting(state.penalty, problem.largestCost) });
        }
        const cost = await costOf(problem, state);
        Object.assign(decided, { key, setting: problem.setting(state.penalty, cost) });
      }
      if (root.dataset.ready && curve.key !== decided.fullKey) trace(problem, state.penalty, decided.fullKey);
      return decided;
    }

    /** Curves take longer than a setting: they are drawn when they are there, if they are still wanted. */
    async function trace(problem, penalty, key) {
      curve = { key, points: null };
      delete root.dataset.curves;
      const note = byId("curves-note");
      const points = await problem.curve(penalty, (done) => {
        if (curve.key !== key) return false;
        setText(note, `Computing the curves: ${Math.round(100 * done)} %`);
        return true;
      });
      if (curve.key !== key || points === null) return;
      curve = { key, points };
      setText(note, "");
      schedule();
    }

    async function update() {
      const state = store.get();
      const { setting, full, problem } = await decide(state);
      if (state !== store.get()) return; // something newer is on its way
      const view = { dataset, state, problem, setting, full, curve: curve.points };
      view.bill = Figures.bill(view);
      controls.render(view);
      Summary.render(view);
      Figures.render(view);
      await curves.render(view);
      reliability.render(view);
      drawLabels(view);
      drawInstances(view);
      cheapest.render(view);
      Recipe.render(view);
      if (view.curve !== null) root.dataset.curves = "ready";
    }

    /** The next frame; soon, where the browser draws none, as in a notebook's output that is out of sight. */
    const nextFrame = () => new Promise((resolve) => {
      requestAnimationFrame(resolve);
      setTimeout(resolve, 200);
    });

    // One drawing per frame, and never two at a time.
    let isWaiting = false;
    let isBusy = false;
    async function schedule() {
      if (isWaiting) return;
      isWaiting = true;
      root.dataset.busy = "yes";
      await nextFrame();
      while (isBusy) await nextFrame();
      isWaiting = false;
      isBusy = true;
      try {
        await update();
      } finally {
        isBusy = false;
        if (!isWaiting) delete root.dataset.busy;
      }
    }
    /** Paper does not wait for timers or frames: all that is missing is computed and drawn before they come. */
    async function drawNow() {
      const { penalty } = store.get();
      const { problem, fullKey } = await decide(store.get());
      Plots.run();
      curve = { key: fullKey, points: problem.curveNow(penalty) };
      setText(byId("curves-note"), "");
      await update();
      InSight.finish();
    }
    addEventListener("beforeprint", drawNow);
    store.listen(schedule);
    return schedule;
  }

  try {
    const dataset = await Abstain.open(document);
    introduce(dataset);
    const draw = start(dataset);
    await draw();
    root.dataset.ready = "yes";
    await Plots.load();
    await draw(); // now with charts
  } catch (problem) {
    setText(byId("headline"), "This report could not be opened.");
    setText(byId("details"), `${problem.message}. It needs a browser of 2024 or later.`);
    throw problem;
  }
})();
