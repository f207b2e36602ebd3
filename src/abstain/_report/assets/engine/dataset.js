"use strict";

/** The data set of a page: names, texts, images, probabilities and the truth, and a problem for each loss. */
(() => {
  const PRICES_REMEMBERED = 3; // pairs of prices whose problems are kept; each takes 20 bytes for a probability

  /** Facts of the losses, with what the page itself can do for each of them. */
  function describeLosses(losses) {
    return losses.map((loss) => {
      const engine = Abstain.engines.get(loss.name);
      return Object.freeze({ ...loss, isInPage: engine !== undefined, hasPrices: engine?.hasPrices ?? false });
    });
  }

  /** A function that prepares the problem of a loss once, or once for each of the last few pairs of prices. */
  function rememberProblems(source, losses) {
    const unitCosts = { falseNegative: 1, falsePositive: 1 };
    const withoutPrices = new Map();
    const withPrices = new Map();

    return (name, { falseNegative, falsePositive }) => {
      const loss = losses.find((known) => known.name === name);
      if (!loss?.isInPage) return Promise.reject(new RangeError(`${JSON.stringify(name)} is not in this page`));
      const [remembered, costs] = loss.hasPrices
        ? [withPrices, { falseNegative, falsePositive }]
        : [withoutPrices, unitCosts];
      const key = `${name} ${costs.falseNegative} ${costs.falsePositive}`;
      const problem = remembered.get(key) ?? Abstain.problem.open(source, loss, costs);
      remembered.delete(key); // so that the one used last stands last
      remembered.set(key, problem);
      if (withPrices.size > PRICES_REMEMBERED) withPrices.delete(withPrices.keys().next().value);
      return problem;
    };
  }

  /** A function that gives the image of a row as a data URL. The text is split when the first image is asked for. */
  function lazyImages(document) {
    let lines = null;
    return (i) => {
      lines ??= (document.getElementById("data-images")?.textContent ?? "").split("\n");
      return lines[i] ? `data:${lines[i]}` : null;
    };
  }

  async function makeDataset(document) {
    const facts = JSON.parse(document.getElementById("data-facts").textContent);
    const read = (name) => Abstain.arrays.read(document, name, facts.arrays[name]);
    const [n, m] = [facts.nInstances, facts.nLabels];
    const [p, truth, { ids, texts }] = await Promise.all([
      read("probabilities"),
      facts.hasTruth ? read("truth") : new Uint8Array(n * m),
      Abstain.arrays.readText(document, "rows").then(JSON.parse),
    ]);
    const rows = Int32Array.from({ length: n }, (_, i) => i);
    const source = { p, truth, hasTruth: facts.hasTruth, n, m, rows, read, constants: facts.constants };
    const losses = describeLosses(facts.losses);
    const problemFor = rememberProblems(source, losses);
    const image = lazyImages(document);

    /** The problem of a loss; prices are { falseNegative, falsePositive }, by default those of the report. */
    const problem = (name, prices = facts.prices) => problemFor(name, prices);

    return Object.freeze({
      title: facts.title,
      nInstances: n,
      nLabels: m,
      nTotal: facts.nTotal,
      labels: facts.labels,
      losses,
      penalties: facts.penalties,
      prices: facts.prices,
      constants: facts.constants,
      labelFacts: facts.labelFacts,
      reliability: facts.reliability,
      abstainVersion: facts.abstainVersion,
      hasTruth: facts.hasTruth,
      id: (i) => ids[i],
      text: (i) => texts?.[i] ?? null,
      image,
      truth: (i, j) => truth[i * m + j],
      probability: (i, j) => p[i * m + j],
      problem,
    });
  }

  const opened = new WeakMap();

  /** The data set of a page, read once. */
  Abstain.open = (document) => {
    if (!opened.has(document)) opened.set(document, makeDataset(document));
    return opened.get(document);
  };
  Object.freeze(Abstain);
})();
