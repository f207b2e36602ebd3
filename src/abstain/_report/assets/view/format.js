"use strict";

// Numbers for people: thin spaces between thousands, few significant digits.
const Format = (() => {
  const SPACE = "\u202f"; // narrow and unbreakable
  const NONE = "–";

  const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

  function grouped(text) {
    const [whole, fraction] = text.split(".");
    const separated = whole.length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, SPACE) : whole;
    return fraction === undefined ? separated : `${separated}.${fraction}`;
  }

  const count = (value) => (isNumber(value) ? grouped(String(Math.round(value))) : NONE);

  /** 0.069 → "6.9 %"; only exactly 0 and 1 are written as 0 % and 100 %. */
  function percent(share) {
    if (!isNumber(share)) return NONE;
    const value = 100 * share;
    if (value <= 0 || value === 100) return `${Math.max(value, 0)}${SPACE}%`;
    if (value < 0.005) return `<${SPACE}0.01${SPACE}%`;
    if (value > 99.995 && value < 100) return `>${SPACE}99.99${SPACE}%`;
    const digits = value < 0.095 || (value >= 99.95 && value < 100) ? 2 : 1;
    return `${value.toFixed(digits)}${SPACE}%`;
  }

  /** A share and its complement as texts that add up to 100 %. */
  function parts(share) {
    const written = percent(share);
    if (/[<>–]/.test(written)) return [written, percent(1 - share)];
    const digits = written.split(SPACE)[0];
    const decimals = digits.split(".")[1]?.length ?? 0;
    return [written, `${(100 - Number(digits)).toFixed(decimals)}${SPACE}%`];
  }

  /** Three significant digits, or all digits of whole numbers. */
  function quantity(value) {
    if (!isNumber(value)) return NONE;
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1000) return grouped(value.toFixed(0));
    if (size < 1e-4) return value.toExponential(1);
    return String(Number(value.toPrecision(3)));
  }

  /** A float as Python writes it; both languages write the shortest digits that give the same number back. */
  function python(value) {
    const text = String(value);
    return /[.e]/.test(text) ? text : `${text}.0`;
  }

  const plural = (value, one, many = `${one}s`) => `${count(value)}\u00a0${value === 1 ? one : many}`;

  return Object.freeze({ NONE, SPACE, count, percent, parts, quantity, python, plural, isNumber });
})();
