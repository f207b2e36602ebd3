"use strict";

// The bill, and the figures at the chosen setting as cards.
const Figures = (() => {
  const { make, setText } = Elements;
  const { count, percent, quantity, NONE, SPACE } = Format;

  /** What a review costs: as much as the reader says, or else as the cost says where that counts wrong labels. */
  const reviewPrice = (state, cost) => state.review ?? (state.loss === "hamming" ? cost : null);

  /** What reviews and errors cost at the reader's prices; without a truth, the errors are the expected ones. */
  function bill({ setting, full, state, dataset }) {
    const review = reviewPrice(state, setting.cost);
    if (state.loss === "rank" || review === null) return null;
    const isExpected = !dataset.hasTruth;
    const errors = (of) => isExpected
      ? state.missed * of.expectedMissed + state.wrong * of.expectedFalseAlarms
      : state.missed * of.missed + state.wrong * of.falseAlarms;
    return {
      isExpected,
      here: review * setting.reviewed + errors(setting),
      nothing: errors(full),
      everything: review * dataset.nInstances * dataset.nLabels,
    };
  }

  const card = (key, title, value, remark) => ({ key, texts: [title, value, remark] });

  function losses({ setting, full, dataset }) {
    const expected = quantity(setting.expectedLoss);
    const cards = [
      card("expected", "Expected loss", expected, `per instance; ${quantity(full.expectedLoss)} without review`),
    ];
    if (dataset.hasTruth) {
      const remark = `with the truth; ${quantity(full.realizedLoss)} without review`;
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

  function money({ bill: total }) {
    if (total === null) return card("bill", "Bill", NONE, "say what a review costs to see it");
    const others = `${quantity(total.nothing)} without review, ${quantity(total.everything)} reviewing all`;
    return card("bill", total.isExpected ? "Bill, expected" : "Bill", quantity(total.here), others);
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

  return Object.freeze({ bill, reviewPrice, render });
})();
