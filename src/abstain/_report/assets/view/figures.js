"use strict";

// The figures at the chosen setting, as cards.
const Figures = (() => {
  const { make, setText } = Elements;
  const { count, percent, quantity, NONE, SPACE } = Format;

  const card = (key, title, value, note) => ({ key, texts: [title, value, note] });

  function lossCards({ setting, full, dataset }) {
    const expectedNote = `per instance, as the probabilities promise; ${quantity(full.expectedLoss)} without review`;
    const cards = [card("expected", "Expected loss", quantity(setting.expectedLoss), expectedNote)];
    if (dataset.hasTruth) {
      const note = `per instance, as the truth says; ${quantity(full.realizedLoss)} without review`;
      cards.push(card("realised", "Realised loss", quantity(setting.realizedLoss), note));
    }
    return cards;
  }

  function errorCards({ setting, dataset }) {
    const { answered, wrong, wrongWithoutReview, caught, expectedWrong } = setting;
    const known = dataset.hasTruth;
    const nErrors = known ? wrong : expectedWrong;
    const rate = answered === 0 ? "nothing is answered" : `${percent(nErrors / answered)} of the answers`;
    if (!known) return [card("errors", "Errors expected", `≈${SPACE}${count(nErrors)}`, rate)];
    const share = wrongWithoutReview === 0 ? NONE : percent(caught / wrongWithoutReview);
    const note = `${count(caught)} of the ${count(wrongWithoutReview)} made without review`;
    return [card("errors", "Errors left", count(nErrors), rate), card("caught", "Errors caught", share, note)];
  }

  function billCard({ bill, loss }) {
    if (bill === null) return card("bill", "Bill", NONE, "say what a review costs");
    const expected = bill.isExpected ? "" : `${quantity(bill.expected)} expected; `;
    const others = `${quantity(bill.withoutReview)} without review, ${quantity(bill.reviewingAll)} reviewing all`;
    const independence = loss.hasPrices ? "" : ". The decisions do not depend on the prices";
    const title = bill.isExpected ? "Bill, expected" : "Bill";
    return card("bill", title, quantity(bill.here), `${expected}${others}${independence}`);
  }

  function allCards(view) {
    const { setting, dataset, loss } = view;
    const note = `${count(setting.reviewed)} of ${count(dataset.nInstances * dataset.nLabels)} labels`;
    const share = card("share", "Share reviewed", percent(setting.share), note);
    // Rankings have no wrong labels, and so no bill.
    return [share, ...lossCards(view), ...(loss.givesRankings ? [] : [...errorCards(view), billCard(view)])];
  }

  const emptyCard = ({ key }) =>
    make("div", { "data-figure": key }, make("dt"), make("dd", { class: "value" }), make("dd", { class: "quiet" }));

  function render(view) {
    const place = Elements.byId("figures");
    const cards = allCards(view);
    const shown = [...place.children].map((element) => element.dataset.figure);
    if (shown.join() !== cards.map(({ key }) => key).join()) place.replaceChildren(...cards.map(emptyCard));
    place.dataset.count = cards.length;
    cards.forEach(({ texts }, i) => texts.forEach((text, j) => setText(place.children[i].children[j], text)));
  }

  return Object.freeze({ render });
})();
