"use strict";

// The list of instances: filtered, one page at a time, by mouse and by keyboard.
const InstanceList = (() => {
  const { byId, make, setText } = Elements;
  const { count } = Format;
  const INSTANCES_PER_PAGE = 20;

  // Whether a label passes a filter, given its code and its truth.
  const TESTS = {
    all: () => true,
    abstained: (code) => code === -1,
    answered: (code) => code !== -1,
    yes: (code) => code === 1,
    no: (code) => code === 0,
    wrong: (code, truth) => code !== -1 && code !== truth,
  };

  function choices(state, dataset, { givesRankings }) {
    const one = state.label !== null;
    return [
      ["all", "all of them"],
      ["abstained", one ? "asked" : "something asked"],
      (givesRankings || !one) && ["answered", givesRankings && one ? "ranked" : "nothing asked"],
      one && !givesRankings && ["yes", "answered yes"],
      one && !givesRankings && ["no", "answered no"],
      dataset.hasTruth && !givesRankings && ["wrong", one ? "answered wrong" : "a wrong answer"],
    ].filter(Boolean).map(([value, text]) => ({ value, text }));
  }

  /** The rows that pass all filters. */
  function matching({ setting, state, dataset }, show, searchText) {
    const { nInstances, nLabels } = dataset;
    const { codes, nAbstained } = setting;
    const wanted = state.find.trim().toLowerCase();
    const test = TESTS[show];
    const truth = show === "wrong" ? dataset.truth.bind(dataset) : () => 0;
    const some = (i) => {
      for (let j = 0; j < nLabels; j++) if (test(codes[i * nLabels + j], truth(i, j))) return true;
      return false;
    };
    let passes = some;
    if (show === "all") passes = () => true;
    else if (state.label !== null) passes = (i) => test(codes[i * nLabels + state.label], truth(i, state.label));
    else if (show === "abstained") passes = (i) => nAbstained[i] > 0;
    else if (show === "answered") passes = (i) => nAbstained[i] === 0;
    const rows = [];
    for (let i = 0; i < nInstances; i++) {
      if ((wanted === "" || searchText(i).includes(wanted)) && passes(i)) rows.push(i);
    }
    return rows;
  }

  function create(dataset, store) {
    const list = byId("instances");
    const toggled = new Set(); // rows that are expanded, or closed where all are expanded
    const contents = new WeakMap(); // what each element shows, as a text
    const find = byId("filter-find");
    const labelSelect = LabelSelect.create(byId("filter-label"), dataset, store, "any label");
    let latest = null;
    let rows = [];
    let lastFilter = {};
    let searchable = null;

    /** The id and text of a row in lower case. */
    function searchText(i) {
      const textAt = (_, k) => `${dataset.id(k)}\n${dataset.text(k) ?? ""}`.toLowerCase();
      searchable ??= Array.from({ length: dataset.nInstances }, textAt);
      return searchable[i];
    }

    const first = Array.from({ length: Math.min(dataset.nInstances, 50) }, (_, i) => dataset.text(i));
    const hasTexts = first.some((text) => text !== null);
    list.classList.toggle("with-texts", hasTexts);
    setText(byId("filter-find-label"), hasTexts ? "Find by id or text" : "Find by id");
    byId("filter-show").addEventListener("change", ({ target }) => store.set({ show: target.value, page: 0 }));
    byId("show-no").addEventListener("change", ({ target }) => {
      toggled.clear();
      store.set({ everyNo: target.checked });
    });
    const search = Elements.afterPause(120, () => store.set({ find: find.value, page: 0 }));
    find.addEventListener("input", search);

    const lastPage = () => Math.max(Math.ceil(rows.length / INSTANCES_PER_PAGE) - 1, 0);
    const goTo = (page) => store.set({ page: Math.min(Math.max(page, 0), lastPage()) });
    byId("page-first").addEventListener("click", () => goTo(0));
    byId("page-back").addEventListener("click", () => goTo(latest.page - 1));
    byId("page-on").addEventListener("click", () => goTo(latest.page + 1));
    byId("page-last").addEventListener("click", () => goTo(lastPage()));

    list.addEventListener("click", ({ target }) => {
      const item = target.closest(".toggle") && target.closest(".instance");
      if (item) toggle(item);
    });

    function toggle(item) {
      const row = Number(item.dataset.row);
      if (toggled.has(row)) toggled.delete(row);
      else toggled.add(row);
      const fresh = element(row, latest);
      item.replaceWith(fresh);
      focus(fresh);
    }
    const isOpen = (row) => toggled.has(row) !== latest.state.everyNo;

    function focus(item) {
      for (const other of list.children) other.tabIndex = -1;
      item.tabIndex = 0;
      item.focus();
    }

    const STEPS = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 };
    list.addEventListener("keydown", (event) => {
      const item = event.target.closest(".instance");
      if (!item || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key in STEPS) step(item, STEPS[event.key]);
      else if (event.key === "Home") focus(list.firstChild);
      else if (event.key === "End") focus(list.lastChild);
      else if (event.key === "Enter" && event.target === item) toggle(item);
      else return;
      event.preventDefault();
    });

    function step(item, by) {
      const next = by > 0 ? item.nextSibling : item.previousSibling;
      if (next) return focus(next);
      const page = latest.page + by;
      if (page < 0 || page > lastPage()) return undefined;
      goTo(page);
      render({ ...latest, state: store.get() }); // at once, so that an element can be focused
      return focus(by > 0 ? list.firstChild : list.lastChild);
    }

    function filter(view, show) {
      const { setting, state } = view;
      // Unless answers are filtered, the rows do not depend on the setting.
      const key = { answers: show === "all" ? null : setting, label: state.label, show, find: state.find };
      const differs = (name) => key[name] !== lastFilter[name];
      if (["label", "show", "find"].some(differs)) toggled.clear(); // in another list all are closed at first
      if (Object.keys(key).some(differs)) {
        rows = matching(view, show, searchText);
        lastFilter = key;
      }
    }

    function legend(givesRankings) {
      const entry = (kind, symbol, word) =>
        make("span", { class: `chip ${kind}` }, make("span", { class: "symbol" }, symbol), word);
      const entries = (givesRankings ? ["ranked", "ask"] : ["yes", "ask", "no"]).map((kind) => {
        const { symbol, word, long } = InstanceCard.GROUPS[kind];
        return entry(kind, symbol, long ?? word);
      });
      if (dataset.hasTruth && !givesRankings) {
        entries.push(entry("yes wrong", "✓", make("span", { class: "remark" }, "wrong")));
      }
      byId("legend").replaceChildren(...entries, make("span", {}, "with the probability the model gives"));
    }

    /** The element of a row. It is kept if its content has not changed, as most do not when a slider moves a step. */
    function element(row, view) {
      const { nLabels } = dataset;
      const codes = view.setting.codes.subarray(row * nLabels, (row + 1) * nLabels);
      const content = `${view.state.loss} ${view.state.label} ${isOpen(row)} ${codes}`;
      const before = list.querySelector(`[data-row="${row}"]`);
      if (before && contents.get(before) === content) return before;
      const fresh = InstanceCard.build(row, view, isOpen(row));
      contents.set(fresh, content);
      return fresh;
    }

    function replace(items) {
      while (list.children.length > items.length) list.lastChild.remove();
      items.forEach((item, k) => {
        const there = list.children[k];
        if (!there) list.append(item);
        else if (there !== item) there.replaceWith(item);
      });
    }

    function render(view) {
      const { state, loss } = view;
      const { givesRankings } = loss;
      const options = choices(state, dataset, loss);
      const show = options.some(({ value }) => value === state.show) ? state.show : "all";
      Elements.fillSelect(byId("filter-show"), options, show);
      labelSelect.show(state.label);
      if (document.activeElement !== find) find.value = state.find;
      byId("show-no").checked = state.everyNo;
      setText(byId("show-no-text"), givesRankings ? "every rank" : "every “no”");
      filter(view, show);
      const page = Math.min(state.page, lastPage());
      latest = { ...view, page };
      legend(givesRankings);
      const focused = document.activeElement?.closest("#instances .instance")?.dataset.row;
      const shown = rows.slice(page * INSTANCES_PER_PAGE, (page + 1) * INSTANCES_PER_PAGE);
      replace(shown.map((row) => element(row, view)));
      const again = focused !== undefined && list.querySelector(`[data-row="${focused}"]`);
      if (again) focus(again);
      else if (list.firstChild && !list.querySelector("[tabindex='0']")) list.firstChild.tabIndex = 0;
      showRange(page, shown.length);
    }

    function showRange(page, nShown) {
      const all = rows.length === dataset.nInstances ? "" : ` (of ${count(dataset.nInstances)})`;
      const range = `${count(page * INSTANCES_PER_PAGE + 1)}–${count(page * INSTANCES_PER_PAGE + nShown)}`;
      setText(byId("page-where"),
        rows.length === 0 ? "No instance is like this." : `${range} of ${count(rows.length)}${all}`);
      byId("page-first").disabled = byId("page-back").disabled = page === 0;
      byId("page-last").disabled = byId("page-on").disabled = page === lastPage();
    }

    return { render };
  }

  return Object.freeze({ create });
})();
