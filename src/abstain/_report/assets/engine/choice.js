"use strict";

/**
 * The number of abstentions of each instance: argmin over a of (least expected loss with a abstentions) + penalty(a),
 * the smallest of equally good ones. It follows the library's kernels/choice.py, from which the tolerances come.
 */
Abstain.choice = (() => {
  const PENALTIES = {
    linear: (cost, a) => cost * a,
    concave: (cost, a, m) => cost * ((a * m) / (m + a)),
  };

  /** f(0) … f(m), where f(0) is 0 even if the cost is infinite. */
  function penaltyValues(penalty, cost, m) {
    const values = new Float64Array(m + 1);
    for (let a = 1; a <= m; a++) values[a] = PENALTIES[penalty](cost, a, m);
    return values;
  }

  /** The cost at which an abstention is counted, so that ties are answered. */
  function tipped(cost, tieScale, tie) {
    return cost + tie * (tieScale + cost);
  }

  /** The penalties with which totals are compared, and up to which difference totals are equal. */
  function comparedPenalties(penalty, cost, { m, constants, loss: { tieScale } }) {
    const penalties = penaltyValues(penalty, cost, m);
    if (penalty !== "linear") return { penalties, tie: constants.tie };
    return { penalties: penalties.map((value, a) => tipped(value, tieScale * a, constants.tie)), tie: 0 };
  }

  /** The fewest abstentions whose total is least up to a tie, for the instance whose values begin at `first`. */
  function choose(values, first, { penalties, tie }, tieScale) {
    const width = penalties.length;
    let least = Infinity;
    for (let a = 0; a < width; a++) {
      const total = values[first + a] + penalties[a];
      if (total < least) least = total;
    }
    const bound = least + tie * (tieScale + Math.abs(least));
    let a = 0;
    while (values[first + a] + penalties[a] > bound) a++;
    return a;
  }

  /** How many of the m increasing numbers from `first` on are at most the threshold. */
  function countUpTo(numbers, first, m, threshold) {
    let low = 0;
    let high = m;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (numbers[first + middle] <= threshold) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** How many labels each of these instances abstains on. */
  function countAbstained(inner, penalty, cost, rows) {
    const { m, profile: { values, sortedRisks }, loss: { tieScale }, constants } = inner;
    const found = new Int32Array(rows.length);
    if (sortedRisks !== null && penalty === "linear") {
      const threshold = tipped(cost, tieScale, constants.tie);
      for (let k = 0; k < rows.length; k++) found[k] = m - countUpTo(sortedRisks, rows[k] * m, m, threshold);
    } else {
      const compared = comparedPenalties(penalty, cost, inner);
      for (let k = 0; k < rows.length; k++) found[k] = choose(values, rows[k] * (m + 1), compared, tieScale);
    }
    return found;
  }

  return { penaltyValues, countAbstained };
})();
