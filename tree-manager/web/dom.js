// Makes elements. All text from the manager is set as text, never as markup.
const SVG = "http://www.w3.org/2000/svg";

export const find = (id) => document.getElementById(id);

export function make(tag, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
}

export function draw(tag, attributes, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

/** Fills a table: `columns` are [heading, class]; returns the body of the table. */
export function head(table, columns) {
  const row = make("tr");
  for (const [heading, className] of columns) {
    const cell = make("th", heading, className);
    cell.scope = "col";
    row.append(cell);
  }
  const top = make("thead"), body = make("tbody");
  top.append(row);
  table.replaceChildren(top, body);
  return body;
}

export function wideRow(columns, content, className) {
  const row = make("tr", undefined, className), cell = make("td", undefined, "wide");
  cell.colSpan = columns;
  cell.append(content);
  row.append(cell);
  return row;
}

/** The arrow keys move the focus between the elements that `selector` finds in `list`. */
export function moveByArrows(list, selector, before = "ArrowUp", after = "ArrowDown") {
  list.addEventListener("keydown", (event) => {
    if (![before, after, "Home", "End"].includes(event.key)) return;
    const all = [...list.querySelectorAll(selector)];
    if (!all.length) return;
    const now = all.indexOf(document.activeElement);
    const last = all.length - 1;
    const next = event.key === "Home" ? 0 : event.key === "End" ? last : now + (event.key === after ? 1 : -1);
    event.preventDefault();
    all[Math.max(0, Math.min(last, next))].focus();
  });
}

/** Runs `change`, which replaces elements, and gives the focus to the new element with the same data-key. */
export function keepFocus(root, change) {
  const key = root.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  change();
  if (key === undefined) return;
  const again = [...root.querySelectorAll("[data-key]")].find((element) => element.dataset.key === key);
  if (again) again.focus({ preventScroll: true });
}
