"use strict";

/**
 * Decides in the page as the library does: argmin over the number of abstentions a of (least expected loss with a
 * abstentions) + penalty(a), for each instance; of equally good ones the fewest. Nothing here draws.
 */
(() => {
  const TIE = 1e-12; // what differs by less is equal, as in the library's kernels/choice.py
  const SLACK = TIE / 8; // rounding alone
  const N_CURVE_COSTS = 101;
  const N_COARSE_COSTS = 15; // enough to look for an error rate before the curve is there
  const SLICE = 20; // milliseconds of work before the page may answer its reader
  const DIGITS = 10; // of a cost that keeps to a share
  const FEWEST_DIGITS = 3; // of a cost that people read
  const ROWS_AT_ONCE = 512; // compared before looking whether to go on
  const KEPT_PRICES = 3; // as many pairs of prices are remembered; each takes 20 bytes for a probability
  const SMALLEST_COST = 0.01; // a slider needs a right end, even where nothing is ever left open
  const PRECISION = 1e-6; // of a cost that keeps to an error rate

  const PENALTIES = {
    linear: (cost, a) => cost * a,
    concave: (cost, a, m) => cost * ((a * m) / (m + a)),
  };

  /** f(0) … f(m); infinitely often nothing is nothing. */
  function bind(penalty, cost, m) {
    const counts = new Float64Array(m + 1);
    for (let a = 1; a <= m; a++) counts[a] = PENALTIES[penalty](cost, a, m);
    return counts;
  }

  /** The cost at which an abstention is counted, so that ties are answered. */
  function tipped(cost, unit) {
    return cost + TIE * (unit + cost);
  }

  /** What a abstentions count when totals are compared, and up to which difference these are equal. */
  function countedAs(penalty, cost, m, unit) {
    const counts = bind(penalty, cost, m);
    if (penalty !== "linear") return { counted: counts, tie: TIE };
    return { counted: counts.map((count, a) => tipped(count, unit * a)), tie: 0 };
  }

  /** The fewest abstentions whose total is least up to a tie, for the instance whose values begin at `first`. */
  function choose(values, first, { counted, tie }, unit) {
    const width = counted.length;
    let least = Infinity;
    for (let a = 0; a < width; a++) {
      const total = values[first + a] + counted[a];
      if (total < least) least = total;
    }
    const bound = least + tie * (unit + Math.abs(least));
    let a = 0;
    while (values[first + a] + counted[a] > bound) a++;
    return a;
  }

  /** How many of the m scores from `first` on, which increase, are at most the threshold. */
  function countUpTo(scores, first, m, threshold) {
    let low = 0;
    let high = m;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (scores[first + middle] <= threshold) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** How many labels each of these instances leaves open. */
  function countAbstained(problem, penalty, cost, rows) {
    const { m, loss, unit, profile } = problem;
    const found = new Int32Array(rows.length);
    if (loss === "hamming" && penalty === "linear") {
      const threshold = tipped(cost, unit);
      for (let k = 0; k < rows.length; k++) found[k] = m - countUpTo(profile.scores, rows[k] * m, m, threshold);
    } else {
      const known = countedAs(penalty, cost, m, unit);
      for (let k = 0; k < rows.length; k++) found[k] = choose(profile.values, rows[k] * (m + 1), known, unit);
    }
    return found;
  }

  function sum(counts) {
    let total = 0;
    for (let k = 0; k < counts.length; k++) total += counts[k];
    return total;
  }

  /** Answers of these instances into codes, and their sums. */
  function tally(problem, rows, nAbstained, codes) {
    return Abstain.answers.WRITERS[problem.loss](problem, rows, nAbstained, codes);
  }

  /**
   * Halves a bracket of costs until it is narrow. Instances abstain less as the cost grows, so those that do the same
   * at both ends are settled: each step weighs only the others, about half as many as the step before.
   *
   * @param {(rows, counts) => {reviewed, wrong}} weigh what these instances add, with so many abstentions each
   * @param {({reviewed, wrong}) => boolean} isLow whether a cost of which this is the sum is a lower end
   */
  function narrow(problem, penalty, [low, high], precision, weigh, isLow) {
    let { rows } = problem;
    let [atLow, atHigh] = [low, high].map((cost) => countAbstained(problem, penalty, cost, rows));
    let settled = { reviewed: 0, wrong: 0 };
    const add = (part) => ({ reviewed: settled.reviewed + part.reviewed, wrong: settled.wrong + part.wrong });
    for (;;) {
      const isSettled = atLow.map((count, k) => (count === atHigh[k] ? 1 : 0));
      const isOpen = (_, k) => isSettled[k] === 0;
      const isDone = (_, k) => isSettled[k] === 1;
      settled = add(weigh(rows.filter(isDone), atLow.filter(isDone)));
      [rows, atLow, atHigh] = [rows, atLow, atHigh].map((array) => array.filter(isOpen));
      const middle = (low + high) / 2;
      if (high - low <= precision * high || middle === low || middle === high) return [low, high];
      const atMiddle = countAbstained(problem, penalty, middle, rows);
      if (isLow(add(weigh(rows, atMiddle)))) [low, atLow] = [middle, atMiddle];
      else [high, atHigh] = [middle, atMiddle];
    }
  }

  /** Totals → what the page shows of a setting; null is what is not known, or has no meaning for rankings. */
  function describe(problem, totals) {
    const { n, m, hasTruth, loss } = problem;
    const isRanking = loss === "rank";
    const known = hasTruth && !isRanking;
    const answered = n * m - totals.reviewed;
    return {
      reviewed: totals.reviewed,
      share: totals.reviewed / (n * m),
      answered,
      expectedLoss: totals.expectedLoss / n,
      realizedLoss: hasTruth ? totals.realizedLoss / n : null,
      wrong: known ? totals.missed + totals.falseAlarms : null,
      missed: known ? totals.missed : null,
      falseAlarms: known ? totals.falseAlarms : null,
      caught: known ? totals.caught : null,
      wrongWithout: known ? problem.nWrongWithout : null,
      expectedWrong: isRanking ? null : totals.expectedMissed + totals.expectedFalseAlarms,
      expectedMissed: isRanking ? null : totals.expectedMissed,
      expectedFalseAlarms: isRanking ? null : totals.expectedFalseAlarms,
      perLabel: {
        abstained: totals.abstained,
        answered: totals.abstained.map((abstained) => n - abstained),
        wrong: known ? totals.wrong : null,
      },
    };
  }

  /** Wrong answers among the answers, as seen or else as expected; null where there are none, and for rankings. */
  function errorRate(facts) {
    if (facts.answered === 0 || facts.expectedWrong === null) return null;
    return (facts.wrong ?? facts.expectedWrong) / facts.answered;
  }

  function pointOf(cost, facts) {
    return {
      cost,
      share: facts.share,
      expectedLoss: facts.expectedLoss,
      realizedLoss: facts.realizedLoss,
      errorRate: errorRate(facts),
      caughtShare: facts.wrongWithout ? facts.caught / facts.wrongWithout : null,
      reviewed: facts.reviewed,
      missed: facts.missed,
      falseAlarms: facts.falseAlarms,
      expectedMissed: facts.expectedMissed,
      expectedFalseAlarms: facts.expectedFalseAlarms,
    };
  }

  /** Costs from 0 to the largest, of few digits; most of what changes does so at small ones. */
  function spreadCosts(largest, length) {
    return Array.from({ length }, (_, k) => Number((largest * (k / (length - 1)) ** 2).toPrecision(6)));
  }

  /** Where all is answered under any penalty, rounded up; the same as `largest_cost` in contents.py. */
  function findLargestCost({ n, m, profile: { values } }) {
    const unit = bind("concave", 1, m);
    let saved = 0;
    for (let first = 0; first < n * (m + 1); first += m + 1) {
      for (let a = 1; a <= m; a++) saved = Math.max(saved, (values[first] - values[first + a]) / unit[a]);
    }
    if (saved <= TIE) return SMALLEST_COST;
    const step = Number(`1e${Math.floor(Math.log10(saved)) - 1}`);
    return Number((Math.ceil((saved / step) * (1 - SLACK)) * step).toPrecision(3));
  }

  /** The next number ≥ x with few digits. */
  function roundUp(x) {
    if (x === 0) return 0;
    const near = Number(x.toPrecision(DIGITS));
    if (near >= x) return near;
    return Number((x + 10 ** (Math.floor(Math.log10(x)) - DIGITS + 1)).toPrecision(DIGITS));
  }

  function pause() {
    return new Promise((resume) => setTimeout(resume));
  }

  /** One loss of a data set, with all that its decisions need. */
  class Problem {
    #inner;
    #largestCost;
    #scratch = null;
    #last = null;
    #curves = new Map();
    #points = new Map();

    constructor(inner, largestCost) {
      this.#inner = inner;
      this.#largestCost = largestCost;
    }

    /** From this cost on all is answered; it is round. */
    get largestCost() {
      return this.#largestCost;
    }

    /** What is answered at this cost, what is left open, and what that means. */
    setting(penalty, cost) {
      if (this.#last?.penalty === penalty && this.#last.cost === cost) return this.#last;
      const { loss, n, m } = this.#inner;
      const codes = Abstain.answers.room(loss, n, m);
      const nAbstained = countAbstained(this.#inner, penalty, cost, this.#inner.rows);
      const totals = tally(this.#inner, this.#inner.rows, nAbstained, codes);
      this.#last = { loss, penalty, cost, codes, nAbstained, ...describe(this.#inner, totals) };
      return this.#last;
    }

    /**
     * Points for costs from 0 to the largest, computed little by little. onProgress hears what share is done; if it
     * answers false, nobody wants them any more, and they are null.
     */
    curve(penalty, onProgress) {
      if (!this.#curves.has(penalty)) this.#curves.set(penalty, this.#trace(penalty, onProgress));
      return this.#curves.get(penalty);
    }

    async #trace(penalty, onProgress) {
      const costs = spreadCosts(this.#largestCost, N_CURVE_COSTS);
      const points = [];
      let since = performance.now();
      for (const cost of costs) {
        points.push(this.point(penalty, cost));
        if (performance.now() - since > SLICE) {
          await pause();
          if (onProgress?.(points.length / costs.length) === false) {
            this.#curves.delete(penalty);
            return null;
          }
          since = performance.now();
        }
      }
      this.#points.set(penalty, points);
      return points;
    }

    /** The same points, all at once, for those who cannot wait. */
    curveNow(penalty) {
      if (!this.#points.has(penalty)) {
        const points = spreadCosts(this.#largestCost, N_CURVE_COSTS).map((cost) => this.point(penalty, cost));
        this.#points.set(penalty, points);
        this.#curves.set(penalty, Promise.resolve(points));
      }
      return this.#points.get(penalty);
    }

    /** A point of the curve: the sums of a setting, without its answers. */
    point(penalty, cost) {
      const { rows } = this.#inner;
      return pointOf(cost, describe(this.#inner, this.#tally(rows, countAbstained(this.#inner, penalty, cost, rows))));
    }

    /** Sums without the answers. */
    #tally(rows, nAbstained) {
      const { loss, n, m } = this.#inner;
      this.#scratch ??= Abstain.answers.room(loss, n, m);
      return tally(this.#inner, rows, nAbstained, this.#scratch);
    }

    /** The least cost at which at most this share of the labels is left open. */
    costForShare(penalty, share) {
      const { n, m, rows } = this.#inner;
      const allowed = share * n * m * (1 + TIE);
      const known = this.#points.get(penalty) ?? [];
      const atNothing = known[0]?.reviewed ?? sum(countAbstained(this.#inner, penalty, 0, rows));
      if (atNothing <= allowed) return 0;
      // The share falls as the cost grows, so the points of the curve around it are a bracket.
      const next = known.findIndex(({ reviewed }) => reviewed <= allowed);
      const bracket = next > 0 ? [known[next - 1].cost, known[next].cost] : [0, this.#largestCost];
      const weigh = (_, counts) => ({ reviewed: sum(counts), wrong: 0 });
      const isTooMuch = ({ reviewed }) => reviewed > allowed;
      return roundUp(narrow(this.#inner, penalty, bracket, TIE, weigh, isTooMuch)[1]);
    }

    /** The shortest number near this cost at which all is decided in the same way. */
    shorten(penalty, cost) {
      const { rows } = this.#inner;
      const decidesTheSame = (other) => {
        for (let from = 0; from < rows.length; from += ROWS_AT_ONCE) {
          const some = rows.subarray(from, from + ROWS_AT_ONCE);
          const [wanted, found] = [cost, other].map((c) => countAbstained(this.#inner, penalty, c, some));
          if (found.some((count, k) => count !== wanted[k])) return false;
        }
        return true;
      };
      for (let digits = FEWEST_DIGITS; digits <= DIGITS; digits++) {
        const short = Number(cost.toPrecision(digits));
        if (short === cost || decidesTheSame(short)) return short;
      }
      return cost;
    }

    /** The greatest cost found at which the answers are wrong at most at this rate; 0 if there is none. */
    costForError(penalty, rate) {
      const known = this.#points.get(penalty);
      const costs = spreadCosts(this.#largestCost, known ? N_CURVE_COSTS : N_COARSE_COSTS);
      const rateAt = (k) => (known?.[k] ?? this.point(penalty, costs[k])).errorRate ?? 0;
      let last = costs.length - 1;
      while (last >= 0 && rateAt(last) > rate) last--;
      if (last < 0) return 0;
      if (last === costs.length - 1) return this.#largestCost;
      const { hasTruth, n, m } = this.#inner;
      const weigh = (rows, counts) => {
        const totals = this.#tally(rows, counts);
        const expected = totals.expectedMissed + totals.expectedFalseAlarms;
        return { reviewed: totals.reviewed, wrong: hasTruth ? totals.missed + totals.falseAlarms : expected };
      };
      const isGood = ({ reviewed, wrong }) => wrong <= rate * (n * m - reviewed);
      return narrow(this.#inner, penalty, [costs[last], costs[last + 1]], PRECISION, weigh, isGood)[0];
    }
  }

  /** Marks where the complete prediction is wrong, which tells what silence catches. */
  function compareComplete(inner) {
    inner.wrongWithout = new Uint8Array(inner.n * inner.m);
    inner.nWrongWithout = 0;
    if (!inner.hasTruth || inner.loss === "rank") return;
    const codes = Abstain.answers.room(inner.loss, inner.n, inner.m);
    tally(inner, inner.rows, new Int32Array(inner.n), codes);
    for (let e = 0; e < codes.length; e++) {
      inner.wrongWithout[e] = codes[e] !== inner.truth[e] ? 1 : 0;
      inner.nWrongWithout += inner.wrongWithout[e];
    }
  }

  async function openProblem(source, { name, unit, largestCost }, costs) {
    const { p, truth, hasTruth, n, m, rows } = source;
    const profile = await Abstain.profiles[name](source, costs, name);
    const inner = { loss: name, unit, costs, p, truth, hasTruth, n, m, rows, profile };
    inner.realized = Abstain.answers.REALIZED[name];
    compareComplete(inner);
    return new Problem(inner, name === "hamming" ? findLargestCost(inner) : largestCost);
  }

  /** The problems of a data set, each prepared once; of Hamming's, as many as there were prices lately. */
  function rememberProblems(source, losses) {
    const unitCosts = { falseNegative: 1, falsePositive: 1 };
    const problems = new Map();
    const priced = new Map();

    return (name, { falseNegative, falsePositive }) => {
      const known = losses.find((loss) => loss.name === name);
      if (!known) return Promise.reject(new RangeError(`this report has no loss ${JSON.stringify(name)}`));
      const [kept, costs] = name === "hamming" ? [priced, { falseNegative, falsePositive }] : [problems, unitCosts];
      const key = `${name} ${costs.falseNegative} ${costs.falsePositive}`;
      const problem = kept.get(key) ?? openProblem(source, known, costs);
      kept.delete(key); // the one asked for last stands last
      kept.set(key, problem);
      if (priced.size > KEPT_PRICES) priced.delete(priced.keys().next().value);
      return problem;
    };
  }

  /** The pictures, a line each, cut apart when the first one is looked at. */
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
    const source = { p, truth, hasTruth: facts.hasTruth, n, m, rows, read };
    const problemAt = rememberProblems(source, facts.losses);
    const image = lazyImages(document);

    /** A loss, and for Hamming what its errors cost: { falseNegative, falsePositive }, or else the report's prices. */
    const problem = (name, prices = facts.prices) => problemAt(name, prices);

    return Object.freeze({
      title: facts.title,
      nInstances: n,
      nLabels: m,
      nTotal: facts.nTotal,
      labels: facts.labels,
      losses: facts.losses,
      penalties: facts.penalties,
      prices: facts.prices,
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

  /** The data set of a page; the same one whenever it is asked for. */
  Abstain.open = (document) => {
    if (!opened.has(document)) opened.set(document, makeDataset(document));
    return opened.get(document);
  };
  Object.freeze(Abstain);
})();
