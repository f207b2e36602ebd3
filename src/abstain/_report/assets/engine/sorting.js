"use strict";

/** Stable sorting of many short rows at once, without an object for each number. */
Abstain.sorting = (() => {
  const INSERTION_SORT_LENGTH = 12; // longer rows are merged from pieces of this length

  /** An empty array for places or labels 0 … m − 1. */
  function placeArray(length, m) {
    return m <= 1 << 16 ? new Uint16Array(length) : new Uint32Array(length);
  }

  function insertionSort(keys, places, from, to) {
    for (let i = from + 1; i < to; i++) {
      const key = keys[i];
      const place = places[i];
      let j = i - 1;
      while (j >= from && keys[j] > key) {
        keys[j + 1] = keys[j];
        places[j + 1] = places[j];
        j--;
      }
      keys[j + 1] = key;
      places[j + 1] = place;
    }
  }

  function merge(from, to, low, middle, high) {
    let left = low;
    let right = middle;
    for (let k = low; k < high; k++) {
      const takeLeft = left < middle && (right >= high || from.keys[left] <= from.keys[right]);
      const j = takeLeft ? left++ : right++;
      to.keys[k] = from.keys[j];
      to.places[k] = from.places[j];
    }
  }

  /** Sorts by increasing key; equal keys keep their order. Returns the one of row and buffer that holds the result. */
  function sortStably(row, buffer, m) {
    for (let low = 0; low < m; low += INSERTION_SORT_LENGTH) {
      insertionSort(row.keys, row.places, low, Math.min(low + INSERTION_SORT_LENGTH, m));
    }
    let from = row;
    let to = buffer;
    for (let width = INSERTION_SORT_LENGTH; width < m; width *= 2) {
      for (let low = 0; low < m; low += 2 * width) {
        merge(from, to, low, Math.min(low + width, m), Math.min(low + 2 * width, m));
      }
      [from, to] = [to, from];
    }
    return from;
  }

  /** The labels of each instance by increasing key, equal ones by number; fills in sortedKeys unless it is null. */
  function sortRows(keys, n, m, sortedKeys) {
    const order = placeArray(n * m, m);
    const row = { keys: new Float64Array(m), places: placeArray(m, m) };
    const buffer = { keys: new Float64Array(m), places: placeArray(m, m) };
    for (let i = 0; i < n; i++) {
      row.keys.set(keys.subarray(i * m, i * m + m));
      for (let j = 0; j < m; j++) row.places[j] = j;
      const sorted = sortStably(row, buffer, m);
      order.set(sorted.places, i * m);
      if (sortedKeys) sortedKeys.set(sorted.keys, i * m);
    }
    return order;
  }

  return { placeArray, sortRows };
})();
