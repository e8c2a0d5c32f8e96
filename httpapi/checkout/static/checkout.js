"use strict";
// The page works without this: it adds copy buttons, the clock and live updates.
(() => {
  const root = document.documentElement, part = document.getElementById("part"), told = document.getElementById("told");
  root.dataset.script = "on";
  const ahead = Number(document.body.dataset.now) - Date.now(); // of the server's clock
  const two = (n) => String(n).padStart(2, "0");

  const tick = () => {
    const left = document.querySelector("[data-ends]");
    if (!left) return;
    const s = Math.max(0, Math.floor((Number(left.dataset.ends) - Date.now() - ahead) / 1000));
    left.textContent = (s >= 3600 ? Math.floor(s / 3600) + ":" + two(Math.floor(s / 60) % 60) : two(Math.floor(s / 60))) + ":" + two(s % 60);
  };
  const local = () => {
    for (const t of document.querySelectorAll("time[datetime]")) {
      const at = new Date(t.dateTime);
      const text = new Intl.DateTimeFormat(root.lang, { dateStyle: "medium", timeStyle: "short" }).format(at);
      if (t.dataset.text) t.textContent = t.dataset.text.replace("{time}", text); else t.textContent = text;
    }
  };
  local();
  tick();
  setInterval(tick, 1000);

  document.addEventListener("click", async (e) => {
    const b = e.target.closest("[data-copy]");
    if (b) {
      const from = document.getElementById(b.dataset.copy);
      try {
        await navigator.clipboard.writeText(from.textContent.trim());
      } catch {
        getSelection().selectAllChildren(from);
        return;
      }
      const label = b.querySelector("span"), was = label.textContent;
      if (told) told.textContent = b.dataset.done;
      if (b.dataset.busy) return;
      b.dataset.busy = "1";
      label.classList.remove("hush");
      label.textContent = b.dataset.done;
      setTimeout(() => {
        label.textContent = was;
        label.classList.toggle("hush", b.dataset.short === "1");
        delete b.dataset.busy;
        if (told) told.textContent = "";
      }, 1600);
    }
    if (e.target.closest("[data-print]")) print();
  });

  if (!part || !part.dataset.events) return;
  let version = part.dataset.version;

  // shape is what a block shows, without its clocks.
  const shape = (block) => {
    const copy = block.cloneNode(true);
    for (const clock of copy.querySelectorAll("[data-ends], time")) clock.textContent = "";
    return copy.className + copy.hidden + copy.innerHTML;
  };
  // put takes over what has changed, block by block: focus and reading position stay.
  const put = (html, now) => {
    version = now;
    const fresh = new DOMParser().parseFromString(html, "text/html");
    for (const want of fresh.querySelectorAll("[data-block]")) {
      const have = part.querySelector('[data-block="' + want.dataset.block + '"]');
      if (!have || shape(have) === shape(want)) continue;
      const focus = have.contains(document.activeElement) ? document.activeElement.id : "";
      have.className = want.className;
      have.hidden = want.hidden;
      have.replaceChildren(...want.childNodes);
      if (focus) (document.getElementById(focus) || part).focus();
    }
    const title = fresh.querySelector("[data-title]");
    if (title) document.title = title.dataset.title;
    local();
    tick();
  };
  const lost = document.getElementById("lost");
  const query = "?lang=" + encodeURIComponent(root.lang);
  let asking = 0, source = null, failed = 0;

  const ask = async () => {
    try {
      const r = await fetch(part.dataset.part + query, { headers: { "If-None-Match": '"' + version + '"' }, cache: "no-store", credentials: "omit" });
      if (r.status === 404) return location.reload();
      if (r.status === 200) put(await r.text(), (r.headers.get("ETag") || "").replaceAll('"', ""));
      lost.hidden = r.ok || r.status === 304;
    } catch {
      lost.hidden = false;
    }
  };
  const stream = () => {
    source = new EventSource(part.dataset.events + query + "&v=" + version);
    source.addEventListener("open", () => { failed = 0; lost.hidden = true; clearInterval(asking); asking = 0; });
    source.addEventListener("part", (e) => put(e.data, e.lastEventId));
    source.addEventListener("error", () => {
      if (!asking) { asking = setInterval(ask, 5000); ask(); }
      if (source.readyState === 2) setTimeout(stream, Math.min(60000, 5000 * 2 ** failed++));
    });
  };
  addEventListener("pagehide", () => source && source.close());
  addEventListener("pageshow", (e) => { if (e.persisted) stream(); });
  if ("EventSource" in window) stream(); else asking = setInterval(ask, 5000);
})();
