"use strict";

// A list to choose one label from. With more than a thousand labels the table is used instead: it can be searched.
const LabelSelect = (() => {
  const MAX_OPTIONS = 1000;

  function create(select, dataset, store, allText) {
    const isLong = dataset.nLabels > MAX_OPTIONS;
    const option = (j) => ({ value: j, text: dataset.labels[j] });
    const none = { value: "", text: isLong ? `${allText} (choose one in the table)` : allText };
    if (!isLong) Elements.fillSelect(select, [none, ...dataset.labels.map((_, j) => option(j))], "");
    select.addEventListener("change", () => {
      store.set({ label: select.value === "" ? null : Number(select.value), page: 0 });
    });
    return {
      show(label) {
        if (isLong) Elements.fillSelect(select, label === null ? [none] : [none, option(label)], "");
        select.value = label ?? "";
      },
    };
  }

  return Object.freeze({ create });
})();
