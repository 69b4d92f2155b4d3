// Set the color scheme that was chosen here last, before anything is drawn.
"use strict";
(() => {
  const root = document.documentElement;
  try {
    const chosen = localStorage.getItem("theme");
    if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;
  } catch { /* storage may be forbidden */ }
  addEventListener("DOMContentLoaded", () => {
    const button = document.querySelector("[data-theme-switch]");
    const system = matchMedia("(prefers-color-scheme: dark)");
    const isDark = () => (root.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
    const say = () => button.setAttribute("aria-pressed", String(isDark()));
    button.hidden = false;
    button.setAttribute("aria-label", "Dark");
    say();
    system.addEventListener("change", say);
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      try { localStorage.setItem("theme", root.dataset.theme); } catch { /* then for this page alone */ }
      say();
    });
  });
})();
