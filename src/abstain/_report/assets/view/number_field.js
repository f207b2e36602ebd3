"use strict";

// A field for a number. It accepts what is typed or explains why not, and is not rewritten while it is typed in.
// It is a text field: in a field of type number, browsers drop a comma silently, so that 0,2 becomes 2.
const NumberField = (() => {
  const { setText } = Elements;
  const NUMBER = /^-?(\d+[.,]?\d*|[.,]\d+)(e[+-]?\d+)?$/i;
  const THOUSANDS = /^-?[1-9]\d{0,2},\d{3}$/; // 1,000 may be a thousand or one

  /** The number in a field, with a point or a comma; NaN if there is none. */
  function numberIn(field) {
    const text = field.value.trim();
    return NUMBER.test(text) && !THOUSANDS.test(text) ? Number(text.replace(",", ".")) : NaN;
  }

  /**
   * @param field an input of type text
   * @param message the element for error messages
   * @param {number} max the largest number that is accepted
   * @param {(number | null) => void} accept called with numbers, and with null for an empty field if it may be empty
   * @param {() => T} getState the state before the typing begins
   * @param {(T) => void} restore called with that state if the input is refused: "1" was accepted on the way to "1000"
   */
  function listen(field, message, { name, max, accept, getState, restore, mayBeEmpty = false }) {
    let stateBefore = null;
    const isEmpty = () => field.value.trim() === "";
    const isGood = () => numberIn(field) >= 0 && numberIn(field) <= max && !field.value.trim().startsWith("-");

    function showError(text) {
      field.setAttribute("aria-invalid", String(text !== ""));
      setText(message, text);
    }

    const end = max >= 1e6 ? max.toExponential().replace("+", "") : String(max);
    const expected = `${name}: expected a number from 0 to ${end}, such as 0.2`;

    field.addEventListener("input", () => {
      if (mayBeEmpty && isEmpty()) {
        showError("");
        accept(null);
      } else if (isGood()) {
        showError("");
        accept(numberIn(field));
      } else showError(/^[-.,]?$|e[+-]?$/i.test(field.value.trim()) ? "" : `${expected}.`); // it may become a number
    });

    // What is refused is replaced by the number before it, with a message.
    field.addEventListener("change", () => {
      if ((mayBeEmpty && isEmpty()) || isGood()) {
        stateBefore = getState();
        return;
      }
      showError(`${expected}; it stays as it was.`);
      field.removeAttribute("aria-invalid");
      field.dataset.refused = "yes";
      restore(stateBefore);
    });
    field.addEventListener("focus", () => { stateBefore = getState(); });
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

  return Object.freeze({ listen, show });
})();
