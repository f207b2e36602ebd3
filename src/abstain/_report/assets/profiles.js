"use strict";

/**
 * What each loss knows before any penalty: its order of the labels, and the least expected loss for each number of
 * abstentions. The same sums in the same order as the library's kernels, so that the numbers are the same to the bit.
 *
 * A profile is { order, values, start, scores }: instance i has its labels in order[i·m …], leaves a of them open from
 * place start[i·(m + 1) + a] on (start null: the last ones), and then expects a loss of values[i·(m + 1) + a]. scores
 * are Hamming's, in this order.
 */
Abstain.profiles = (() => {
  const RUN = 12; // so many are sorted by insertion, more by merging

  function arrayOfPlaces(length, m) {
    return m <= 1 << 16 ? new Uint16Array(length) : new Uint32Array(length);
  }

  function sortRun(keys, places, from, to) {
    for (let i = from + 1; i < to; i++) {
      const key = keys[i];
      const place = places[i];
      let j = i - 1;
      while (j >= from && keys[j] > key) {
        keys[j + 1] = keys[j];
        places[j + 1] = places[j];
        j--;
      }
      keys[j + 1] = key;
      places[j + 1] = place;
    }
  }

  function merge(from, to, low, middle, high) {
    let left = low;
    let right = middle;
    for (let k = low; k < high; k++) {
      const takeLeft = left < middle && (right >= high || from.keys[left] <= from.keys[right]);
      const j = takeLeft ? left++ : right++;
      to.keys[k] = from.keys[j];
      to.places[k] = from.places[j];
    }
  }

  /** Sorts keys increasingly and their places along; equal keys keep their order. Returns the one that is sorted. */
  function sortStably(row, spare, m) {
    for (let low = 0; low < m; low += RUN) sortRun(row.keys, row.places, low, Math.min(low + RUN, m));
    let from = row;
    let to = spare;
    for (let width = RUN; width < m; width *= 2) {
      for (let low = 0; low < m; low += 2 * width) {
        merge(from, to, low, Math.min(low + width, m), Math.min(low + 2 * width, m));
      }
      [from, to] = [to, from];
    }
    return from;
  }

  /** For each instance its labels by increasing key, equal ones by number; and the keys, if they are wanted. */
  function sortRows(keys, n, m, keptKeys) {
    const order = arrayOfPlaces(n * m, m);
    const row = { keys: new Float64Array(m), places: arrayOfPlaces(m, m) };
    const spare = { keys: new Float64Array(m), places: arrayOfPlaces(m, m) };
    for (let i = 0; i < n; i++) {
      row.keys.set(keys.subarray(i * m, i * m + m));
      for (let j = 0; j < m; j++) row.places[j] = j;
      const sorted = sortStably(row, spare, m);
      order.set(sorted.places, i * m);
      if (keptKeys) keptKeys.set(sorted.keys, i * m);
    }
    return order;
  }

  /** Labels by what answering them costs at these costs of errors, least first. */
  function byRisk({ p, n, m }, { falseNegative, falsePositive }) {
    const scores = new Float64Array(n * m);
    for (let e = 0; e < scores.length; e++) scores[e] = Math.min(falseNegative * p[e], falsePositive * (1 - p[e]));
    const sorted = new Float64Array(n * m);
    return { order: sortRows(scores, n, m, sorted), scores: sorted };
  }

  /** The same where all errors cost 1; made once for all losses that need it. */
  function byCertainty(source) {
    source.byCertainty ??= byRisk(source, { falseNegative: 1, falsePositive: 1 });
    return source.byCertainty;
  }

  /** Labels by probability, most likely first; made once for all losses that need it. */
  function byProbability(source) {
    const { p, n, m } = source;
    if (!source.byProbability) {
      const keys = new Float64Array(n * m);
      for (let e = 0; e < keys.length; e++) keys[e] = -p[e];
      source.byProbability = sortRows(keys, n, m, null);
    }
    return source.byProbability;
  }

  /** values[a] = the sum of the m − a smallest scores. */
  function hamming(source, costs) {
    const { n, m } = source;
    const areUnit = costs.falseNegative === 1 && costs.falsePositive === 1;
    const { order, scores } = areUnit ? byCertainty(source) : byRisk(source, costs);
    const values = new Float64Array(n * (m + 1));
    for (let i = 0; i < n; i++) {
      let total = 0;
      for (let d = 0; d < m; d++) {
        total += scores[i * m + d];
        values[i * (m + 1) + m - 1 - d] = total;
      }
    }
    return { order, values, start: null, scores };
  }

  /** values[a] = 1 − the product of (1 − score) over the m − a smallest scores. */
  function subset(source) {
    const { n, m } = source;
    const { order, scores } = byCertainty(source);
    const values = new Float64Array(n * (m + 1));
    for (let i = 0; i < n; i++) {
      let right = 1;
      for (let d = 0; d < m; d++) {
        right *= 1 - scores[i * m + d];
        values[i * (m + 1) + m - 1 - d] = 1 - right;
      }
    }
    return { order, values, start: null, scores: null };
  }

  /**
   * The best d labels to rank are some first and some last ones by probability. With α = Σ (1 − p) over the former and
   * β = Σ p over the latter, the next label joins the former iff α < β. One label alone is no ranking.
   */
  function rank(source) {
    const { p, n, m } = source;
    const order = byProbability(source);
    const values = new Float64Array(n * (m + 1));
    const start = arrayOfPlaces(n * (m + 1), m + 1);
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
    return { order, values, start, scores: null };
  }

  /** F1 and Jaccard: the profile takes long, and comes with the page. */
  async function overlap(source, _, name) {
    const [values, start] = await Promise.all([source.read(`${name}-values`), source.read(`${name}-start`)]);
    return { order: byProbability(source), values, start, scores: null };
  }

  return { hamming, subset, rank, f1: overlap, jaccard: overlap };
})();
