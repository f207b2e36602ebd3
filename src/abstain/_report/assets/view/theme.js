"use strict";

// Light or dark: the system's preference, until the reader chooses.
const Theme = (() => {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const listeners = [];
  const root = document.documentElement;

  const isDark = () => (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";

  /** A colour of the style sheet as plotly understands it. */
  function colour(name) {
    const probe = Elements.make("span");
    probe.style.color = `var(--${name})`;
    document.body.append(probe);
    const value = getComputedStyle(probe).color;
    probe.remove();
    return value;
  }

  function apply(theme) {
    if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
    for (const listener of listeners) listener();
  }

  function start(button) {
    const name = () => {
      Elements.setText(button, isDark() ? "Light" : "Dark");
      button.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`);
    };
    button.addEventListener("click", () => apply(isDark() ? "light" : "dark"));
    listeners.push(name);
    system.addEventListener("change", () => apply(root.dataset.theme));
    let before;
    addEventListener("beforeprint", () => {
      before = root.dataset.theme;
      apply("light"); // paper is white
    });
    addEventListener("afterprint", () => apply(before));
    name();
  }

  return Object.freeze({ start, colour, listen: (listener) => listeners.push(listener) });
})();
