"use strict";

// What reviews and errors cost at the reader's prices.
const Bill = (() => {
  /** The bill of a setting or of a point of a curve; realized is null where the truth is not known. */
  function of({ review, falseNegative, falsePositive }, point) {
    const reviews = review * point.reviewed;
    const expected = falseNegative * point.expectedFalseNegatives + falsePositive * point.expectedFalsePositives;
    const realized = falseNegative * point.falseNegatives + falsePositive * point.falsePositives;
    return { expected: reviews + expected, realized: point.falseNegatives === null ? null : reviews + realized };
  }

  /** The bills of this setting, of no review and of reviewing everything; null without a price of a review. */
  function compare({ setting, full, state, dataset, loss }) {
    if (loss.givesRankings || state.review === null) return null;
    const { expected, realized } = of(state, setting);
    const withoutReview = of(state, full);
    return {
      isExpected: realized === null,
      here: realized ?? expected,
      expected,
      withoutReview: withoutReview.realized ?? withoutReview.expected,
      reviewingAll: state.review * dataset.nInstances * dataset.nLabels,
    };
  }

  return Object.freeze({ of, compare });
})();
