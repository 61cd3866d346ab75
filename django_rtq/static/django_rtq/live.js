// Keeps an open page fresh: asks for it again and swaps the regions that carry the same data-rtq-live name.
// Without this script all pages work; they stay as they were loaded.
"use strict";
(() => {
  const bar = document.querySelector("[data-rtq-seconds]");
  if (!bar) return;
  const [note, button] = [bar.querySelector("[role=status]"), bar.querySelector("button")];
  const usual = Number(bar.dataset.rtqSeconds) * 1000;
  const regions = () => document.querySelectorAll("[data-rtq-live]");
  const memory = { get: () => { try { return localStorage.rtqLive; } catch { return ""; } },
                   set: (value) => { try { localStorage.rtqLive = value; } catch { /* private mode */ } } };
  let [isOn, ended, wait, timer, last] = [memory.get() !== "off", false, usual, 0, new Date()];

  const say = (text, state) => {
    bar.dataset.rtqState = state;
    if (note.textContent !== text) note.textContent = text; // a screen reader reads what changes
  };
  const show = () => {
    button.textContent = isOn ? bar.dataset.rtqPause : bar.dataset.rtqResume;
    say(isOn ? bar.dataset.rtqOn : bar.dataset.rtqOff, isOn ? "on" : "off");
  };
  const inUse = (region) => region.querySelector("input[type=checkbox][name=id]:checked")
    || (region.contains(document.activeElement) && document.activeElement.matches("input, select, textarea, button"))
    || (!getSelection().isCollapsed && region.contains(getSelection().anchorNode));

  const swap = (fresh) => regions().forEach((old) => {
    const region = fresh.querySelector(`[data-rtq-live="${old.dataset.rtqLive}"]`);
    if (!region || inUse(old) || region.outerHTML === old.outerHTML) return;
    old.querySelectorAll("details[id]").forEach((details) => {
      const same = region.querySelector(`#${CSS.escape(details.id)}`);
      if (same) same.open = details.open;
    });
    const focused = old.contains(document.activeElement) && document.activeElement.getAttribute("href");
    old.replaceWith(document.adoptNode(region));
    if (focused) region.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  });

  const refresh = async () => {
    try {
      const answer = await fetch(location.href, { headers: { "X-RTQ-Refresh": "1" }, redirect: "manual" });
      if (answer.type === "opaqueredirect" || answer.status === 403) {
        ended = true;
        return say(bar.dataset.rtqEnded, "stale");
      }
      if (!answer.ok) throw new Error(answer.status);
      swap(new DOMParser().parseFromString(await answer.text(), "text/html"));
      [wait, last] = [usual, new Date()];
      if (isOn) say(bar.dataset.rtqOn, "on");
    } catch {
      wait = Math.min(wait * 2, 60000);
      const time = last.toLocaleTimeString(document.documentElement.lang || undefined);
      say(bar.dataset.rtqStale.replace("{time}", time), "stale");
    }
  };
  const next = () => { clearTimeout(timer); if (isOn && !ended) timer = setTimeout(turn, wait); };
  const turn = async () => { if (!document.hidden) await refresh(); next(); };

  button.addEventListener("click", () => { isOn = !isOn; memory.set(isOn ? "on" : "off"); show(); next(); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden && isOn && !ended) turn(); });
  bar.hidden = false;
  show();
  next();
})();
