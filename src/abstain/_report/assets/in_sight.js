"use strict";

// Parts of the page that are out of sight are drawn when they come into sight, or once the sliders rest.
const InSight = (() => {
  const waiting = new Map(); // elements, and how to draw them

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
      waiting.set(element, catchUp);
      if (isSeen) catchUp();
      else later();
    };
  }

  /** Draw all that waits, in sight or not. */
  function finish() {
    for (const draw of [...waiting.values()]) draw();
  }

  return Object.freeze({ drawer, finish, isDone: () => waiting.size === 0 });
})();
