// What every panel stands on: calls of the server, what is known of the application, the address, and how values read.
import { h, htm, useEffect, useLayoutEffect, useReducer, useRef, useState } from "./vendor.js";

export const html = htm.bind(h);
const token = document.querySelector('meta[name="core-token"]').content;

// -- calls

export async function send(path, { method = "GET", body, raw, signal } = {}) {
  const response = await fetch(`/_core/api${path}`, {
    method, signal, headers: { "X-Core-Token": token },
    body: raw !== undefined ? raw : body === undefined ? undefined : JSON.stringify(body),
  });
  if (response.ok) return response;
  const answer = await response.json().catch(() => ({ error: `The server answered ${response.status}` }));
  const issues = (answer.issues || []).map((issue) => `${issue.path} ${issue.message}`).join("; ");
  const error = new Error(issues ? `${answer.error}: ${issues}` : answer.error);
  error.status = response.status;
  throw error;
}

export const call = async (path, options) => (await send(path, options)).json();
export const at = encodeURIComponent;

export function query(values) {
  return Object.entries(values).filter(([, value]) => value !== "" && value !== null && value !== undefined)
    .map(([name, value]) => `${name}=${at(value)}`).join("&");
}

// -- what is known, and whoever wants to hear of it

export const store = {
  overview: null, live: "connecting", exchanges: new Map(), order: [], read: false, notice: null, asking: null, loads: 0,
};
const listeners = new Set();
let waiting = false;

// Once for each frame, however much has changed.
export function changed() {
  if (waiting) return;
  waiting = true;
  const tell = () => {
    if (!waiting) return;
    waiting = false;
    for (const listener of listeners) listener();
  };
  requestAnimationFrame(tell);
  setTimeout(tell, 100); // a page that is not shown has no frames
}

export function useStore() {
  const [, redraw] = useReducer((count) => count + 1, 0);
  // An effect comes after a frame, and what changes before it would not be shown.
  useLayoutEffect(() => { listeners.add(redraw); return () => listeners.delete(redraw); }, []);
  return store;
}

export const bindings = (kind) => (store.overview?.bindings || []).filter((one) => one.kind === kind && !one.absent);

// A value from the server: again whenever `inputs` change, and after a reload of the application. What was there stays
// until the new one has come.
export function useLoaded(load, inputs) {
  const [state, setState] = useState({ value: null, error: null });
  const [turn, again] = useReducer((count) => count + 1, 0);
  const loads = store.loads;
  useEffect(() => {
    let current = true;
    load().then(
      (value) => { if (current) setState({ value, error: null }); },
      (error) => { if (current) setState((before) => ({ value: error.status ? null : before.value, error })); },
    );
    return () => { current = false; };
  }, [...inputs, turn, loads]);
  return [state.value, state.error, again];
}

// -- notices and questions

let quiet = 0;
export function say(text, bad = false) {
  store.notice = { text, bad };
  clearTimeout(quiet);
  quiet = setTimeout(() => { store.notice = null; changed(); }, bad ? 12000 : 3500);
  changed();
}

// Ask before something is destroyed. Resolves to true or false.
export function ask(title, lines, verb) {
  return new Promise((resolve) => {
    store.asking = { title, lines, verb, back: document.activeElement, answer: (yes) => { store.asking = null; changed(); resolve(yes); } };
    changed();
  });
}

// Run what a button or form does; say what failed.
export const act = (work) => async (event) => {
  event?.preventDefault();
  try { await work(event); } catch (error) { say(error.message, true); }
};

// -- what is written in a form, and is neither saved nor kept as a draft

const unsaved = new Map();

// `what` was `changed` in a form. Returns what the form calls once that is saved or gone, before it leaves by itself.
export function useUnsaved(what, isChanged) {
  const form = useRef({ left: false }).current;
  useLayoutEffect(() => {
    if (!isChanged) form.left = false;
    if (isChanged && !form.left) unsaved.set(form, what); else unsaved.delete(form);
  });
  useLayoutEffect(() => () => { unsaved.delete(form); }, []);
  return () => { form.left = true; unsaved.delete(form); };
}

// Ask before a form goes with what is written in it. Resolves to true if it may go.
export async function mayLeave() {
  return !unsaved.size || ask("Leave without saving?", [...unsaved.values()], "Leave");
}

window.addEventListener("beforeunload", (event) => { if (unsaved.size) event.preventDefault(); });

// -- the address: `#panel/part/part`

// What is shown, and its place in the history of the tab: a new entry has none yet.
let shown = location.hash, place = history.state?.place ?? 0;
history.replaceState({ place }, "");

// The address has changed. While a form asks, it is as it was. Resolves to true when another part is to be shown.
export async function arrive() {
  const wanted = location.hash, to = history.state?.place ?? place + 1;
  if (wanted === shown) return false;
  if (unsaved.size && to !== place) {
    history.go(place - to);
    if (await mayLeave()) {
      for (const form of unsaved.keys()) form.left = true;
      unsaved.clear();
      history.go(to - place);
    }
    return false;
  }
  history.replaceState({ place: to }, "");
  [shown, place] = [wanted, to];
  return true;
}

export function here() {
  const parts = shown.slice(1).split("/").map((part) => { try { return decodeURIComponent(part); } catch { return part; } });
  return { panel: parts[0] || "requests", parts: parts.slice(1) };
}

export const link = (...parts) => `#${parts.map(at).join("/")}`;

export function go(...parts) {
  const hash = link(...parts);
  if (location.hash !== hash) location.hash = hash;
}

// -- what was typed, kept while other panels are shown and when the page is loaded again

export function useDraft(key, first = "") {
  const name = `core-draft ${key}`;
  const [value, setValue] = useState(null);
  const kept = value?.name === name ? value.text : sessionStorage.getItem(name) ?? first;
  const set = (text) => {
    setValue({ name, text });
    try { if (text === first) sessionStorage.removeItem(name); else sessionStorage.setItem(name, text); } catch { /* it is full */ }
  };
  return [kept, set];
}

// -- how values read

export const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString([], { hourCycle: "h23" });
export const moment = (seconds) => new Date(seconds * 1000).toLocaleString([], { hourCycle: "h23" });
export const count = (number) => number.toLocaleString("en");
export const some = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;
export const milliseconds = (time) => (time === null || time === undefined ? "…" : time < 10 ? `${time.toFixed(2)} ms` : time < 1000 ? `${time.toFixed(0)} ms` : `${(time / 1000).toFixed(2)} s`);
export const size = (bytes) => (bytes === null || bytes === undefined ? "large" : bytes < 1000 ? `${bytes} B` : bytes < 1e6 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);

export function until(seconds) {
  const left = seconds - Date.now() / 1000, away = Math.abs(left);
  const text = away < 90 ? `${Math.round(away)} s` : away < 5400 ? `${Math.round(away / 60)} min` : away < 129600 ? `${Math.round(away / 3600)} h` : `${Math.round(away / 86400)} days`;
  return left >= 0 ? `in ${text}` : `${text} ago`;
}

export function pretty(text) {
  try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
}

export function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

export async function copy(text, what) {
  await navigator.clipboard.writeText(text);
  say(`Copied ${what}`);
}
