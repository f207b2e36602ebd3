"use strict";

/**
 * Risk profiles: for each instance an order of its labels, and the least expected loss for each number of abstentions.
 * Sums are added in the same order as in the library's kernels, so that the numbers are equal to the last bit.
 *
 * A profile is { order, values, start, sortedRisks }. Instance i has its labels in order[i·m …]. With a abstentions it
 * abstains on the labels from place start[i·(m + 1) + a] of that order on (on the last ones if start is null), and
 * expects a loss of values[i·(m + 1) + a]. sortedRisks holds what each answer is expected to cost, in this order, if
 * the loss is the sum of these risks; otherwise it is null.
 */
Abstain.profiles = (() => {
  const { placeArray, sortRows } = Abstain.sorting;

  /** Orders labels by the expected cost of their best answer, smallest first. */
  function sortByRisk({ p, n, m }, { falseNegative, falsePositive }) {
    const risks = new Float64Array(n * m);
    for (let e = 0; e < risks.length; e++) risks[e] = Math.min(falseNegative * p[e], falsePositive * (1 - p[e]));
    const sortedRisks = new Float64Array(n * m);
    return { order: sortRows(risks, n, m, sortedRisks), sortedRisks };
  }

  /** Orders labels by risk where every error costs 1. Computed once, for all losses that need it. */
  function sortByUnitRisk(source) {
    source.byUnitRisk ??= sortByRisk(source, { falseNegative: 1, falsePositive: 1 });
    return source.byUnitRisk;
  }

  /** Orders labels by probability, largest first. Computed once, for all losses that need it. */
  function sortByProbability(source) {
    const { p, n, m } = source;
    if (!source.byProbability) {
      const keys = new Float64Array(n * m);
      for (let e = 0; e < keys.length; e++) keys[e] = -p[e];
      source.byProbability = sortRows(keys, n, m, null);
    }
    return source.byProbability;
  }

  /** Hamming: values[a] = the sum of the m − a smallest risks. */
  function sumOfRisks(source, costs) {
    const { n, m } = source;
    const areUnit = costs.falseNegative === 1 && costs.falsePositive === 1;
    const { order, sortedRisks } = areUnit ? sortByUnitRisk(source) : sortByRisk(source, costs);
    const values = new Float64Array(n * (m + 1));
    for (let i = 0; i < n; i++) {
      let total = 0;
      for (let d = 0; d < m; d++) {
        total += sortedRisks[i * m + d];
        values[i * (m + 1) + m - 1 - d] = total;
      }
    }
    return { order, values, start: null, sortedRisks };
  }

  /** Subset 0/1: values[a] = 1 − the product of (1 − risk) over the m − a smallest risks. */
  function probabilityOfAnyError(source) {
    const { n, m } = source;
    const { order, sortedRisks } = sortByUnitRisk(source);
    const values = new Float64Array(n * (m + 1));
    for (let i = 0; i < n; i++) {
      let allRight = 1;
      for (let d = 0; d < m; d++) {
        allRight *= 1 - sortedRisks[i * m + d];
        values[i * (m + 1) + m - 1 - d] = 1 - allRight;
      }
    }
    return { order, values, start: null, sortedRisks: null };
  }

  /**
   * Rank: the best d labels to rank are some of the most and some of the least probable ones. With α = Σ (1 − p) over
   * the former and β = Σ p over the latter, the next label joins the former iff α < β. One label alone is no ranking.
   */
  function discordantPairs(source) {
    const { p, n, m } = source;
    const order = sortByProbability(source);
    const values = new Float64Array(n * (m + 1));
    const start = placeArray(n * (m + 1), m + 1);
    for (let i = 0; i < n; i++) {
      const row = i * m;
      const first = i * (m + 1);
      let alpha = 0;
      let beta = 0;
      let total = 0;
      let left = 0;
      let right = m;
      for (let d = 1; d <= m; d++) {
        if (alpha < beta) {
          const x = p[row + order[row + left]];
          total += x * alpha + (1 - x) * beta;
          alpha += 1 - x;
          left++;
        } else {
          right--;
          const x = p[row + order[row + right]];
          total += x * alpha + (1 - x) * beta;
          beta += x;
        }
        values[first + m - d] = total;
        start[first + m - d] = left;
      }
      if (m > 1) values[first + m - 1] = Infinity;
    }
    return { order, values, start, sortedRisks: null };
  }

  /** F1 and Jaccard: computing the profile takes long, so the library has stored it in the page. */
  async function storedProfile(source, _, name) {
    const [values, start] = await Promise.all([source.read(`${name}-values`), source.read(`${name}-start`)]);
    return { order: sortByProbability(source), values, start, sortedRisks: null };
  }

  return { sumOfRisks, probabilityOfAnyError, discordantPairs, storedProfile };
})();
