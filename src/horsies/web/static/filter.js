// Suggestions while a filter is typed: the server offers endings for the word at the cursor.
export function followFilter() {
  const field = document.querySelector("[data-suggest]");
  if (!field) return;
  const list = document.createElement("ul");
  list.id = "suggestions";
  list.className = "suggestions";
  list.setAttribute("role", "listbox");
  list.hidden = true;
  field.after(list);
  for (const [name, value] of Object.entries({ role: "combobox", "aria-expanded": "false", "aria-controls": list.id, "aria-autocomplete": "list", autocomplete: "off" })) {
    field.setAttribute(name, value);
  }
  const box = { field, list, at: -1, asked: 0 };
  field.addEventListener("input", () => offer(box));
  field.addEventListener("focus", () => offer(box));
  field.addEventListener("blur", () => setTimeout(() => hide(box), 150));
  field.addEventListener("keydown", (event) => pressed(box, event));
  list.addEventListener("mousedown", (event) => {
    const item = event.target.closest("li");
    if (item) {
      event.preventDefault();
      choose(box, item);
    }
  });
}

function word(field) {
  const before = field.value.slice(0, field.selectionStart);
  const start = before.search(/\S*$/);
  return { start, text: before.slice(start) };
}

async function offer(box) {
  const asked = ++box.asked;
  const { text } = word(box.field);
  const address = `${box.field.dataset.suggest}?word=${encodeURIComponent(text)}`;
  try {
    const words = await (await fetch(address)).json();
    if (asked === box.asked && document.activeElement === box.field) show(box, words, text);
  } catch {
    hide(box);
  }
}

function show(box, words, typed) {
  const wanted = words.filter(({ word }) => word !== typed);
  box.list.replaceChildren(...wanted.map(({ word, about }, number) => {
    const item = document.createElement("li");
    item.id = `suggestion-${number}`;
    item.setAttribute("role", "option");
    item.dataset.word = word;
    const name = document.createElement("code");
    name.textContent = word;
    const text = document.createElement("span");
    text.className = "quiet";
    text.textContent = about;
    item.append(name, " ", text);
    return item;
  }));
  box.at = -1;
  box.list.hidden = !wanted.length;
  box.field.setAttribute("aria-expanded", String(!box.list.hidden));
  box.field.removeAttribute("aria-activedescendant");
}

function hide(box) {
  box.list.hidden = true;
  box.field.setAttribute("aria-expanded", "false");
}

function pressed(box, event) {
  if (box.list.hidden) return;
  const items = [...box.list.children];
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    box.at = (box.at + (event.key === "ArrowDown" ? 1 : -1) + items.length) % items.length;
    items.forEach((item, number) => item.setAttribute("aria-selected", String(number === box.at)));
    box.field.setAttribute("aria-activedescendant", items[box.at].id);
  } else if (event.key === "Tab" || (event.key === "Enter" && box.at >= 0)) {
    if (box.at < 0 && event.key === "Tab" && !word(box.field).text) return;
    event.preventDefault();
    choose(box, items[Math.max(0, box.at)]);
  } else if (event.key === "Escape") {
    event.preventDefault(); // it would empty the field
    hide(box);
  }
}

function choose(box, item) {
  const { start, text } = word(box.field);
  const chosen = item.dataset.word;
  const after = box.field.value.slice(start + text.length);
  const isWhole = !chosen.endsWith(":") && !chosen.endsWith(".");
  box.field.value = box.field.value.slice(0, start) + chosen + (isWhole && !after ? " " : "") + after;
  const at = start + chosen.length + (isWhole && !after ? 1 : 0);
  box.field.setSelectionRange(at, at);
  box.field.focus();
  offer(box);
}
