// Graphs: zoom by buttons or Ctrl and the wheel, pan by dragging; without this module they scroll.
const STEP = 1.25;
const SMALLEST = 0.15;
const LARGEST = 2;

export function followGraphs() {
  for (const canvas of document.querySelectorAll("[data-canvas]")) follow(canvas);
  document.addEventListener("horsies:updated", () => {
    for (const canvas of document.querySelectorAll("[data-canvas]:not([data-followed])")) follow(canvas);
  });
}

function follow(canvas) {
  canvas.setAttribute("data-followed", "");
  const zoom = canvas.closest("section").querySelector("[data-zoom]");
  zoom.hidden = false;
  zoom.addEventListener("click", (event) => {
    const step = event.target.closest("[data-step]")?.dataset.step;
    if (step === "0") fit(canvas, SMALLEST);
    else if (step) scaleBy(canvas, STEP ** Number(step));
  });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    scaleBy(canvas, event.deltaY < 0 ? STEP : 1 / STEP);
  }, { passive: false });
  followDrag(canvas);
  // Long graphs stay readable at first; "Fit" shows them whole.
  fit(canvas, 0.6);
}

function sizes(canvas) {
  const svg = canvas.querySelector("svg.graph");
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  return { svg, width, height, scale: Number(svg.getAttribute("width")) / width };
}

function fit(canvas, smallest) {
  const { width, height } = sizes(canvas);
  const room = Math.min((canvas.clientWidth - 2) / width, Math.max(canvas.clientHeight, 420) / height);
  resize(canvas, Math.min(1, Math.max(smallest, room)));
}

function scaleBy(canvas, factor) {
  const before = sizes(canvas).scale;
  const scale = Math.min(LARGEST, Math.max(SMALLEST, before * factor));
  const left = canvas.scrollLeft + canvas.clientWidth / 2;
  const top = canvas.scrollTop + canvas.clientHeight / 2;
  resize(canvas, scale);
  canvas.scrollLeft = (left * scale) / before - canvas.clientWidth / 2;
  canvas.scrollTop = (top * scale) / before - canvas.clientHeight / 2;
}

function resize(canvas, scale) {
  const { svg, width, height } = sizes(canvas);
  svg.setAttribute("width", Math.round(width * scale));
  svg.setAttribute("height", Math.round(height * scale));
}

function followDrag(canvas) {
  let from = null;
  let hasMoved = false;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "mouse" || event.button !== 0) return;
    from = { x: event.clientX + canvas.scrollLeft, y: event.clientY + canvas.scrollTop };
    hasMoved = false;
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!from) return;
    const left = from.x - event.clientX;
    const top = from.y - event.clientY;
    hasMoved ||= Math.abs(left - canvas.scrollLeft) + Math.abs(top - canvas.scrollTop) > 4;
    if (hasMoved) canvas.scrollTo(left, top);
  });
  for (const end of ["pointerup", "pointerleave", "pointercancel"]) {
    canvas.addEventListener(end, () => { from = null; });
  }
  canvas.addEventListener("dragstart", (event) => event.preventDefault());
  canvas.addEventListener("click", (event) => {
    if (hasMoved) event.preventDefault();
  }, { capture: true });
}
