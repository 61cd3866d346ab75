// Selects all rows of a table, or a range with Shift. The key / focuses the search box.
// A search without a match so far goes on by itself.
// Closes a menu by Escape, or by a click or another menu elsewhere.
// Folds Django's side bar: our tabs are the navigation. Its button opens it on this page alone.
// Listens on the document, so that it keeps working when live.js replaces a region.
"use strict";
(() => {
  let last = null;
  const boxes = (of) => [...of.closest("form").querySelectorAll("input[type=checkbox][name=id]")];
  const count = (form) => form.querySelectorAll("[data-rtq-selected]").forEach((element) => {
    element.textContent = boxes(element).filter((box) => box.checked).length;
  });
  document.addEventListener("click", ({ target, shiftKey }) => {
    if (target.matches("[data-rtq-all]")) boxes(target).forEach((box) => { box.checked = target.checked; });
    if (target.matches(".rtq input[type=checkbox][name=id]")) {
      const all = boxes(target);
      const [from, to] = [all.indexOf(last), all.indexOf(target)].sort((a, b) => a - b);
      if (shiftKey && from >= 0) all.slice(from, to + 1).forEach((box) => { box.checked = target.checked; });
      last = target;
    }
    if (target.form && target.closest(".rtq")) count(target.form);
  });
  const close = (target) => document.querySelectorAll(".rtq-more[open]").forEach((menu) => {
    if (!menu.contains(target)) menu.open = false;
  });
  document.addEventListener("click", ({ target }) => close(target));
  document.addEventListener("keydown", ({ key, target }) => {
    if (key !== "Escape") return;
    const menu = target.closest(".rtq-more[open]");
    close(null);
    menu?.querySelector("summary").focus();
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("input, textarea, select, [contenteditable]");
    const box = document.querySelector("[data-rtq-search]");
    if (event.key !== "/" || isTyping || !box || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    box.focus();
    box.select();
  });
  const [further, query] = ["[data-rtq-continue]", "[data-rtq-search]"].map((each) => document.querySelector(each));
  if (further) {
    setTimeout(() => { // unless another query is being typed
      if (query.value === query.defaultValue) location.replace(further.href);
    }, 250);
  }
  const [fold, bar] = ["toggle-nav-sidebar", "nav-sidebar"].map((id) => document.getElementById(id));
  const open = (isOpen) => bar.setAttribute("aria-expanded", bar.parentElement.classList.toggle("shifted", isOpen));
  if (fold) open(false);
  fold?.addEventListener("click", (event) => { event.stopImmediatePropagation(); open(); }, true);
  document.documentElement.classList.add("rtq-has-script");
})();
