// Ticks on rows: how many, and all of the page at once.
export function followSelection() {
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-all]")) {
      for (const box of boxes()) box.checked = event.target.checked;
    }
    if (event.target.matches("[data-all], [data-one]")) show();
  });
  document.addEventListener("horsies:updated", show);
  show();
}

function boxes() {
  return [...document.querySelectorAll("[data-one]")];
}

function show() {
  const chosen = boxes().filter((box) => box.checked).length;
  for (const place of document.querySelectorAll("[data-chosen]")) {
    place.textContent = chosen ? `${chosen} selected` : place.dataset.chosen;
  }
}
