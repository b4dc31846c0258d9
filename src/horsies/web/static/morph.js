// Makes an element like another by changing only what differs, so that focus, scrolling, selection,
// open details and ticked boxes stay. Children with a data-key are matched by it, others by their place.
import { show, showTick, showTimes } from "./times.js";

export function morph(from, to) {
  if (from.isEqualNode(to)) return;
  if (from.nodeType !== Node.ELEMENT_NODE) {
    if (from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue;
    return;
  }
  morphAttributes(from, to);
  if (from.matches("time[data-shape]")) return show(from);
  if (from.matches("text[data-at]")) return showTick(from);
  if (from.matches("textarea, select, [data-keep]")) return;
  morphChildren(from, to);
}

const KEPT = new Set(["open", "checked", "value", "title"]);

function morphAttributes(from, to) {
  for (const { name, value } of to.attributes) {
    if (KEPT.has(name) && from.hasAttribute(name) && name !== "title") continue;
    if (from.getAttribute(name) !== value && !isOwn(from, name)) from.setAttribute(name, value);
  }
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name) && !KEPT.has(name) && !isOwn(from, name)) from.removeAttribute(name);
  }
}

// What is set here and not on the server: the mark of the row that the keyboard is at, the size of a zoomed graph.
function isOwn(element, name) {
  if (name === "class") return element.matches("tr[data-row]");
  return name === "data-followed" || element.dataset.own?.split(" ").includes(name);
}

export function morphChildren(from, to) {
  const keyed = new Map();
  for (const child of from.children) {
    if (child.dataset.key) keyed.set(child.dataset.key, child);
  }
  let at = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    // Blanks between elements may differ; they must not shift what is compared with what.
    if (isBlank(wanted) && !isBlank(at)) continue;
    while (isBlank(at) && !isBlank(wanted)) {
      const blank = at;
      at = at.nextSibling;
      blank.remove();
    }
    const match = found(keyed, at, wanted);
    if (match) {
      if (match !== at) from.insertBefore(match, at);
      else at = at.nextSibling;
      morph(match, wanted);
    } else {
      const added = document.importNode(wanted, true);
      from.insertBefore(added, at);
      if (added.nodeType === Node.ELEMENT_NODE) showTimes(added.parentNode);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function isBlank(node) {
  return node?.nodeType === Node.TEXT_NODE && !node.nodeValue.trim();
}

function found(keyed, at, wanted) {
  const key = wanted.dataset?.key;
  if (key) return keyed.get(key) ?? null;
  if (!at || at.nodeType !== wanted.nodeType || at.nodeName !== wanted.nodeName || at.dataset?.key) return null;
  return at;
}
