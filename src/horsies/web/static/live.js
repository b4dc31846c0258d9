// Live updates: the server says that something changed, the page fetches itself and takes over what differs.
import { morphChildren } from "./morph.js";

let isLive = sessionStorage.getItem("horsies-live") !== "off";
let source = null;
let isFetching = false;
let isStale = false;
let mark = "";
let fetchedAt = 0;

export function startLive() {
  const button = document.getElementById("live");
  if (!button || !document.querySelector("main[data-live]")) return;
  button.hidden = false;
  button.addEventListener("click", toggleLive);
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  show();
  open();
}

// Pages without a button, such as a review, answer a form: fetched again, they would be another page.
export function toggleLive() {
  if (document.getElementById("live")?.hidden !== false) return;
  isLive = !isLive;
  sessionStorage.setItem("horsies-live", isLive ? "on" : "off");
  show();
  if (isLive) open();
  else close();
}

function show() {
  const button = document.getElementById("live");
  button.setAttribute("aria-pressed", String(isLive));
  button.querySelector(".word").textContent = isLive ? "Live" : "Paused";
}

function open() {
  if (source || !isLive || document.hidden) return;
  source = new EventSource(`${document.documentElement.dataset.root}/events`);
  source.onmessage = () => refresh();
  source.onerror = () => lost(true);
}

function close() {
  source?.close();
  source = null;
}

// One fetch at a time: what changes meanwhile is fetched together afterwards.
async function refresh() {
  if (isFetching || isBusy()) {
    isStale = true;
    return;
  }
  // A page of large charts says how many milliseconds apart its updates are at least.
  const early = fetchedAt + Number(document.querySelector("main").dataset.live) - Date.now();
  if (early > 0) {
    if (!isStale) setTimeout(() => { isStale = false; refresh(); }, early);
    isStale = true;
    return;
  }
  isFetching = true;
  fetchedAt = Date.now();
  isStale = false;
  try {
    const response = await fetch(location.href, { headers: { "X-Part": mark || "1" } });
    if (response.redirected) return location.reload();
    lost(false);
    if (response.status !== 204) {
      mark = response.headers.get("X-Mark") ?? "";
      take(await response.text());
    }
  } catch {
    lost(true);
  } finally {
    isFetching = false;
  }
  if (isStale && isLive) setTimeout(refresh, 250);
}

// Nobody's typing is overtaken by an update.
function isBusy() {
  const at = document.activeElement;
  return document.querySelector("main details.menu[open]") !== null || at?.closest("main form [name]:not([type=checkbox])") != null;
}

function take(html) {
  const page = new DOMParser().parseFromString(`<main>${html}</main>`, "text/html");
  morphChildren(document.querySelector("main"), page.querySelector("main"));
  document.dispatchEvent(new CustomEvent("horsies:updated"));
  const dot = document.querySelector("#live .dot");
  dot.classList.remove("beat");
  void dot.offsetWidth;
  dot.classList.add("beat");
}

function lost(isLost) {
  document.getElementById("lost").hidden = !isLost;
  document.getElementById("live").toggleAttribute("data-lost", isLost);
}
