"use strict";

// A list to choose one label from. Beyond a thousand names a list is no help, but the table is: it can be searched.
const LabelChoice = (() => {
  const MOST = 1000;

  function create(select, dataset, store, everything) {
    const isLong = dataset.nLabels > MOST;
    const option = (j) => ({ value: j, text: dataset.labels[j] });
    const none = { value: "", text: isLong ? `${everything} (choose one in the table)` : everything };
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
