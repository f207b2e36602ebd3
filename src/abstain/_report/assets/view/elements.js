"use strict";

// The document is built from elements and text only: names and texts come from files and are never read as markup.
const Elements = (() => {
  const byId = (id) => document.getElementById(id);

  /** make("button", {class: "plain", "aria-pressed": "true"}, "text", child, …) */
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : String(value));
    }
    element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
    return element;
  }

  function fillSelect(select, options, chosen) {
    select.replaceChildren(...options.map(({ text, ...attributes }) => make("option", attributes, text)));
    select.value = chosen;
  }

  // Writing equal text again would cost another layout.
  function setText(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }

  /** A name as nodes that may be broken after . / _ - and :, and not within a word. */
  function breakable(name) {
    return name.split(/(?<=[./_:-])(?=[^./_:-])/).flatMap((part, i) => (i === 0 ? [part] : [make("wbr"), part]));
  }

  /** Writes a name so that it can be broken, unless the element shows it already. */
  function setName(element, name) {
    if (element.textContent !== name) element.replaceChildren(...breakable(name));
  }

  /** Returns a function that calls `action` once its own calls have paused, with the arguments of the last one. */
  function afterPause(milliseconds, action) {
    let timer = 0;
    return (...values) => {
      clearTimeout(timer);
      timer = setTimeout(action, milliseconds, ...values);
    };
  }

  return Object.freeze({ byId, make, fillSelect, setText, breakable, setName, afterPause });
})();
