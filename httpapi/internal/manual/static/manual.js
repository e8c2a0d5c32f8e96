// What a page has more with script: copying, and the language of examples that was chosen.
(() => {
  "use strict";
  document.documentElement.dataset.script = "";
  const told = document.getElementById("told");
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const shown = button.firstChild;
    try {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
      shown.data = told.textContent = "Copied";
    } catch {
      shown.data = told.textContent = "Not copied";
    }
    setTimeout(() => { shown.data = "Copy"; told.textContent = ""; }, 2000);
  });
  const choices = [...document.querySelectorAll("input[name=language]")];
  try {
    const kept = choices.find((c) => c.value === localStorage.getItem("manual-language"));
    if (kept) kept.checked = true;
  } catch { /* a browser that keeps nothing */ }
  for (const c of choices) c.addEventListener("change", () => {
    try { localStorage.setItem("manual-language", c.value); } catch { /* likewise */ }
  });
})();
