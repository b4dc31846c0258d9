// Keyboard shortcuts. They are silent while someone types, and with Ctrl, Alt or Meta.
import { toggleLive } from "./live.js";
import { nextTheme } from "./theme.js";

let isGoing = false;

export function followKeys() {
  const dialog = document.getElementById("keys");
  document.getElementById("help")?.addEventListener("click", () => dialog.showModal());
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || isTyping(event.target) || dialog.open) return;
    if (isGoing) {
      isGoing = false;
      const link = document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
      if (link) link.click();
      return;
    }
    const act = ACTIONS[event.key];
    if (act && act(dialog) !== false) event.preventDefault();
  });
}

const ACTIONS = {
  "/": () => focusSearch(),
  "?": (dialog) => dialog.showModal(),
  j: () => step(1),
  k: () => step(-1),
  x: () => current()?.querySelector('input[type="checkbox"]')?.click(),
  p: () => toggleLive(),
  t: () => nextTheme(),
  g: () => { isGoing = true; setTimeout(() => { isGoing = false; }, 1500); },
  Enter: () => open(),
};

function isTyping(target) {
  return target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]") !== null;
}

function focusSearch() {
  const field = document.querySelector("[data-search]");
  if (!field) return false;
  field.focus();
  field.select();
}

function rows() {
  return [...document.querySelectorAll("tbody tr[data-row]")];
}

function current() {
  return document.querySelector("tbody tr.at");
}

function step(by) {
  const all = rows();
  if (!all.length) return false;
  const at = all.indexOf(current());
  const next = all[Math.min(all.length - 1, Math.max(0, at + by))];
  current()?.classList.remove("at");
  next.classList.add("at");
  next.scrollIntoView({ block: "nearest" });
}

function open() {
  if (!document.activeElement || document.activeElement.matches("a, button, summary, input")) return false;
  const link = current()?.querySelector("a[href]");
  if (!link) return false;
  link.click();
}
