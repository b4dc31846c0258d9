// The tip beside the pointer; without this module the browser shows the same text by itself.
export function followCharts() {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);
  document.addEventListener("pointermove", (event) => {
    const part = event.target.closest?.("[data-tip]");
    tip.hidden = !part;
    if (!part) return;
    tip.textContent = part.dataset.tip.replace(/\{([^}]+)\}/g, (_, at) => local(at));
    place(tip, event);
  });
  document.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true, capture: true });
}

function local(at) {
  const options = { dateStyle: "medium", timeStyle: "medium" };
  return new Intl.DateTimeFormat(undefined, options).format(new Date(at));
}

// Placed through the object model: the content-security policy forbids only styles in the markup.
function place(tip, event) {
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.min(event.clientX + 14, window.innerWidth - width - 8);
  const top = event.clientY + height + 24 > window.innerHeight ? event.clientY - height - 10 : event.clientY + 16;
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${Math.max(8, top)}px`;
}
