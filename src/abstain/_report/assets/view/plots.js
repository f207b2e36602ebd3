"use strict";

// What all charts share: plain axes, colours of the style sheet, no toolbar, no gestures that interfere with scrolling.
const Plots = (() => {
  const CONFIG = Object.freeze({ displayModeBar: false, responsive: true, scrollZoom: false, doubleClick: false });

  const axis = (title, more = {}) => ({
    title: { text: title, standoff: 8 },
    fixedrange: true,
    zeroline: false,
    showline: true,
    linecolor: Theme.colour("line"),
    gridcolor: Theme.colour("grid"),
    automargin: true,
    ...more,
  });

  const layout = (more) => ({
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: Theme.colour("quiet") },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 48, r: 12, t: 8, b: 40 },
    dragmode: false,
    hovermode: "x",
    hoverlabel: {
      bgcolor: Theme.colour("raised"), bordercolor: Theme.colour("line"), font: { color: Theme.colour("text") },
    },
    showlegend: true,
    legend: {
      orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { color: Theme.colour("text") },
      itemclick: false, itemdoubleclick: false,
    },
    ...more,
  });

  const line = (name, x, y, colour, more = {}) => ({
    type: "scatter", mode: "lines", name, x, y, line: { color: Theme.colour(colour), width: 2 }, ...more,
  });

  let source = null; // code of plotly, once it is unpacked
  const isUnpacked = () => source !== null;
  const areReady = () => typeof Plotly !== "undefined";

  /** Runs plotly, if it is unpacked and has not run yet. That takes a second. */
  function run() {
    if (isUnpacked() && !areReady()) document.body.append(Elements.make("script", {}, source));
  }

  /** Unpacks plotly and runs it, after everything else is on the screen. */
  async function load() {
    source = await Abstain.arrays.readText(document, "plotly");
    await new Promise((resolve) => setTimeout(resolve, 50));
    run();
  }

  const draw = (place, traces, arrangement) => Plotly.react(place, traces, arrangement, CONFIG);

  return Object.freeze({ load, run, isUnpacked, areReady, axis, layout, line, draw });
})();
