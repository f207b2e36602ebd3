"use strict";

/**
 * Given how many labels each of some instances leaves open, their answers, and what these add up to. One walk over all
 * labels; the truth is 0 throughout where it is not known, and what depends on it is then nobody's business.
 */
Abstain.answers = (() => {
  /** ℓ of one instance, given how many labels are rightly 1, wrongly 1 and wrongly 0, and what these cost; 0/0 is 1. */
  const REALIZED = {
    hamming: (hits, extra, missed, costs) => costs.falseNegative * missed + costs.falsePositive * extra,
    subset: (hits, extra, missed) => (extra + missed > 0 ? 1 : 0),
    f1: (hits, extra, missed) => (extra + missed > 0 ? 1 - hits / (0.5 * (hits + extra) + 0.5 * (hits + missed)) : 0),
    jaccard: (hits, extra, missed) => (extra + missed > 0 ? 1 - hits / (hits + extra + missed) : 0),
  };

  function perLabel(m) {
    return { abstained: new Int32Array(m), wrong: new Int32Array(m) };
  }

  // The loops below keep their sums in local variables and, where labels differ, do without branches: both are slow.

  /** Hamming and subset 0/1: the first ones of the order are answered, each with what costs less; equal is 0. */
  function answerMostCertain(problem, rows, nAbstained, codes) {
    const { p, truth, m, realized, wrongWithout, costs } = problem;
    const { falseNegative, falsePositive } = costs;
    const { order, values } = problem.profile;
    const { abstained, wrong } = perLabel(m);
    let [reviewed, expectedLoss, realizedLoss, caught] = [0, 0, 0, 0];
    let [allExtra, allMissed, expectedFalseAlarms, expectedMissed] = [0, 0, 0, 0];
    for (let k = 0; k < rows.length; k++) {
      const row = rows[k] * m;
      const end = m - nAbstained[k];
      let hits = 0;
      let extra = 0;
      let missed = 0;
      for (let place = 0; place < end; place++) {
        const j = order[row + place];
        const x = p[row + j];
        const relevant = truth[row + j];
        const yes = falseNegative * x > falsePositive * (1 - x) ? 1 : 0;
        const mistake = yes ^ relevant;
        codes[row + j] = yes;
        wrong[j] += mistake;
        hits += yes & relevant;
        extra += yes & mistake;
        missed += relevant & mistake;
        expectedFalseAlarms += yes * (1 - x);
        expectedMissed += (1 - yes) * x;
      }
      for (let place = end; place < m; place++) {
        const j = order[row + place];
        codes[row + j] = -1;
        abstained[j]++;
        caught += wrongWithout[row + j];
      }
      reviewed += nAbstained[k];
      expectedLoss += values[rows[k] * (m + 1) + nAbstained[k]];
      realizedLoss += realized(hits, extra, missed, costs);
      allExtra += extra;
      allMissed += missed;
    }
    const errors = { missed: allMissed, falseAlarms: allExtra, expectedMissed, expectedFalseAlarms, caught };
    return { reviewed, expectedLoss, realizedLoss, ...errors, abstained, wrong };
  }

  /** F1 and Jaccard: 1 before the gap, 0 after it. */
  function answerAroundGap(problem, rows, nAbstained, codes) {
    const { p, truth, m, realized, wrongWithout } = problem;
    const { order, values, start } = problem.profile;
    const { abstained, wrong } = perLabel(m);
    let [reviewed, expectedLoss, realizedLoss, caught] = [0, 0, 0, 0];
    let [allExtra, allMissed, expectedFalseAlarms, expectedMissed] = [0, 0, 0, 0];
    for (let k = 0; k < rows.length; k++) {
      const row = rows[k] * m;
      const entry = rows[k] * (m + 1) + nAbstained[k];
      const from = start[entry];
      const to = from + nAbstained[k];
      let hits = 0;
      let missed = 0;
      for (let place = 0; place < from; place++) {
        const j = order[row + place];
        const relevant = truth[row + j];
        codes[row + j] = 1;
        expectedFalseAlarms += 1 - p[row + j];
        hits += relevant;
        wrong[j] += 1 - relevant;
      }
      for (let place = from; place < to; place++) {
        const j = order[row + place];
        codes[row + j] = -1;
        abstained[j]++;
        caught += wrongWithout[row + j];
      }
      for (let place = to; place < m; place++) {
        const j = order[row + place];
        const relevant = truth[row + j];
        codes[row + j] = 0;
        expectedMissed += p[row + j];
        missed += relevant;
        wrong[j] += relevant;
      }
      reviewed += nAbstained[k];
      expectedLoss += values[entry];
      realizedLoss += realized(hits, from - hits, missed);
      allExtra += from - hits;
      allMissed += missed;
    }
    const errors = { missed: allMissed, falseAlarms: allExtra, expectedMissed, expectedFalseAlarms, caught };
    return { reviewed, expectedLoss, realizedLoss, ...errors, abstained, wrong };
  }

  /**
   * Rank: positions on both sides of the gap. A relevant label at position q has q labels ahead; t relevant ones have
   * t(t − 1)/2 relevant ones ahead in all.
   */
  function rankAroundGap(problem, rows, nAbstained, codes) {
    const { truth, m } = problem;
    const { order, values, start } = problem.profile;
    const { abstained, wrong } = perLabel(m);
    let [reviewed, expectedLoss, realizedLoss] = [0, 0, 0];
    for (let k = 0; k < rows.length; k++) {
      const row = rows[k] * m;
      const entry = rows[k] * (m + 1) + nAbstained[k];
      const from = start[entry];
      const to = from + nAbstained[k];
      let ahead = 0;
      let count = 0;
      for (let place = 0; place < m; place++) {
        const j = order[row + place];
        if (place >= from && place < to) {
          codes[row + j] = -1;
          abstained[j]++;
          continue;
        }
        const position = place < from ? place : place - nAbstained[k];
        codes[row + j] = position;
        ahead += truth[row + j] * position;
        count += truth[row + j];
      }
      reviewed += nAbstained[k];
      expectedLoss += values[entry];
      realizedLoss += ahead - (count * (count - 1)) / 2;
    }
    return { reviewed, expectedLoss, realizedLoss, abstained, wrong };
  }

  const WRITERS = {
    hamming: answerMostCertain,
    subset: answerMostCertain,
    f1: answerAroundGap,
    jaccard: answerAroundGap,
    rank: rankAroundGap,
  };

  /** Room for the answers of a loss: positions need more of it than labels. */
  function room(loss, n, m) {
    if (loss !== "rank") return new Int8Array(n * m);
    return m <= 1 << 15 ? new Int16Array(n * m) : new Int32Array(n * m);
  }

  return { REALIZED, WRITERS, room };
})();
