// A table of any length: the rows in view are in the page, and of those that the server has only the pages in view.
import { call, count, html, query, say, some, store, useDraft } from "./core.js";
import { Field } from "./parts.js";
import { elementScroll, observeElementOffset, observeElementRect, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState, Virtualizer } from "./vendor.js";

const CHUNK = 100;
let grids = 0;

// Rows that the server has: `load(offset, limit, signal)` gives { rows, total }. `key` says which list it is; `turn` that
// it may have changed. What was there stays until the new rows have come. Who wants another list waits for none before it.
export function useRemote(load, key, turn) {
  const [, redraw] = useReducer((number) => number + 1, 0);
  const state = useRef({ key: null, turn: null, chunks: new Map(), total: null, most: 0, error: null, lists: 0 });
  const here = state.current;
  const begin = (more) => {
    here.caller?.abort(); // the server looks no further
    Object.assign(here, { caller: new AbortController(), asked: new Set(), waiting: 0, stopped: false, ...more });
  };
  if (here.key !== key) begin({ key, turn, old: true, error: null });
  else if (here.turn !== turn && !here.waiting && !here.stopped) begin({ turn });
  const want = (first, last) => {
    const { caller, asked } = here;
    if (here.stopped || here.key !== key) return; // what an effect of the list before wants, nobody does
    const list = here.old ? [0, 0] : [first, last];
    for (let chunk = Math.floor(list[0] / CHUNK); chunk <= Math.floor(list[1] / CHUNK); chunk += 1) {
      if (asked.has(chunk)) continue;
      asked.add(chunk);
      here.waiting += 1;
      load(chunk * CHUNK, CHUNK, caller.signal).then((found) => {
        if (here.caller !== caller) return;
        if (here.old) Object.assign(here, { old: false, chunks: new Map(), lists: here.lists + 1 });
        here.chunks.set(chunk, found.rows);
        for (const one of [...here.chunks.keys()]) if (one && one * CHUNK >= found.total) here.chunks.delete(one);
        Object.assign(here, { total: found.total, most: Math.max(here.most, found.total), error: null, found });
      }, (error) => {
        if (here.caller !== caller) return;
        if (here.old) here.error = error; else say(error.message, true);
      }).finally(() => {
        if (here.caller !== caller) return;
        here.waiting -= 1;
        redraw();
      });
    }
  };
  useEffect(() => want(0, 0));
  useEffect(() => () => here.caller.abort(), []);
  const again = () => { begin(); redraw(); };
  const stop = () => { begin({ stopped: true }); redraw(); };
  return {
    total: here.total, most: here.most, error: here.error, found: here.found, list: here.lists, want, again, stop,
    searching: here.old && !here.stopped && !here.error, stopped: here.stopped, row: (index) => here.chunks.get(Math.floor(index / CHUNK))?.[index % CHUNK],
  };
}

// A list that the server has at `path`, in pages: what is searched, which is kept as a draft, its order, the rows that are
// marked. `more` is asked for as well, `turn` says that it may have changed, and `read` makes rows of what was found.
export function useListing({ path, draft, by = "key", more = {}, turn = 0, read = (found) => found }) {
  const [search, setSearch] = useDraft(draft), [sort, onSort] = useState({ by, down: false });
  const [chosen, set] = useState(new Set()), [looks, again] = useReducer((count) => count + 1, 0);
  const asked = { search, ...more, sort: sort.by, descending: sort.down || null };
  const load = async (offset, limit, signal) => read(await call(`${path}?${query({ offset, limit, ...asked })}`, { signal }), offset);
  const source = useRemote(load, `${path} ${query(asked)}`, `${turn} ${looks} ${store.loads}`);
  return { search, setSearch, again, source, marked: chosen, setMarked: set, grid: { source, sort, onSort, marks: { chosen, set } } };
}

// The search of a list, with what else can be done with it, and how many rows there are.
export const Search = ({ label, what, listing, children }) => html`
  <form class="bar" role="search" onSubmit=${(event) => { event.preventDefault(); listing.source.again(); }}>
    <${Field} label=${label} wide><input type="search" value=${listing.search} onInput=${(event) => listing.setSearch(event.target.value)} /><//>
    ${children}<${Total} source=${listing.source} what=${what} marks=${listing.grid.marks} /></form>`;

export const local = (rows) => ({ total: rows.length, error: null, want: () => {}, row: (index) => rows[index], rows });

// Rows of the page, in the order of a column: `value` of { sort, value(row), down (the largest first, at first) }.
export function inOrder(rows, columns, sort) {
  const column = columns.find((one) => one.sort && one.sort === sort.by);
  if (!column) return rows;
  const side = sort.down ? -1 : 1;
  return rows.map((row) => [column.value(row), row])
    .sort(([one], [other]) => (one === other ? 0 : one === null ? 1 : other === null ? -1 : one < other ? -side : side)).map(([, row]) => row);
}

// `columns`: { label, width, n (a number), sort, down, cell(row) }. `id(row)` names a row, `open(row)` opens it.
// `marks`: { chosen: Set, set } lets rows be marked with a box or the space bar.
export function Grid({ label, columns: every, source, id, open, opened, sort, onSort, marks, height = 32, empty }) {
  const scroller = useRef(null), name = useMemo(() => `grid-${(grids += 1)}`, []);
  const [, redraw] = useReducer((number) => number + 1, 0);
  const [active, setActive] = useState(0);
  const total = source.total ?? 0;
  const options = {
    count: total, estimateSize: () => height, overscan: 8, getScrollElement: () => scroller.current,
    scrollToFn: elementScroll, observeElementRect: (instance, resized) => observeElementRect(instance, (rect) => { resized(rect); redraw(); }), observeElementOffset, onChange: () => redraw(), paddingStart: 0,
  };
  const virtual = useMemo(() => new Virtualizer(options), []);
  virtual.setOptions(options);
  useLayoutEffect(() => virtual._didMount(), []);
  useLayoutEffect(() => virtual._willUpdate());
  const items = virtual.getVirtualItems();
  const first = items[0]?.index ?? 0, last = items[items.length - 1]?.index ?? 0;
  useEffect(() => { if (total) source.want(first, last); });
  keepPlace(source, id, scroller, height, active, setActive);
  useLayoutEffect(() => { scroller.current?.scrollTo(0, 0); setActive(0); }, [source.list, sort?.by, sort?.down]);

  // What is `roomy` gives way where there is little room.
  const width = virtual.scrollRect?.width ?? 1000;
  const columns = every.filter((one) => !one.roomy || width > one.roomy);
  const template = `${marks ? "2.2rem " : ""}${columns.map((one) => one.width || "minmax(6rem, 1fr)").join(" ")}`;
  const move = (index) => {
    const next = Math.min(Math.max(index, 0), total - 1);
    setActive(next);
    virtual.scrollToIndex(next, { align: "auto" });
  };
  const mark = (row) => {
    const chosen = new Set(marks.chosen);
    if (!chosen.delete(id(row))) chosen.add(id(row));
    marks.set(chosen);
  };
  const keys = (event) => {
    if (event.target !== scroller.current || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor((scroller.current.clientHeight - height) / height));
    const step = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page, Home: 0, End: total - 1 }[event.key];
    const row = source.row(active);
    if (step !== undefined) move(step);
    else if (event.key === "Enter" && row && open) open(row);
    else if (event.key === " " && row && marks) mark(row);
    else return;
    event.preventDefault();
  };
  if (source.error) return html`<div class="problem" role="alert">${source.error.message}</div>`;
  const shape = { gridTemplateColumns: template };
  const head = html`<div class="row head" role="row" aria-rowindex="1" style=${shape}>
    ${marks && html`<div role="columnheader" class="mark"><span class="away">Marked</span></div>`}
    ${columns.map((one) => html`<div role="columnheader" class=${one.n ? "n" : ""} aria-sort=${sort?.by === one.sort && one.sort ? (sort.down ? "descending" : "ascending") : null}>
      ${one.sort && onSort ? html`<button type="button" onClick=${() => onSort({ by: one.sort, down: sort?.by === one.sort ? !sort.down : Boolean(one.down) })}>${one.label}<i aria-hidden="true">${sort?.by === one.sort ? (sort.down ? "↓" : "↑") : ""}</i></button>` : one.label}</div>`)}</div>`;
  return html`<div class=${source.searching || source.stopped ? "grid old" : "grid"} aria-busy=${source.searching ? "true" : null} ref=${scroller} role="grid" aria-label=${label} aria-rowcount=${total + 1} tabindex="0" aria-multiselectable=${marks ? "true" : null}
      aria-activedescendant=${total ? `${name}-${active}` : null} onKeyDown=${keys}>
    <div role="rowgroup" class="top">${head}</div>
    <div role="rowgroup" class="rows" style=${{ height: `${virtual.getTotalSize()}px` }}>${items.map((item) => {
      const row = source.row(item.index);
      const key = row ? id(row) : null, current = item.index === active ? " active" : "";
      return html`<div key=${item.index} id=${`${name}-${item.index}`} role="row" aria-rowindex=${item.index + 2} aria-selected=${row && (marks ? marks.chosen.has(key) : key === opened) ? "true" : "false"}
          class=${`row${current}${row && key === opened ? " opened" : ""}${open ? " opens" : ""}`} style=${{ ...shape, height: `${height}px`, transform: `translateY(${item.start}px)` }}
          onClick=${(event) => { setActive(item.index); if (row && open && !event.target.closest("a, button, input")) open(row); }}>
        ${marks && html`<div role="gridcell" class="mark">${row && html`<input type="checkbox" tabindex="-1" aria-label=${`Mark ${key}`} checked=${marks.chosen.has(key)} onChange=${() => mark(row)} />`}</div>`}
        ${columns.map((one) => html`<div role="gridcell" class=${one.n ? "n" : one.class || ""}>${row ? one.cell(row) : ""}</div>`)}</div>`;
    })}</div>
    ${total === 0 && source.total !== null ? html`<div role="rowgroup"><div role="row" class="nothing"><div role="gridcell">${empty}</div></div></div>` : null}
  </div>`;
}

// New rows at the beginning of a list must not push away what somebody is reading.
function keepPlace(source, id, scroller, height, active, setActive) {
  const before = useRef(null);
  useLayoutEffect(() => {
    const { rows } = source, old = before.current;
    before.current = rows ? { first: rows.length ? id(rows[0]) : null, rows } : null;
    if (!rows || !old?.first || old.rows === rows || !rows.length || id(rows[0]) === old.first) return;
    const added = rows.findIndex((row) => id(row) === old.first);
    if (added <= 0) return;
    if (active > 0 || document.activeElement === scroller.current) setActive(active + added);
    if (scroller.current.scrollTop > 0) scroller.current.scrollTop += added * height;
  });
}

// How many rows there are, and of them marked; while they are looked for, that, and what ends it.
export function Total({ source, what, marks }) {
  if (source.searching) return html`<div class="total late"><span role="status">Searching${source.most ? ` ${some(source.most, what)}` : ""} …</span> <button type="button" class="link" onClick=${source.stop}>Stop</button></div>`;
  if (source.stopped) return html`<div class="total"><span role="status">Stopped: the rows are those of before.</span> <button type="button" class="link" onClick=${source.again}>Search again</button></div>`;
  return html`<div class="total" role="status">${source.total === null ? "" : some(source.total, what)}${marks?.chosen.size ? `, ${count(marks.chosen.size)} marked` : ""}</div>`;
}
