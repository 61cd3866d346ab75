// Refreshes an open page: fetches it again and replaces the regions with the same data-rtq-live name.
// All pages work without this script; they just do not refresh.
"use strict";
(() => {
  const bar = document.querySelector("[data-rtq-seconds]");
  if (!bar) return;
  const [statusText, age, button] = ["[role=status]", "[data-rtq-age]", "button"].map((part) => bar.querySelector(part));
  const SIDEWAYS = ".rtq-scroll, .rtq-line-of"; // boxes that keep what they show
  const usual = Number(bar.dataset.rtqSeconds) * 1000;
  const timeout = Math.max(2 * usual, 3000); // ms for one request
  const regions = () => document.querySelectorAll("[data-rtq-live]");
  const storage = { get: () => { try { return localStorage.rtqLive; } catch { return ""; } },
                   set: (value) => { try { localStorage.rtqLive = value; } catch { /* private mode */ } } };
  const language = bar.closest("[lang]")?.lang || undefined; // our texts may be English on a page in another language
  const ago = new Intl.RelativeTimeFormat(language, { style: "short" });
  let [isOn, ended, wait, timer, lastRefresh] = [storage.get() !== "off", false, usual, 0, new Date()];

  const showStatus = (text, state) => {
    bar.dataset.rtqState = state;
    if (statusText.textContent !== text) statusText.textContent = text; // a screen reader reads every change
  };
  const show = () => {
    button.textContent = isOn ? bar.dataset.rtqPause : bar.dataset.rtqResume;
    showStatus(isOn ? bar.dataset.rtqOn : bar.dataset.rtqOff, isOn ? "on" : "off");
  };
  const showStale = () => showStatus(bar.dataset.rtqStale.replace("{time}", lastRefresh.toLocaleTimeString(language)), "stale");
  const showAge = () => { // outside the status: a screen reader would read it every second
    const seconds = Math.round((Date.now() - lastRefresh) / 1000);
    age.textContent = seconds < 120 ? ago.format(-seconds, "second") : ago.format(-Math.round(seconds / 60), "minute");
  };
  const inUse = (region) => document.querySelector(":active") // while a mouse button is down, its link has to stay, and where it is
    || region.querySelector("input[type=checkbox][name=id]:checked, .rtq-more[open]") // whose row has to stay
    || (region.contains(document.activeElement) && document.activeElement.matches("input, select, textarea, button, summary, [role=slider]"))
    || (!getSelection().isCollapsed && region.contains(getSelection().anchorNode));

  // A region with a digest may have changed in the page since: charts do. The server leaves out what is the same.
  const isSame = (region, old) => (region.dataset.rtqDigest
    ? region.dataset.rtqDigest === old.dataset.rtqDigest : region.outerHTML === old.outerHTML);
  const digests = () => [...regions()].map((region) => region.dataset.rtqDigest).filter(Boolean).join(" ");
  const swap = (fresh, isLast) => regions().forEach((old) => {
    const region = fresh.querySelector(`[data-rtq-live="${old.dataset.rtqLive}"]`);
    if (!region || isSame(region, old)) return;
    if (inUse(old) && !isLast) return; // it is asked for again
    old.querySelectorAll("details[id]").forEach((details) => {
      const same = region.querySelector(`#${CSS.escape(details.id)}`);
      if (same) same.open = details.open;
    });
    const focused = old.contains(document.activeElement) && document.activeElement.getAttribute("href");
    const places = [...old.querySelectorAll(SIDEWAYS)].map((box) => box.scrollLeft);
    old.replaceWith(document.adoptNode(region));
    region.querySelectorAll(SIDEWAYS).forEach((box, place) => { box.scrollLeft = places[place] || 0; });
    if (focused) region.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    document.dispatchEvent(new Event("rtq:refreshed"));
  });

  const end = (text) => { ended = true; button.hidden = age.hidden = true; showStatus(text, "stale"); };
  const refresh = async () => {
    try {
      const answer = await fetch(location.href,
        { headers: { "X-RTQ-Refresh": digests() || "1" }, redirect: "manual", signal: AbortSignal.timeout(timeout) });
      if (answer.type === "opaqueredirect" || answer.status === 403) return end(bar.dataset.rtqEnded);
      if (!answer.ok && answer.status !== 404) throw new Error(answer.status);
      swap(new DOMParser().parseFromString(await answer.text(), "text/html"), answer.status === 404);
      if (answer.status === 404) return end(bar.dataset.rtqGone); // for example a job that someone else has discarded
      [wait, lastRefresh] = [usual, new Date()];
      if (isOn) showStatus(bar.dataset.rtqOn, "on");
      halt();
    } catch {
      wait = 2 * usual;
      showStale();
    }
  };
  const halt = () => { if (document.querySelector("[data-rtq-halt]")) { isOn = false; show(); } };
  const next = () => { clearTimeout(timer); if (isOn && !ended) timer = setTimeout(turn, wait); };
  const turn = async () => { if (!document.hidden) await refresh(); next(); };

  button.addEventListener("click", () => {
    isOn = !isOn;
    storage.set(isOn ? "on" : "off");
    show();
    if (isOn) turn(); else next();
  });
  document.addEventListener("visibilitychange", () => { if (!document.hidden && isOn && !ended) turn(); });
  bar.hidden = false;
  show();
  halt(); // an expensive search is repeated only on request
  showAge();
  setInterval(showAge, 1000);
  next();
})();
