"use strict";

// Opens the data, decides for what the reader has chosen, and draws every part of the page; the last choice wins.
(async () => {
  const { byId, setText } = Elements;
  const root = document.documentElement;

  // The settings stay visible beside the results; if they are taller than the window, their end does.
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

  function costOf(problem, { penalty, target, value }) {
    if (target === "share") return problem.shorten(penalty, problem.costForShare(penalty, value));
    if (target === "error") return problem.shorten(penalty, problem.costForError(penalty, value));
    return value;
  }

  /** What is shown if none of the losses of the report is in the page. */
  function refuse(dataset) {
    const titles = dataset.losses.map(({ title }) => title).join(", ");
    const names = [...Abstain.engines.keys()].join(", ");
    setText(byId("headline"), `No loss of this report is in the page: ${titles}.`);
    setText(byId("details"), `The page can decide for ${names}; in Python, abstain.decide takes every loss.`);
    for (const id of ["settings", "results", "skip"]) byId(id).hidden = true;
  }

  function start(dataset) {
    const store = Store.create(dataset);
    const controls = Controls.create(dataset, store);
    const curves = Curves.create(dataset, store);
    const reliability = Reliability.create(dataset, store);
    const drawLabels = LazyDrawing.create(byId("label-table"), LabelTable.create(dataset, store).render);
    const drawInstances = LazyDrawing.create(byId("browser"), InstanceList.create(dataset, store).render);
    const lowestBill = LowestBill.create(store);
    Theme.start(byId("theme"));
    CodeExamples.start();
    Theme.listen(() => { curves.redraw(); reliability.redraw(); });

    const decided = { key: "", setting: null, full: null };
    let curve = { key: "", points: null };

    async function decide(state) {
      const loss = dataset.losses.find(({ name }) => name === state.loss);
      const { falseNegative, falsePositive } = state;
      const problem = await dataset.problem(loss.name, { falseNegative, falsePositive });
      const prices = loss.hasPrices ? [falseNegative, falsePositive] : [];
      const fullKey = JSON.stringify([loss.name, state.penalty, ...prices]);
      const key = JSON.stringify([fullKey, state.target, state.value]);
      if (decided.key !== key) {
        if (decided.fullKey !== fullKey) {
          Object.assign(decided, { fullKey, loss, problem, full: problem.setting(state.penalty, problem.largestCost) });
        }
        const cost = costOf(problem, state);
        Object.assign(decided, { key, setting: problem.setting(state.penalty, cost) });
      }
      if (root.dataset.ready && curve.key !== decided.fullKey) trace(problem, state.penalty, decided.fullKey);
      return decided;
    }

    /** Computes the curves, which takes longer than a setting, and draws them if they are still wanted. */
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
      const { loss, setting, full, problem } = await decide(state);
      if (state !== store.get()) return; // a newer state will be drawn
      const view = { dataset, state, loss, problem, setting, full, curve: curve.points };
      view.bill = Bill.compare(view);
      controls.render(view);
      Summary.render(view);
      Figures.render(view);
      await curves.render(view);
      reliability.render(view);
      drawLabels(view);
      drawInstances(view);
      lowestBill.render(view);
      CodeExamples.render(view);
      if (view.curve !== null) root.dataset.curves = "ready";
    }

    /** Resolves at the next frame, or soon if the browser draws none, as of a notebook's output that is not visible. */
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
    /** Computes and draws everything that is still missing, before the page is printed. */
    async function drawNow() {
      const { penalty } = store.get();
      const { problem, fullKey } = await decide(store.get());
      Plots.run();
      curve = { key: fullKey, points: problem.curveNow(penalty) };
      setText(byId("curves-note"), "");
      await update();
      LazyDrawing.drawAll();
    }
    addEventListener("beforeprint", drawNow);
    store.listen(schedule);
    return schedule;
  }

  try {
    const dataset = await Abstain.open(document);
    introduce(dataset);
    if (dataset.losses.some(({ isInPage }) => isInPage)) {
      const draw = start(dataset);
      await draw();
      root.dataset.ready = "yes";
      await Plots.load();
      await draw(); // now with charts
    } else {
      Theme.start(byId("theme"));
      refuse(dataset);
      root.dataset.ready = "yes";
    }
  } catch (problem) {
    setText(byId("headline"), "This report could not be opened.");
    setText(byId("details"), `${problem.message}. It needs a browser of 2024 or later.`);
    throw problem;
  }
})();
