"use strict";

// One instance as an element: what it is, and its labels as chips in groups — yes, ask a human, no.
const Instance = (() => {
  const { make } = Elements;
  const { percent } = Format;
  const FEW = 12; // ranked labels shown before the rest is asked for
  const MOST = 400; // chips of one group: with thousands of labels the rest is only counted

  const GROUPS = Object.freeze({
    yes: { symbol: "✓", word: "yes" },
    ask: { symbol: "?", word: "ask", long: "ask a human" },
    no: { symbol: "✗", word: "no" },
    ranked: { symbol: "1", word: "ranked" },
  });

  function chip(kind, symbol, { name, probability, remark, isWrong, isChosen }) {
    return make("li", { class: `chip ${kind}${isWrong ? " wrong" : ""}${isChosen ? " chosen" : ""}` },
      make("span", { class: "symbol", "aria-hidden": "true" }, symbol),
      make("span", { class: "name" }, name),
      make("span", { class: "probability" }, percent(probability)),
      remark && make("span", { class: "remark" }, remark));
  }

  function group(kind, chips, toggle) {
    if (chips.length === 0 && toggle === null) return null;
    const { word, long } = GROUPS[kind];
    return make("div", { class: `group ${kind}` },
      make("span", { class: "word", title: long ?? null }, word),
      make("ul", { class: "chips" }, ...chips.slice(0, MOST),
        chips.length > MOST && make("li", { class: "more" }, `and ${Format.count(chips.length - MOST)} more`),
        toggle && make("li", {}, toggle)));
  }

  const toggleButton = (text, isOpen) =>
    make("button", { type: "button", class: "toggle", "aria-expanded": String(isOpen) }, text);

  /** The labels of instance i as plain facts. */
  function facts(i, { dataset, setting, state }) {
    const { nLabels, hasTruth } = dataset;
    return Array.from({ length: nLabels }, (_, j) => {
      const code = setting.codes[i * nLabels + j];
      const truth = hasTruth ? dataset.truth(i, j) : null;
      const probability = dataset.probability(i, j);
      return { j, code, truth, probability, name: dataset.labels[j], isChosen: state.label === j };
    });
  }

  const surestFirst = (a, b) => b.probability - a.probability || a.j - b.j;

  function answered(labels, isOpen) {
    const judged = labels.map((label) => {
      const isWrong = label.truth !== null && label.code !== -1 && label.code !== label.truth;
      const truth = label.code === -1 && label.truth !== null ? `truth: ${label.truth ? "yes" : "no"}` : null;
      return { ...label, isWrong, remark: isWrong ? "wrong" : truth };
    });
    const of = (code) => judged.filter((label) => label.code === code).sort(surestFirst);
    const chips = (kind, chosen) => chosen.map((label) => chip(kind, GROUPS[kind].symbol, label));
    const no = of(0);
    const shownNo = isOpen ? no : no.filter(({ isWrong, isChosen }) => isWrong || isChosen);
    const hidden = no.length - shownNo.length;
    let toggle = null;
    if (isOpen && no.length > 0) toggle = toggleButton("fewer", true);
    else if (hidden > 0 && shownNo.length > 0) toggle = toggleButton(`+ ${Format.count(hidden)} more`, false);
    else if (hidden > 0) toggle = toggleButton(Format.plural(hidden, "label"), false);
    return [
      group("yes", chips("yes", of(1)), null),
      group("ask", chips("ask", of(-1)), null),
      group("no", chips("no", shownNo), toggle),
    ];
  }

  function ranked(labels, isOpen) {
    const remarked = labels.map((label) => ({ ...label, remark: label.truth ? "relevant" : null }));
    const order = remarked.filter(({ code }) => code >= 0).sort((a, b) => a.code - b.code);
    const open = remarked.filter(({ code }) => code < 0).sort(surestFirst);
    const shown = isOpen ? order : order.slice(0, FEW);
    const hidden = order.length - shown.length;
    const toggle = hidden > 0 ? toggleButton(`+ ${Format.count(hidden)} more`, false)
      : isOpen && order.length > FEW ? toggleButton("fewer", true) : null;
    return [
      group("ranked", shown.map((label) => chip("ranked", String(label.code + 1), label)), toggle),
      group("ask", open.map((label) => chip("ask", GROUPS.ask.symbol, label)), null),
    ];
  }

  function build(i, view, isOpen) {
    const { dataset, state } = view;
    const labels = facts(i, view);
    const groups = (state.loss === "rank" ? ranked : answered)(labels, isOpen);
    const text = dataset.text(i);
    const image = dataset.image(i);
    const id = dataset.id(i);
    const kind = image ? "instance pictured" : "instance";
    return make("li", { class: kind, tabindex: -1, "data-row": i, "aria-label": `Instance ${id}` },
      image && make("img", { src: image, alt: `Picture of instance ${id}`, loading: "lazy" }),
      make("div", { class: "body" },
        make("h3", {}, id),
        text && make("p", { class: `text${isOpen ? "" : " short"}` }, text),
        ...groups));
  }

  return Object.freeze({ build, GROUPS });
})();
