// Shows the values of charts under a cursor that all charts of a page share: by mouse, touch or arrow keys.
// Listens on the document, so that it keeps working when live.js replaces a region.
"use strict";
(() => {
  const charts = () => [...document.querySelectorAll(".rtq svg[data-rtq-steps]")];
  const steps = (chart) => chart.querySelectorAll("rect");
  const point = (chosen, step) => {
    const share = (step + 0.5) / steps(chosen).length;
    charts().forEach((chart) => {
      const place = Math.floor(share * steps(chart).length);
      const [rect, text] = [steps(chart)[place], steps(chart)[place].textContent];
      const x = Number(rect.getAttribute("x")) + rect.getAttribute("width") / 2;
      chart.querySelector(".rtq-cursor").setAttribute("d", `M${x} 0V${rect.getAttribute("height")}`);
      chart.classList.add("rtq-is-pointed");
      chart.closest(".rtq-card").querySelector(".rtq-readout").textContent = text;
      chart.setAttribute("aria-valuenow", place);
      chart.setAttribute("aria-valuetext", text);
    });
  };
  // Without this script a chart is an image; with it, something to move along.
  const prepare = () => charts().forEach((chart) => {
    if (chart.getAttribute("role") === "slider") return;
    const last = steps(chart).length - 1;
    const traits = { role: "slider", tabindex: 0, "aria-valuemin": 0, "aria-valuemax": last, "aria-valuenow": last };
    Object.entries(traits).forEach(([name, value]) => chart.setAttribute(name, value));
  });
  document.addEventListener("pointermove", ({ target }) => {
    const chart = target.closest?.(".rtq svg[data-rtq-steps]");
    const step = chart ? [...steps(chart)].indexOf(target) : -1;
    if (step >= 0) point(chart, step);
  });
  document.addEventListener("focusin", ({ target }) => {
    if (target.matches(".rtq svg[data-rtq-steps]")) point(target, Number(target.getAttribute("aria-valuenow")));
  });
  document.addEventListener("keydown", (event) => {
    const chart = event.target.closest?.(".rtq svg[data-rtq-steps]");
    const [now, last] = chart ? [Number(chart.getAttribute("aria-valuenow")), steps(chart).length - 1] : [];
    const step = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last }[event.key];
    if (!chart || step === undefined) return;
    event.preventDefault();
    point(chart, Math.min(last, Math.max(0, step)));
  });
  document.addEventListener("rtq:refreshed", prepare);
  prepare();
})();
