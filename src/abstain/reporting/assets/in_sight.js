"use strict";

// Parts of the page that are out of sight are drawn when they come into sight, or once the sliders rest.
const InSight = (() => {
  const waiting = new Set();

  /** A way to draw `element` that does not keep the reader waiting for what cannot be seen. */
  function drawer(element, render) {
    let isSeen = false;
    let latest = null;

    function catchUp() {
      if (!waiting.delete(element)) return;
      render(latest);
    }

    const later = Elements.afterPause(150, catchUp);
    const observer = new IntersectionObserver((entries) => {
      isSeen = entries[entries.length - 1].isIntersecting;
      if (isSeen) catchUp();
    }, { rootMargin: "100px" });
    observer.observe(element);

    return (view) => {
      latest = view;
      waiting.add(element);
      if (isSeen) catchUp();
      else later();
    };
  }

  return Object.freeze({ drawer, isDone: () => waiting.size === 0 });
})();
