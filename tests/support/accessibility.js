// Problems of the page that keep people from using it: names, labels, headers, headings, landmarks, contrast.
const problems = [];
const visible = (e) => e.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });
const told = (e) => `<${e.tagName.toLowerCase()} class="${e.getAttribute("class") ?? ""}"> ${(e.textContent ?? "").trim().slice(0, 40)}`;
const nameOf = (e) => {
  const labelled = (e.getAttribute("aria-labelledby") ?? "").split(" ").map((id) => document.getElementById(id)?.textContent ?? "").join(" ");
  const labels = [...(e.labels ?? [])].map((l) => l.textContent).join(" ");
  return (e.getAttribute("aria-label") || labelled.trim() || labels.trim() || e.textContent.trim() || e.getAttribute("title") || "").trim();
};

for (const e of document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [role=img], progress, dialog")) {
  if ((e.tagName === "DIALOG" || visible(e)) && !nameOf(e)) problems.push(`no name: ${told(e)}`);
}
for (const e of document.querySelectorAll("th")) if (!e.scope) problems.push(`header without scope: ${told(e)}`);
for (const e of document.querySelectorAll("table")) if (!e.querySelector("thead th")) problems.push(`table without headers: ${told(e)}`);
const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
for (const id of new Set(ids)) if (ids.filter((one) => one === id).length > 1) problems.push(`id twice: ${id}`);
for (const e of document.querySelectorAll("[aria-labelledby], [aria-describedby], [aria-controls]")) {
  for (const name of ["aria-labelledby", "aria-describedby", "aria-controls"]) {
    for (const id of (e.getAttribute(name) ?? "").split(" ").filter(Boolean)) if (!document.getElementById(id)) problems.push(`${name} of nothing: ${id}`);
  }
}
for (const e of document.querySelectorAll('a[href^="#"]')) if (!document.querySelector(e.getAttribute("href"))) problems.push(`link to nothing: ${told(e)}`);
if (document.querySelectorAll("main").length !== 1 || !document.querySelector("header nav[aria-label]")) problems.push("landmarks are missing");
if (!document.documentElement.lang || !document.title) problems.push("no language or title");
const levels = [...document.querySelectorAll("main h1, main h2, main h3")].filter(visible).map((e) => Number(e.tagName[1]));
if (levels[0] !== 1) problems.push("the page does not begin with a heading of its own");
levels.forEach((level, at) => { if (at && level > levels[at - 1] + 1) problems.push(`a heading of level ${level} follows one of ${levels[at - 1]}`); });

const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
const rgba = (css) => {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = css;
  canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
};
const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
const behind = (e) => {
  const layers = [];
  for (let at = e; at; at = at.parentElement) {
    layers.push(rgba(getComputedStyle(at).backgroundColor));
    if (layers.at(-1)[3] === 1) break;
  }
  return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
};
const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const seen = new Set();
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const e = walker.currentNode.parentElement;
  if (!walker.currentNode.nodeValue.trim() || seen.has(e) || !visible(e) || e.closest(".visually-hidden, .skip, option")) continue;
  seen.add(e);
  const style = getComputedStyle(e);
  const back = behind(e);
  const fore = over(rgba(e.closest("svg") ? style.fill : style.color), back);
  const [high, low] = [light(fore), light(back)].sort((a, b) => b - a);
  const ratio = (high + 0.05) / (low + 0.05);
  if (ratio < 4.5) problems.push(`contrast ${ratio.toFixed(2)}: ${told(e)}`);
}
return problems;
