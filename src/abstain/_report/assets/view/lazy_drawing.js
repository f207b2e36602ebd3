"use strict";

// Parts of the page that are not visible are drawn when they become visible, or once the sliders rest.
const LazyDrawing = (() => {
  const pending = new Map(); // element → a function that draws it

  /** Returns a function that renders a view into `element`: at once if it is visible, otherwise later. */
  function create(element, render) {
    let isVisible = false;
    let latest = null;

    function drawLatest() {
      if (!pending.delete(element)) return;
      render(latest);
    }

    const later = Elements.afterPause(150, drawLatest);
    const observer = new IntersectionObserver((entries) => {
      isVisible = entries[entries.length - 1].isIntersecting;
      if (isVisible) drawLatest();
    }, { rootMargin: "100px" });
    observer.observe(element);

    return (view) => {
      latest = view;
      pending.set(element, drawLatest);
      if (isVisible) drawLatest();
      else later();
    };
  }

  /** Draws everything that is pending, visible or not. */
  function drawAll() {
    for (const draw of [...pending.values()]) draw();
  }

  return Object.freeze({ create, drawAll, isDone: () => pending.size === 0 });
})();
