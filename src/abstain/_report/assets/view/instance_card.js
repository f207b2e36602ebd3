"use strict";

// One instance as an element: its name, text and image, and its labels as chips in groups (yes, ask a human, no).
const InstanceCard = (() => {
  const { breakable, make } = Elements;
  const { percent } = Format;
  const MAX_RANKED_CLOSED = 12; // ranked labels shown of an instance that is not expanded
  const MAX_CHIPS_CLOSED = 30; // chips of a group of such an instance; the others are only counted
  const MAX_CHIPS_OPEN = 400; // chips of a group of an expanded instance

  const GROUPS = Object.freeze({
    yes: { symbol: "✓", word: "yes" },
    ask: { symbol: "?", word: "ask", long: "ask a human" },
    no: { symbol: "✗", word: "no" },
    ranked: { symbol: "1", word: "ranked" },
  });

  function chip(kind, { name, code, probability, note, isWrong, isChosen }) {
    const symbol = kind === "ranked" ? String(code + 1) : GROUPS[kind].symbol;
    return make("li", { class: `chip ${kind}${isWrong ? " wrong" : ""}${isChosen ? " chosen" : ""}` },
      make("span", { class: "symbol", "aria-hidden": "true" }, symbol),
      make("span", { class: "name" }, ...breakable(name)),
      make("span", { class: "probability" }, percent(probability)),
      note && make("span", { class: "remark" }, note));
  }

  function group(kind, labels, isOpen, toggle = null) {
    if (labels.length === 0 && toggle === null) return null;
    const { word, long } = GROUPS[kind];
    const shown = labels.slice(0, isOpen ? MAX_CHIPS_OPEN : MAX_CHIPS_CLOSED);
    const nHidden = labels.length - shown.length;
    return make("div", { class: `group ${kind}` },
      make("span", { class: "word", title: long ?? null }, word),
      make("ul", { class: "chips" }, ...shown.map((label) => chip(kind, label)),
        nHidden > 0 && make("li", { class: "more" }, `and ${Format.count(nHidden)} others`),
        toggle && make("li", {}, toggle)));
  }

  const toggleButton = (text, isOpen) =>
    make("button", { type: "button", class: "toggle", "aria-expanded": String(isOpen) }, text);

  /** The labels of instance i with their codes, probabilities and truth. */
  function labelsOf(i, { dataset, setting, state }) {
    const { nLabels, hasTruth } = dataset;
    return Array.from({ length: nLabels }, (_, j) => {
      const code = setting.codes[i * nLabels + j];
      const truth = hasTruth ? dataset.truth(i, j) : null;
      const probability = dataset.probability(i, j);
      return { j, code, truth, probability, name: dataset.labels[j], isChosen: state.label === j };
    });
  }

  const mostProbableFirst = (a, b) => b.probability - a.probability || a.j - b.j;

  function answerGroups(labels, isOpen) {
    const judged = labels.map((label) => {
      const isWrong = label.truth !== null && label.code !== -1 && label.code !== label.truth;
      const truth = label.code === -1 && label.truth !== null ? `truth: ${label.truth ? "yes" : "no"}` : null;
      return { ...label, isWrong, note: isWrong ? "wrong" : truth };
    });
    const of = (code) => judged.filter((label) => label.code === code).sort(mostProbableFirst);
    const no = of(0);
    const shownNo = isOpen ? no : no.filter(({ isWrong, isChosen }) => isWrong || isChosen);
    const hidden = no.length - shownNo.length;
    let toggle = null;
    if (isOpen) toggle = toggleButton("fewer", true);
    else if (hidden > 0 && shownNo.length === 0) toggle = toggleButton(Format.plural(hidden, "label"), false);
    else if (hidden > 0) toggle = toggleButton(`+ ${Format.count(hidden)} more`, false);
    return [group("yes", of(1), isOpen), group("ask", of(-1), isOpen), group("no", shownNo, isOpen, toggle)];
  }

  function rankingGroups(labels, isOpen) {
    const withNotes = labels.map((label) => ({ ...label, note: label.truth ? "relevant" : null }));
    const order = withNotes.filter(({ code }) => code >= 0).sort((a, b) => a.code - b.code);
    const abstained = withNotes.filter(({ code }) => code < 0).sort(mostProbableFirst);
    const shown = isOpen ? order : order.slice(0, MAX_RANKED_CLOSED);
    const hidden = order.length - shown.length;
    let toggle = null;
    if (hidden > 0) toggle = toggleButton(`+ ${Format.count(hidden)} more`, false);
    else if (isOpen) toggle = toggleButton("fewer", true);
    return [group("ranked", shown, isOpen, toggle), group("ask", abstained, isOpen)];
  }

  function build(i, view, isOpen) {
    const { dataset, loss } = view;
    const labels = labelsOf(i, view);
    const groups = (loss.givesRankings ? rankingGroups : answerGroups)(labels, isOpen);
    const text = dataset.text(i);
    const image = dataset.image(i);
    const id = dataset.id(i);
    const kind = image ? "instance pictured" : "instance";
    return make("li", { class: kind, tabindex: -1, "data-row": i, "aria-label": `Instance ${id}` },
      image && make("img", { src: image, alt: `Picture of instance ${id}`, loading: "lazy" }),
      make("div", { class: "body" },
        make("h3", {}, ...breakable(id)),
        text && make("p", { class: `text${isOpen ? "" : " short"}` }, text),
        ...groups));
  }

  return Object.freeze({ build, GROUPS });
})();
