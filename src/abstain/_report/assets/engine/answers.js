"use strict";

/**
 * Writes the best answers of some instances, given how many labels each of them abstains on, and returns their sums:
 * { reviewed, expectedLoss, realizedLoss, falseNegatives, falsePositives, expectedFalseNegatives,
 * expectedFalsePositives, caught, abstained, wrong }, where the last two are counts per label. Where the truth is not
 * known it is 0 throughout, and the sums that depend on it mean nothing.
 *
 * Codes are 1, 0 and −1 for an abstention, or for rankings positions from 0. tp, fp and fn are the numbers of true
 * positives, false positives and false negatives of one instance.
 */
Abstain.answers = (() => {
  function perLabel(m) {
    return { abstained: new Int32Array(m), wrong: new Int32Array(m) };
  }

  // For speed, the loops below keep their sums in local variables and avoid branches that depend on the labels.

  /** Hamming and subset 0/1: the first labels of the order are answered, each with what costs less, or 0 if equal. */
  function answerMostCertain(problem, rows, nAbstained, codes) {
    const { p, truth, m, realizedLossOf, wrongWithoutReview, costs } = problem;
    const { falseNegative, falsePositive } = costs;
    const { order, values } = problem.profile;
    const { abstained, wrong } = perLabel(m);
    let [reviewed, expectedLoss, realizedLoss, caught] = [0, 0, 0, 0];
    let [falseNegatives, falsePositives, expectedFalseNegatives, expectedFalsePositives] = [0, 0, 0, 0];
    for (let k = 0; k < rows.length; k++) {
      const row = rows[k] * m;
      const end = m - nAbstained[k];
      let tp = 0;
      let fp = 0;
      let fn = 0;
      for (let place = 0; place < end; place++) {
        const j = order[row + place];
        const x = p[row + j];
        const relevant = truth[row + j];
        const yes = falseNegative * x > falsePositive * (1 - x) ? 1 : 0;
        const mistake = yes ^ relevant;
        codes[row + j] = yes;
        wrong[j] += mistake;
        tp += yes & relevant;
        fp += yes & mistake;
        fn += relevant & mistake;
        expectedFalsePositives += yes * (1 - x);
        expectedFalseNegatives += (1 - yes) * x;
      }
      for (let place = end; place < m; place++) {
        const j = order[row + place];
        codes[row + j] = -1;
        abstained[j]++;
        caught += wrongWithoutReview[row + j];
      }
      reviewed += nAbstained[k];
      expectedLoss += values[rows[k] * (m + 1) + nAbstained[k]];
      realizedLoss += realizedLossOf(tp, fp, fn, costs);
      falsePositives += fp;
      falseNegatives += fn;
    }
    const errors = { falseNegatives, falsePositives, expectedFalseNegatives, expectedFalsePositives, caught };
    return { reviewed, expectedLoss, realizedLoss, ...errors, abstained, wrong };
  }

  /** F1 and Jaccard: labels before the abstained ones are answered 1, labels after them 0. */
  function answerAroundGap(problem, rows, nAbstained, codes) {
    const { p, truth, m, realizedLossOf, wrongWithoutReview, costs } = problem;
    const { order, values, start } = problem.profile;
    const { abstained, wrong } = perLabel(m);
    let [reviewed, expectedLoss, realizedLoss, caught] = [0, 0, 0, 0];
    let [falseNegatives, falsePositives, expectedFalseNegatives, expectedFalsePositives] = [0, 0, 0, 0];
    for (let k = 0; k < rows.length; k++) {
      const row = rows[k] * m;
      const point = rows[k] * (m + 1) + nAbstained[k];
      const from = start[point];
      const to = from + nAbstained[k];
      let tp = 0;
      let fn = 0;
      for (let place = 0; place < from; place++) {
        const j = order[row + place];
        const relevant = truth[row + j];
        codes[row + j] = 1;
        expectedFalsePositives += 1 - p[row + j];
        tp += relevant;
        wrong[j] += 1 - relevant;
      }
      for (let place = from; place < to; place++) {
        const j = order[row + place];
        codes[row + j] = -1;
        abstained[j]++;
        caught += wrongWithoutReview[row + j];
      }
      for (let place = to; place < m; place++) {
        const j = order[row + place];
        const relevant = truth[row + j];
        codes[row + j] = 0;
        expectedFalseNegatives += p[row + j];
        fn += relevant;
        wrong[j] += relevant;
      }
      reviewed += nAbstained[k];
      expectedLoss += values[point];
      realizedLoss += realizedLossOf(tp, from - tp, fn, costs);
      falsePositives += from - tp;
      falseNegatives += fn;
    }
    const errors = { falseNegatives, falsePositives, expectedFalseNegatives, expectedFalsePositives, caught };
    return { reviewed, expectedLoss, realizedLoss, ...errors, abstained, wrong };
  }

  /**
   * Rank: labels on both sides of the abstained ones get positions. A relevant label at position q is preceded by q
   * labels; t relevant labels are preceded by t(t − 1)/2 relevant ones in total.
   */
  function rankAroundGap(problem, rows, nAbstained, codes) {
    const { truth, m } = problem;
    const { order, values, start } = problem.profile;
    const { abstained, wrong } = perLabel(m);
    let [reviewed, expectedLoss, realizedLoss] = [0, 0, 0];
    for (let k = 0; k < rows.length; k++) {
      const row = rows[k] * m;
      const point = rows[k] * (m + 1) + nAbstained[k];
      const from = start[point];
      const to = from + nAbstained[k];
      let preceding = 0;
      let nRelevant = 0;
      for (let place = 0; place < m; place++) {
        const j = order[row + place];
        if (place >= from && place < to) {
          codes[row + j] = -1;
          abstained[j]++;
          continue;
        }
        const position = place < from ? place : place - nAbstained[k];
        codes[row + j] = position;
        preceding += truth[row + j] * position;
        nRelevant += truth[row + j];
      }
      reviewed += nAbstained[k];
      expectedLoss += values[point];
      realizedLoss += preceding - (nRelevant * (nRelevant - 1)) / 2;
    }
    return { reviewed, expectedLoss, realizedLoss, abstained, wrong };
  }

  /** An empty array for the codes of n × m answers: positions in rankings need more bits than labels. */
  function emptyCodes(givesRankings, n, m) {
    if (!givesRankings) return new Int8Array(n * m);
    return m <= 1 << 15 ? new Int16Array(n * m) : new Int32Array(n * m);
  }

  return { answerMostCertain, answerAroundGap, rankAroundGap, emptyCodes };
})();
