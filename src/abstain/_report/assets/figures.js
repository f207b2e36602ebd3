"use strict";

// The bill, and the figures at the chosen setting as cards.
const Figures = (() => {
  const { make, setText } = Elements;
  const { count, percent, quantity, NONE, SPACE } = Format;

  /** What the reviews and the errors of a setting cost: expected, and realised if the truth is known, else null. */
  function billOf({ review, missed, wrong }, { reviewed, ...errors }) {
    const asked = review * reviewed;
    return {
      expected: asked + missed * errors.expectedMissed + wrong * errors.expectedFalseAlarms,
      realized: errors.missed === null ? null : asked + missed * errors.missed + wrong * errors.falseAlarms,
    };
  }

  /** What this setting costs at the reader's prices, and what the extremes do; null if no price of a review is said. */
  function bill({ setting, full, state, dataset }) {
    if (state.loss === "rank" || state.review === null) return null;
    const { expected, realized } = billOf(state, setting);
    const nothing = billOf(state, full);
    return {
      isExpected: realized === null,
      here: realized ?? expected,
      expected,
      nothing: nothing.realized ?? nothing.expected,
      everything: state.review * dataset.nInstances * dataset.nLabels,
    };
  }

  const card = (key, title, value, remark) => ({ key, texts: [title, value, remark] });

  function losses({ setting, full, dataset }) {
    const expected = quantity(setting.expectedLoss);
    const promised = `per instance, as the probabilities promise; ${quantity(full.expectedLoss)} without review`;
    const cards = [card("expected", "Expected loss", expected, promised)];
    if (dataset.hasTruth) {
      const remark = `per instance, as the truth says; ${quantity(full.realizedLoss)} without review`;
      cards.push(card("realised", "Realised loss", quantity(setting.realizedLoss), remark));
    }
    return cards;
  }

  function errors({ setting, dataset }) {
    const { answered, wrong, wrongWithout, caught, expectedWrong } = setting;
    const known = dataset.hasTruth;
    const left = known ? wrong : expectedWrong;
    const rate = answered === 0 ? "nothing is answered" : `${percent(left / answered)} of the answers`;
    if (!known) return [card("left", "Errors expected", `≈${SPACE}${count(left)}`, rate)];
    const share = wrongWithout === 0 ? NONE : percent(caught / wrongWithout);
    return [
      card("left", "Errors left", count(left), rate),
      card("caught", "Errors caught", share, `${count(caught)} of the ${count(wrongWithout)} made without review`),
    ];
  }

  function money({ bill: total, setting }) {
    if (total === null) return card("bill", "Bill", NONE, "say what a review costs");
    const promised = total.isExpected ? "" : `${quantity(total.expected)} expected; `;
    const others = `${quantity(total.nothing)} without review, ${quantity(total.everything)} reviewing all`;
    const aside = setting.loss === "hamming" ? "" : ". The decisions do not depend on the prices";
    const title = total.isExpected ? "Bill, expected" : "Bill";
    return card("bill", title, quantity(total.here), `${promised}${others}${aside}`);
  }

  function entries(view) {
    const { setting, dataset } = view;
    const remark = `${count(setting.reviewed)} of ${count(dataset.nInstances * dataset.nLabels)} labels`;
    const share = card("share", "Share reviewed", percent(setting.share), remark);
    // Rankings have no wrong labels, and so no bill.
    return [share, ...losses(view), ...(setting.loss === "rank" ? [] : [...errors(view), money(view)])];
  }

  const emptyCard = ({ key }) =>
    make("div", { "data-figure": key }, make("dt"), make("dd", { class: "value" }), make("dd", { class: "quiet" }));

  function render(view) {
    const place = Elements.byId("figures");
    const cards = entries(view);
    const shown = [...place.children].map((element) => element.dataset.figure);
    if (shown.join() !== cards.map(({ key }) => key).join()) place.replaceChildren(...cards.map(emptyCard));
    place.dataset.count = cards.length;
    cards.forEach(({ texts }, i) => texts.forEach((text, j) => setText(place.children[i].children[j], text)));
  }

  return Object.freeze({ bill, billOf, render });
})();
