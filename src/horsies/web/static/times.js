// Shows instants in the reader's zone and keeps "3 min ago" up to date.
const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const MINUTE = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

export function showTimes(root = document) {
  for (const time of root.querySelectorAll("time[data-shape]")) show(time);
  for (const text of root.querySelectorAll("text[data-at]")) showTick(text);
}

// The instants below a chart: the server does not know the reader's zone.
export function showTick(text) {
  const at = new Date(text.dataset.at);
  text.textContent = text.dataset.shape === "day" ? DAY.format(at) : MINUTE.format(at);
}

// Elements that a live update brings are shown before anyone sees them.
export function show(time) {
  const at = new Date(time.dateTime);
  if (Number.isNaN(at.valueOf())) return;
  time.title = FULL.format(at);
  time.textContent = time.dataset.shape === "ago" ? ago(at) : moment(at);
}

function moment(at) {
  return at.toDateString() === new Date().toDateString() ? CLOCK.format(at) : DATE.format(at);
}

function ago(at) {
  const seconds = (Date.now() - at) / 1000;
  const length = words(Math.abs(seconds));
  if (Math.abs(seconds) < 1) return "now";
  return seconds < 0 ? `in ${length}` : `${length} ago`;
}

function words(seconds) {
  const whole = Math.floor(seconds);
  const at = UNITS.findIndex(([, size]) => whole >= size);
  if (at < 0) return "0 s";
  const [unit, size] = UNITS[at];
  const first = `${Math.floor(whole / size)} ${unit}`;
  if (unit === "s" || at + 1 === UNITS.length) return first;
  const [next, nextSize] = UNITS[at + 1];
  const rest = Math.floor((whole % size) / nextSize);
  return rest && unit !== "min" ? `${first} ${rest} ${next}` : first;
}

setInterval(() => {
  for (const time of document.querySelectorAll('time[data-shape="ago"]')) {
    const text = ago(new Date(time.dateTime));
    if (time.textContent !== text) time.textContent = text;
  }
}, 1000);
