"use strict";

/** One loss of a data set: decides for any penalty and cost, and finds costs that keep to a share or an error rate. */
Abstain.problem = (() => {
  const { penaltyValues, countAbstained } = Abstain.choice;
  const N_CURVE_COSTS = 101;
  const N_COARSE_COSTS = 15; // enough to search for an error rate before the curve is computed
  const MILLISECONDS_AT_ONCE = 20; // of work, before the browser may handle events
  const DIGITS = 10; // of a cost that keeps to a share
  const FEWEST_DIGITS = 3; // of a cost that people read
  const ROWS_AT_ONCE = 512; // compared before checking whether to go on
  const COST_PRECISION = 1e-6; // relative, of a cost that keeps to an error rate

  function sum(counts) {
    let total = 0;
    for (let k = 0; k < counts.length; k++) total += counts[k];
    return total;
  }

  /**
   * Bisects an interval of costs. Instances abstain less as the cost grows, so those that abstain on as many labels at
   * both ends are settled: each step looks only at the others, about half as many as the step before.
   *
   * @param interval {penalty, low, high, precision}, where the precision is relative
   * @param {(rows, nAbstained) => {reviewed, wrong}} totalsOf the sums of these instances
   * @param {({reviewed, wrong}) => boolean} isLow whether a cost with these sums is a lower end
   */
  function bisect(inner, { penalty, low, high, precision }, totalsOf, isLow) {
    let { rows } = inner;
    let [atLow, atHigh] = [low, high].map((cost) => countAbstained(inner, penalty, cost, rows));
    let settled = { reviewed: 0, wrong: 0 };
    const add = (part) => ({ reviewed: settled.reviewed + part.reviewed, wrong: settled.wrong + part.wrong });
    for (;;) {
      const isSettled = atLow.map((count, k) => (count === atHigh[k] ? 1 : 0));
      const equal = (_, k) => isSettled[k] === 1;
      const different = (_, k) => isSettled[k] === 0;
      settled = add(totalsOf(rows.filter(equal), atLow.filter(equal)));
      [rows, atLow, atHigh] = [rows, atLow, atHigh].map((array) => array.filter(different));
      const middle = (low + high) / 2;
      if (high - low <= precision * high || middle === low || middle === high) return [low, high];
      const atMiddle = countAbstained(inner, penalty, middle, rows);
      if (isLow(add(totalsOf(rows, atMiddle)))) [low, atLow] = [middle, atMiddle];
      else [high, atHigh] = [middle, atMiddle];
    }
  }

  /** Sums → what the page shows of a setting. What is not known, or has no meaning for rankings, is null. */
  function describe(inner, totals) {
    const { n, m, hasTruth, loss: { givesRankings } } = inner;
    const known = hasTruth && !givesRankings;
    const answered = n * m - totals.reviewed;
    return {
      reviewed: totals.reviewed,
      share: totals.reviewed / (n * m),
      answered,
      expectedLoss: totals.expectedLoss / n,
      realizedLoss: hasTruth ? totals.realizedLoss / n : null,
      wrong: known ? totals.falseNegatives + totals.falsePositives : null,
      falseNegatives: known ? totals.falseNegatives : null,
      falsePositives: known ? totals.falsePositives : null,
      caught: known ? totals.caught : null,
      wrongWithoutReview: known ? inner.nWrongWithoutReview : null,
      expectedWrong: givesRankings ? null : totals.expectedFalseNegatives + totals.expectedFalsePositives,
      expectedFalseNegatives: givesRankings ? null : totals.expectedFalseNegatives,
      expectedFalsePositives: givesRankings ? null : totals.expectedFalsePositives,
      perLabel: {
        abstained: totals.abstained,
        answered: totals.abstained.map((abstained) => n - abstained),
        wrong: known ? totals.wrong : null,
      },
    };
  }

  /** The share of wrong answers, realised or else expected; null where nothing is answered, and for rankings. */
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
      caughtShare: facts.wrongWithoutReview ? facts.caught / facts.wrongWithoutReview : null,
      reviewed: facts.reviewed,
      falseNegatives: facts.falseNegatives,
      falsePositives: facts.falsePositives,
      expectedFalseNegatives: facts.expectedFalseNegatives,
      expectedFalsePositives: facts.expectedFalsePositives,
    };
  }

  /** Costs of few digits from 0 to the largest, denser where they are small: most decisions change there. */
  function spreadCosts(largest, length) {
    return Array.from({ length }, (_, k) => Number((largest * (k / (length - 1)) ** 2).toPrecision(6)));
  }

  /** The cost from which on every label is answered under any penalty, rounded up: `largest_cost` in loss_facts.py. */
  function findLargestCost({ n, m, profile: { values }, constants }) {
    const unitPenalty = penaltyValues("concave", 1, m);
    let saved = 0;
    for (let first = 0; first < n * (m + 1); first += m + 1) {
      for (let a = 1; a <= m; a++) saved = Math.max(saved, (values[first] - values[first + a]) / unitPenalty[a]);
    }
    if (saved <= constants.tie) return constants.smallestCost;
    const step = Number(`1e${Math.floor(Math.log10(saved)) - 1}`);
    return Number((Math.ceil((saved / step) * (1 - constants.slack)) * step).toPrecision(3));
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

  class Problem {
    #inner;
    #largestCost;
    #unusedCodes = null;
    #last = null;
    #curves = new Map();
    #points = new Map();

    constructor(inner, largestCost) {
      this.#inner = inner;
      this.#largestCost = largestCost;
    }

    /** A cost of few digits, from which on every label is answered. */
    get largestCost() {
      return this.#largestCost;
    }

    /** The answers and abstentions at this cost, and their sums. */
    setting(penalty, cost) {
      if (this.#last?.penalty === penalty && this.#last.cost === cost) return this.#last;
      const { engine, loss, n, m, rows } = this.#inner;
      const codes = Abstain.answers.emptyCodes(loss.givesRankings, n, m);
      const nAbstained = countAbstained(this.#inner, penalty, cost, rows);
      const totals = engine.writeAnswers(this.#inner, rows, nAbstained, codes);
      this.#last = { penalty, cost, codes, nAbstained, ...describe(this.#inner, totals) };
      return this.#last;
    }

    /**
     * Points for costs from 0 to the largest, computed little by little. onProgress is called with the share that is
     * done; if it returns false the computation is given up, and the result is null.
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
        if (performance.now() - since > MILLISECONDS_AT_ONCE) {
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

    /** The points of `curve`, computed at once: the page is about to be printed. */
    curveNow(penalty) {
      if (!this.#points.has(penalty)) {
        const points = spreadCosts(this.#largestCost, N_CURVE_COSTS).map((cost) => this.point(penalty, cost));
        this.#points.set(penalty, points);
        this.#curves.set(penalty, Promise.resolve(points));
      }
      return this.#points.get(penalty);
    }

    /** A point of the curve: sums of a setting, without its answers. */
    point(penalty, cost) {
      const { rows } = this.#inner;
      return pointOf(cost, describe(this.#inner, this.#totals(rows, countAbstained(this.#inner, penalty, cost, rows))));
    }

    /** The sums of these instances; their answers are overwritten by the next call. */
    #totals(rows, nAbstained) {
      const { engine, loss, n, m } = this.#inner;
      this.#unusedCodes ??= Abstain.answers.emptyCodes(loss.givesRankings, n, m);
      return engine.writeAnswers(this.#inner, rows, nAbstained, this.#unusedCodes);
    }

    /** The least cost at which at most this share of the labels is reviewed. */
    costForShare(penalty, share) {
      const { n, m, rows, constants: { tie } } = this.#inner;
      const allowed = share * n * m * (1 + tie);
      const known = this.#points.get(penalty) ?? [];
      const atZeroCost = known[0]?.reviewed ?? sum(countAbstained(this.#inner, penalty, 0, rows));
      if (atZeroCost <= allowed) return 0;
      // The share falls as the cost grows, so the cost lies between two points of the curve.
      const next = known.findIndex(({ reviewed }) => reviewed <= allowed);
      const [low, high] = next > 0 ? [known[next - 1].cost, known[next].cost] : [0, this.#largestCost];
      const totalsOf = (_, nAbstained) => ({ reviewed: sum(nAbstained), wrong: 0 });
      const isTooMuch = ({ reviewed }) => reviewed > allowed;
      return roundUp(bisect(this.#inner, { penalty, low, high, precision: tie }, totalsOf, isTooMuch)[1]);
    }

    /** The shortest number near this cost that gives the same decisions. */
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
      const totalsOf = (rows, nAbstained) => {
        const totals = this.#totals(rows, nAbstained);
        const wrong = hasTruth
          ? totals.falseNegatives + totals.falsePositives
          : totals.expectedFalseNegatives + totals.expectedFalsePositives;
        return { reviewed: totals.reviewed, wrong };
      };
      const isGood = ({ reviewed, wrong }) => wrong <= rate * (n * m - reviewed);
      const interval = { penalty, low: costs[last], high: costs[last + 1], precision: COST_PRECISION };
      return bisect(this.#inner, interval, totalsOf, isGood)[0];
    }
  }

  /** Marks where the complete prediction is wrong: abstentions there catch an error. */
  function markErrorsWithoutReview(inner) {
    const { engine, hasTruth, loss, n, m, rows, truth } = inner;
    const wrong = new Uint8Array(n * m);
    Object.assign(inner, { wrongWithoutReview: wrong, nWrongWithoutReview: 0 });
    if (!hasTruth || loss.givesRankings) return;
    const codes = Abstain.answers.emptyCodes(false, n, m);
    engine.writeAnswers(inner, rows, new Int32Array(n), codes);
    for (let e = 0; e < codes.length; e++) wrong[e] = codes[e] !== truth[e] ? 1 : 0;
    inner.nWrongWithoutReview = sum(wrong);
  }

  /** Prepares the decisions of a loss; `costs` are what the two kinds of error cost, if these are its parameters. */
  async function open(source, loss, costs) {
    const engine = Abstain.engines.get(loss.name);
    const profile = await engine.profile(source, costs, loss.name);
    const inner = { ...source, engine, loss, costs, profile, realizedLossOf: engine.realizedLossOf };
    markErrorsWithoutReview(inner);
    return new Problem(inner, engine.hasPrices ? findLargestCost(inner) : loss.largestCost);
  }

  return { open };
})();
