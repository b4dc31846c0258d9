// Light, dark or as the system: kept in a cookie, so that the server sends the right one at once.
const ORDER = ["auto", "light", "dark"];

export function followTheme() {
  document.getElementById("theme")?.addEventListener("click", nextTheme);
}

export function nextTheme() {
  const root = document.documentElement;
  const theme = ORDER[(ORDER.indexOf(root.dataset.theme) + 1) % ORDER.length];
  root.dataset.theme = theme;
  document.cookie = `horsies_theme=${theme};path=${root.dataset.root}/;max-age=31536000;samesite=lax`;
}
