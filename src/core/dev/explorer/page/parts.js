// Small components that panels share.
import { bindings, bytesOf, html, link, pretty, size, store } from "./core.js";
import { Editor } from "./editor.js";
import { useEffect, useRef } from "./vendor.js";

export const Empty = ({ children, title }) => html`<div class="empty">${title && html`<strong>${title}</strong>`}<p>${children}</p></div>`;
export const Problem = ({ error }) => html`<div class="problem" role="alert">${String(error?.message ?? error)}</div>`;

// The record of a failure: what happened, the line with those around it, the steps before it, how to fix it, the page.
export const Failure = ({ one }) => html`<section class="problem failure" role="alert"><strong>${one.type}</strong>: ${one.message}
  ${one.problems.length ? html`<ol>${one.problems.map((each) => html`<li>${each}</li>`)}</ol>` : null}
  ${one.line && html`<p><code>${one.line.file}:${one.line.line}</code> ${one.line.function}</p>`}
  ${one.around.length ? html`<pre tabindex="0">${one.around.map(([number, text]) => html`<span class=${number === one.line.line ? "at" : ""}><b>${number}</b>${text}${"\n"}</span>`)}</pre>` : null}
  ${one.frames.length > 1 ? html`<ul class="steps">${one.frames.slice(1).map((each) => html`<li><code>${each.file}:${each.line}</code> ${each.function}: <code>${each.source}</code></li>`)}</ul>` : null}
  ${one.causes.map((each) => html`<p>Caused by ${each}</p>`)}
  ${one.fix && html`<p class="way"><strong>How to fix:</strong> ${one.fix}</p>`}
  ${one.page && html`<p>Page: <code>${one.page}</code></p>`}</section>`;
export const Field = ({ label, wide, children }) => html`<label class=${wide ? "field wide" : "field"}><span>${label}</span>${children}</label>`;
export const Loading = () => html`<p class="loading" role="status">Loading …</p>`;

// The heading of a panel with what can be done there.
export const Head = ({ title, note, children }) => html`
  <header class="panel-head"><h2 id="panel-title">${title}</h2>${note && html`<p class="note">${note}</p>`}<div class="actions">${children}</div></header>`;

// The panel of a kind of bindings: `show` makes it of the chosen one's name. The others are links, so that each has an address.
export function OfBinding({ kind, title, label, table, panel, chosen, show }) {
  const names = bindings(kind).map((one) => one.name), name = names.includes(chosen) ? chosen : names[0];
  if (!name) return html`<${Head} title=${title} /><${Empty} title=${`No ${label.toLowerCase()}`}>Write one into the configuration, under ${table}.<//>`;
  return html`<${Head} title=${title} note=${names.length === 1 ? name : ""}>${names.length > 1 && html`<nav class="choice" aria-label=${label}>${names.map((one) => html`
      <a href=${link(panel, one)} aria-current=${one === name ? "true" : null}>${one}</a>`)}</nav>`}<//>
    ${show(name)}`;
}

export function Tabs({ label, tabs, chosen, choose }) {
  const keys = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const names = tabs.map(([name]) => name), next = names[(names.indexOf(chosen) + step + names.length) % names.length];
    choose(next);
    event.currentTarget.querySelector(`[data-tab="${next}"]`).focus();
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} onKeyDown=${keys}>${tabs.map(([name, title, extra]) => html`
    <button type="button" role="tab" id=${`tab-${name}`} data-tab=${name} aria-selected=${name === chosen ? "true" : "false"} tabindex=${name === chosen ? 0 : -1} onClick=${() => choose(name)}>
      ${title}${extra ? html` <span class="count">${extra}</span>` : null}</button>`)}</div>`;
}

// Bring into view what was just opened, which may stand above, below or beside a long list.
export function reveal(element) {
  const top = element.getBoundingClientRect().top;
  if (top < 0 || top > innerHeight / 2) element.scrollIntoView({ block: "start" });
}

// A list, and beside it what is open of it. A narrow window shows the one or the other.
export function Split({ open, close, title, children, list }) {
  const detail = useRef(null), last = useRef(null);
  useEffect(() => {
    if (open && last.current !== title && matchMedia("(max-width: 60rem)").matches) detail.current?.scrollIntoView({ block: "start" });
    last.current = title;
  }, [open, title]);
  const keys = (event) => {
    if (event.key === "Escape" && !event.defaultPrevented) { event.preventDefault(); close(); }
  };
  return html`<div class=${open ? "split open" : "split"}>
    <div class="list">${list}</div>
    ${open && html`<section class="detail" ref=${detail} aria-label=${title} onKeyDown=${keys}>
      <header><h3>${title}</h3><button type="button" class="quiet" onClick=${close} aria-label="Close (Escape)">Close</button></header>
      <div class="detail-body">${children}</div></section>`}
  </div>`;
}

// A value of any kind, to be read: JSON in colours, an image as one, bytes in hexadecimal.
export function Value({ value, type = "", label }) {
  if (!value || (value.text === null && !value.base64) || value.size === 0) return html`<p class="none">Empty</p>`;
  const cut = value.cut ? html`<p class="none">The beginning of ${size(value.size)}</p>` : null;
  if (value.base64) {
    const image = /^image\/(png|jpeg|gif|webp|avif)$/.exec(type)?.[0] || imageOf(value.base64);
    if (image && !value.cut) return html`<figure><img src=${`data:${image};base64,${value.base64}`} alt=${label} /><figcaption>${image}, ${size(value.size)}</figcaption></figure>`;
    return html`${cut}<pre class="hex" tabindex="0" aria-label=${label}>${hex(value.base64)}</pre>`;
  }
  const isJson = /json/.test(type) || /^\s*[[{]/.test(value.text);
  const text = isJson && !value.cut ? pretty(value.text) : value.text;
  return html`${cut}<${Editor} value=${text} language=${isJson ? "json" : "text"} label=${label} readOnly />`;
}

const SIGNATURES = [["iVBORw0KGgo", "image/png"], ["/9j/", "image/jpeg"], ["R0lGOD", "image/gif"], ["UklGR", "image/webp"]];
const imageOf = (base64) => SIGNATURES.find(([start]) => base64.startsWith(start))?.[1];

function hex(base64) {
  const bytes = bytesOf(base64.slice(0, 10924)), lines = []; // 8 kB
  for (let offset = 0; offset < bytes.length; offset += 16) {
    const part = [...bytes.subarray(offset, offset + 16)];
    const numbers = part.map((one) => one.toString(16).padStart(2, "0")).join(" ").padEnd(47);
    lines.push(`${offset.toString(16).padStart(6, "0")}  ${numbers}  ${part.map((one) => (one > 31 && one < 127 ? String.fromCharCode(one) : "·")).join("")}`);
  }
  return lines.join("\n");
}

// A value in a cell of a table.
export function Cell({ value }) {
  if (value === null || value === undefined) return html`<span class="null">NULL</span>`;
  if (typeof value === "object") return value.base64 !== undefined ? html`<span class="null">${size(value.size)} of bytes</span>` : value.text;
  return String(value);
}

// The question that `ask` asks.
export function Question() {
  const dialog = useRef(null), asking = store.asking;
  useEffect(() => {
    if (!asking) return undefined;
    dialog.current.showModal();
    return () => { if (asking.back?.isConnected) asking.back.focus(); };
  }, [asking]);
  if (!asking) return null;
  return html`<dialog ref=${dialog} aria-labelledby="question" onCancel=${(event) => { event.preventDefault(); asking.answer(false); }}>
    <h3 id="question">${asking.title}</h3>
    ${asking.lines.map((line) => html`<pre tabindex="0">${line}</pre>`)}
    <div class="actions"><button type="button" onClick=${() => asking.answer(false)}>Cancel</button>
      <button type="button" class="danger first" onClick=${() => asking.answer(true)}>${asking.verb}</button></div></dialog>`;
}
