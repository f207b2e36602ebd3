"use strict";

// The table of labels, sorted and searched; it shows only the first rows of many.
const LabelTable = (() => {
  const { byId, make, setName, setText } = Elements;
  const { count, percent, quantity, isNumber } = Format;
  const ROWS_AT_FIRST = 50;

  /** The columns; value gives the number or text to sort by, or null where there is none. */
  function columns(dataset) {
    const { nInstances } = dataset;
    const known = dataset.hasTruth;
    return [
      { key: "name", title: "Label", value: (j) => dataset.labels[j], isText: true },
      known && { key: "prevalence", title: "Prevalence", help: "share of instances that have the label",
        value: (j) => dataset.labelFacts[j].prevalence, write: percent, bar: true },
      { key: "probability", title: "Mean probability", help: "what the model gives it on average",
        value: (j) => dataset.labelFacts[j].meanProbability, write: percent, bar: true },
      known && { key: "calibration", title: "Calibration error", help: "how far probabilities are off on average",
        value: (j) => dataset.labelFacts[j].calibrationError, write: quantity },
      { key: "abstained", title: "Asked", help: "share left to a person at this setting",
        value: (j, { setting }) => setting.perLabel.abstained[j] / nInstances, write: percent, bar: true },
      known && { key: "error", title: "Answered wrong", help: "share of its answers that are wrong",
        notForRankings: true,
        value: (j, { setting }) => {
          const { answered, wrong } = setting.perLabel;
          return wrong === null || answered[j] === 0 ? null : wrong[j] / answered[j];
        }, write: percent },
    ].filter(Boolean);
  }

  function create(dataset, store) {
    const all = columns(dataset);
    const head = byId("label-head");
    const body = byId("label-rows");
    const search = byId("label-search");
    const more = byId("label-more");
    const lowered = dataset.labels.map((name) => name.toLowerCase());
    let sort = { key: null, direction: 1 }; // null: the order of the file
    let limit = ROWS_AT_FIRST;
    let latest = null;

    const heads = all.map((column) => {
      const arrow = make("span", { class: "arrow", "aria-hidden": "true" });
      const button = make("button", { type: "button", title: column.help ?? null }, column.title, arrow);
      const cell = make("th", { scope: "col", role: "columnheader", "data-column": column.key }, button);
      button.addEventListener("click", () => {
        // First descending numbers or ascending names, then the other direction, then the order of the file.
        const first = column.isText ? 1 : -1;
        if (sort.key !== column.key) sort = { key: column.key, direction: first };
        else if (sort.direction === first) sort = { key: column.key, direction: -first };
        else sort = { key: null, direction: 1 };
        draw();
      });
      return cell;
    });
    head.append(...heads);

    search.addEventListener("input", () => { limit = ROWS_AT_FIRST; draw(); });
    more.addEventListener("click", () => { limit += 4 * ROWS_AT_FIRST; draw(); });
    body.addEventListener("click", ({ target }) => {
      const button = target.closest("button");
      if (!button) return;
      const label = Number(button.dataset.label);
      store.set({ label: store.get().label === label ? null : label, page: 0 });
    });

    function chosen() {
      const wanted = search.value.trim().toLowerCase();
      const found = [];
      lowered.forEach((name, j) => { if (name.includes(wanted)) found.push(j); });
      const column = all.find(({ key }) => key === sort.key);
      if (!column) return found;
      const compare = column.isText
        ? (a, b) => a.localeCompare(b, "en", { numeric: true })
        : (a, b) => a - b;
      const values = new Map(found.map((j) => [j, column.value(j, latest)]));
      // Labels without a value come last, in both directions.
      return found.sort((i, j) => {
        const [a, b] = [values.get(i), values.get(j)];
        if (!column.isText && !(isNumber(a) && isNumber(b))) return isNumber(b) - isNumber(a);
        return sort.direction * compare(a, b);
      });
    }

    function row(visible) {
      return make("tr", { role: "row" }, ...visible.map((column) => (column.isText
        ? make("th", { scope: "row", role: "rowheader" }, make("button", { type: "button", class: "name" }))
        : make("td", { role: "cell", "data-title": column.title }))));
    }

    function fill(line, j, visible) {
      visible.forEach((column, k) => {
        const cell = line.children[k];
        const value = column.value(j, latest);
        if (column.isText) {
          const button = cell.firstChild;
          setName(button, value);
          button.title = value; // long names are cut off
          button.dataset.label = j;
          button.setAttribute("aria-pressed", String(latest.state.label === j));
          return;
        }
        setText(cell, column.write(value));
        if (column.bar) cell.style.setProperty("--bar-width", String(isNumber(value) ? value : 0));
        cell.classList.toggle("bar", column.bar === true);
      });
      line.classList.toggle("chosen", latest.state.label === j);
    }

    function draw() {
      const { givesRankings } = latest.loss;
      const visible = all.filter(({ notForRankings }) => !(notForRankings && givesRankings));
      const found = chosen();
      const shown = found.slice(0, limit);
      if (body.firstChild && body.firstChild.children.length !== visible.length) body.replaceChildren();
      setText(byId("label-none"), found.length === 0 ? `No label contains “${search.value.trim()}”.` : "");
      while (body.children.length > shown.length) body.lastChild.remove();
      while (body.children.length < shown.length) body.append(row(visible));
      shown.forEach((j, k) => fill(body.children[k], j, visible));
      heads.forEach((cell, k) => {
        cell.hidden = !visible.includes(all[k]);
        const isSorted = all[k].key === sort.key;
        cell.setAttribute("aria-sort", isSorted ? (sort.direction > 0 ? "ascending" : "descending") : "none");
        setText(cell.querySelector(".arrow"), isSorted ? (sort.direction > 0 ? "▲" : "▼") : "");
      });
      const total = dataset.nLabels;
      setText(byId("label-count"),
        found.length === total ? Format.plural(total, "label") : `${count(found.length)} of ${count(total)} labels`);
      more.hidden = found.length <= limit;
      setText(more, `Show more (${count(found.length - shown.length)} are not shown)`);
    }

    function render(view) {
      latest = view;
      draw();
    }

    return { render };
  }

  return Object.freeze({ create });
})();
