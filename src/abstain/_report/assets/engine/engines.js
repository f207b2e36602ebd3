"use strict";

/**
 * The losses that the page can decide for: the mathematics of each, by name. Titles, descriptions and tolerances come
 * from the library. A loss that is not here is shown in the menu as "not in the page".
 *
 * - profile(source, costs, name) gives the risk profile (see profiles.js);
 * - writeAnswers(inner, rows, nAbstained, codes) writes answers and returns their sums (see answers.js);
 * - realizedLossOf(tp, fp, fn, costs) is the loss of one instance, where 0/0 is 1; rankings have their own sum;
 * - hasPrices: whether the prices of the two kinds of error are parameters of the loss.
 */
Abstain.engines = (() => {
  const { profiles, answers } = Abstain;

  return new Map([
    ["hamming", {
      profile: profiles.sumOfRisks,
      writeAnswers: answers.answerMostCertain,
      realizedLossOf: (tp, fp, fn, costs) => costs.falseNegative * fn + costs.falsePositive * fp,
      hasPrices: true,
    }],
    ["subset", {
      profile: profiles.probabilityOfAnyError,
      writeAnswers: answers.answerMostCertain,
      realizedLossOf: (tp, fp, fn) => (fp + fn > 0 ? 1 : 0),
      hasPrices: false,
    }],
    ["f1", {
      profile: profiles.storedProfile,
      writeAnswers: answers.answerAroundGap,
      realizedLossOf: (tp, fp, fn) => (fp + fn > 0 ? 1 - tp / (0.5 * (tp + fp) + 0.5 * (tp + fn)) : 0),
      hasPrices: false,
    }],
    ["jaccard", {
      profile: profiles.storedProfile,
      writeAnswers: answers.answerAroundGap,
      realizedLossOf: (tp, fp, fn) => (fp + fn > 0 ? 1 - tp / (tp + fp + fn) : 0),
      hasPrices: false,
    }],
    ["rank", {
      profile: profiles.discordantPairs,
      writeAnswers: answers.rankAroundGap,
      realizedLossOf: null,
      hasPrices: false,
    }],
  ]);
})();
