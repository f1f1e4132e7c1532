// Elements without a view library, for the panel "API": its forms are made from a document, once for each operation.

export function el(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "text") element.textContent = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

// Replace what an element holds. What is null or false is left out, as `el` does it.
export function fill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
}

// As `fill`, where something is looked up again and again: nothing is touched while it stays the same, and what had the
// focus has it afterwards.
const drawn = new WeakMap();
export function refill(element, state, make) {
  const text = JSON.stringify(state);
  if (drawn.get(element) === text) return;
  drawn.set(element, text);
  const name = (one) => one.getAttribute("aria-label") || one.textContent;
  const focused = element.contains(document.activeElement) ? name(document.activeElement) : null;
  fill(element, make());
  if (focused !== null) [...element.querySelectorAll("a, button, summary")].find((one) => name(one) === focused)?.focus();
}

// Bring into view what was just opened, which may stand above, below or beside a long list.
export function reveal(element) {
  const top = element.getBoundingClientRect().top;
  if (top < 0 || top > innerHeight / 2) element.scrollIntoView({ block: "start" });
}

// What was typed, by what it is for, kept while other panels are shown.
const drafts = new Map();

export function draft(key, control) {
  if (drafts.has(key)) control.value = drafts.get(key);
  control.addEventListener("input", () => drafts.set(key, control.value));
  return control;
}

export const field = (label, control, wide) => el("label", { class: wide ? "field wide" : "field" }, el("span", { text: label }), control);
export const empty = (text) => el("p", { class: "none", text });
