"use strict";

// A field for a number: what is typed is taken, or it is said why not; and it is left alone while it is typed in.
// It is a field of text: in a field of numbers, browsers leave out a comma without a word, and 0,2 becomes 2.
const Entry = (() => {
  const { setText } = Elements;
  const NUMBER = /^-?(\d+[.,]?\d*|[.,]\d+)(e[+-]?\d+)?$/i;
  const THOUSANDS = /^-?[1-9]\d{0,2},\d{3}$/; // 1,000 may be a thousand or one: nobody knows

  /** The number in a field, with a point or a comma; NaN if there is none. */
  function numberIn(field) {
    const text = field.value.trim();
    return NUMBER.test(text) && !THOUSANDS.test(text) ? Number(text.replace(",", ".")) : NaN;
  }

  /**
   * @param field an input of type text
   * @param message where mistakes are said
   * @param {number} most the largest number that is taken
   * @param {(number | null) => void} take hears numbers, and null for an empty field where that is allowed
   * @param {() => T} hold what holds before the typing begins
   * @param {(T) => void} restore hears that this must hold again: "1" was taken on the way to a refused "1000"
   */
  function watch(field, message, { name, most, take, hold, restore, mayBeEmpty = false }) {
    let held = null;
    const isEmpty = () => field.value.trim() === "";
    const isGood = () => numberIn(field) >= 0 && numberIn(field) <= most && !field.value.trim().startsWith("-");

    function complain(text) {
      field.setAttribute("aria-invalid", String(text !== ""));
      setText(message, text);
    }

    const end = most >= 1e6 ? most.toExponential().replace("+", "") : String(most);
    const expected = `${name}: expected a number from 0 to ${end}, such as 0.2`;

    field.addEventListener("input", () => {
      if (mayBeEmpty && isEmpty()) {
        complain("");
        take(null);
      } else if (isGood()) {
        complain("");
        take(numberIn(field));
      } else complain(/^[-.,]?$|e[+-]?$/i.test(field.value.trim()) ? "" : `${expected}.`); // it may become a number
    });

    // What was not understood is replaced by what holds, and that is said.
    field.addEventListener("change", () => {
      if ((mayBeEmpty && isEmpty()) || isGood()) {
        held = hold();
        return;
      }
      complain(`${expected}; it stays as it was.`);
      field.removeAttribute("aria-invalid");
      field.dataset.refused = "yes";
      restore(held);
    });
    field.addEventListener("focus", () => { held = hold(); });
    field.addEventListener("input", () => delete field.dataset.refused);
  }

  /** Numbers are shown rounded: a field in use keeps what was typed, if it means the same or is no number yet. */
  function show(field, value) {
    if (document.activeElement === field && field.dataset.refused === undefined) {
      const typed = numberIn(field);
      if (field.getAttribute("aria-invalid") === "true" || Number.isNaN(typed)) return;
      if (Math.abs(typed - value) <= 6e-4 * Math.abs(value)) return;
    }
    field.value = value;
  }

  return Object.freeze({ watch, show });
})();
