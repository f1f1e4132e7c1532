// The panel "SQL": the schema on the left; statements, or the rows of one table.
import { act, ask, at, call, html, link, milliseconds, say, some, count, useDraft, useLoaded } from "./core.js";
import { Editor } from "./editor.js";
import { Grid, local } from "./grid.js";
import { Cell, Empty, Loading, OfBinding, Problem } from "./parts.js";
import { Plans } from "./request.js";
import { Columns, Relations } from "./schema.js";
import { Table } from "./table.js";
import { useEffect, useMemo, useRef, useState } from "./vendor.js";

// What ran last in each database, kept while other panels are shown.
const results = new Map();
let runs = 0;

export const SQLPanel = ({ parts }) => html`<${OfBinding} kind="d1" title="SQL" label="Databases" table="d1_databases" panel="sql" chosen=${parts[0]}
  show=${(name) => html`<${Database} key=${name} name=${name} view=${parts[1]} table=${parts[1] === "table" ? parts[2] : null} where=${parts[3] === "where" ? parts[4] : null} id=${parts[3] === "where" ? parts[5] : parts[3]} />`} />`;

function Database({ name, view, table, where, id }) {
  const [schema, error, again] = useLoaded(() => call(`/d1/${at(name)}`), [name]);
  const words = useMemo(() => Object.fromEntries((schema?.tables || []).map((one) => [one.name, one.columns.map((column) => column.name)])), [schema]);
  if (error && !schema) return html`<${Problem} error=${error} />`;
  if (!schema) return html`<${Loading} />`;
  const chosen = schema.tables.find((one) => one.name === table);
  return html`<div class="sql"><${Schema} name=${name} schema=${schema} view=${view} table=${table} again=${again} />
    <div class="work">${view === "schema" ? html`<${Relations} database=${name} schema=${schema} />` : table === null ? html`<${Console} name=${name} words=${words} again=${again} />`
      : chosen ? html`<${Table} key=${`${table} ${where}`} database=${name} schema=${schema} table=${chosen} where=${where} id=${id} again=${again} />` : html`<${Problem} error=${`There is no table ${table}`} />`}</div></div>`;
}

function Schema({ name, schema, view, table, again }) {
  const { applied, pending } = schema.migrations;
  const apply = act(async () => {
    const done = await call(`/d1/${at(name)}/migrate`, { method: "POST" });
    say(`Applied ${done.applied.join(", ")}`);
    again();
  });
  return html`<aside aria-label="Schema"><ul class="tables"><li><a href=${link("sql", name)} aria-current=${table === null && view !== "schema" ? "true" : null}>Statements</a></li>
      <li><a href=${link("sql", name, "schema")} aria-current=${view === "schema" ? "true" : null}>Schema</a></li></ul>
    <h3>Tables</h3>
    ${schema.tables.length ? html`<ul class="tables">${schema.tables.map((one) => html`<li><a href=${link("sql", name, "table", one.name)} aria-current=${one.name === table ? "true" : null}>
      <span>${one.name}</span><span class="n">${one.type === "view" ? "view" : count(one.rows)}</span></a>
      ${one.name === table && html`<${Columns} database=${name} table=${one} />`}</li>`)}</ul>`
      : html`<p class="none">No tables yet.</p>`}
    <h3>Migrations</h3>
    ${applied.length + pending.length ? html`<ul class="tables">${applied.map((file) => html`<li>${file} <span class="ok">applied</span></li>`)}${pending.map((file) => html`<li>${file} <span class="warn">pending</span></li>`)}</ul>` : html`<p class="none">None</p>`}
    ${pending.length ? html`<button type="button" onClick=${apply}>Apply pending</button>` : null}</aside>`;
}

function Console({ name, words, again }) {
  const [sql, setSql] = useDraft(`sql ${name}`);
  const [, redraw] = useState(0), running = useRef(null);
  const [state, setState] = useState("idle");
  const shown = results.get(name);
  const keep = (found) => { results.set(name, found); redraw((turn) => turn + 1); };
  // What still runs ends with the panel: the server stops a statement whose request is gone.
  useEffect(() => () => running.current?.abort(), []);
  const start = (text, options = {}) => act(async () => {
    if (!text.trim()) throw new Error("Write a statement first");
    const id = `run-${(runs += 1)}-${Date.now()}`;
    const caller = running.current = Object.assign(new AbortController(), { id });
    const query = (body) => call(`/d1/${at(name)}/query`, { method: "POST", body: { sql: text, id, ...options, ...body }, signal: caller.signal });
    setState("running");
    try {
      let found = await query();
      if (found.asks.length) {
        if (!(await ask(`Run ${found.asks.length === 1 ? "this statement" : "these statements"}? What is gone is gone.`, found.asks, "Run"))) return;
        found = await query({ confirmed: true });
      }
      keep({ text, results: found.results });
      if (found.results.some((one) => one.changes || !one.columns?.length)) again();
    } catch (error) {
      if (!caller.signal.aborted) throw error;
    } finally { if (running.current === caller) { running.current = null; setState("idle"); } }
  });
  const stop = act(() => call(`/d1/${at(name)}/cancel`, { method: "POST", body: { id: running.current?.id ?? "" } }));
  const busy = state === "running";
  return html`<form class="stack" onSubmit=${start(sql)}>
      <${Editor} value=${sql} change=${setSql} language="sql" schema=${words} label="SQL (Ctrl-Enter runs it)" least="6rem" run=${start(sql)} hint="SELECT … (Ctrl-Enter runs it, Ctrl-Space completes)" />
      <div class="actions"><button class="first" disabled=${busy}>Run</button>${busy && html`<button type="button" class="danger" onClick=${stop}>Stop</button><span class="loading" role="status">Running …</span>`}
        <button type="button" disabled=${busy} onClick=${act(() => { if (!sql.trim()) throw new Error("Write a statement first"); keep({ text: sql, explain: true }); })}>Explain</button></div></form>
    <div class="results" id="sql-result" aria-live="polite">${!shown ? html`<${Empty} title="Nothing has run yet">A table opens with its rows; statements run here, several at a time.<//>`
      : shown.explain ? html`<${Plans} binding=${name} sql=${shown.text} />`
        : shown.results.map((one, index) => html`<${Result} key=${`${shown.text} ${index}`} one=${one} several=${shown.results.length > 1} page=${(offset) => start(shown.text, { offset })()} />`)}</div>`;
}

function Result({ one, several, page }) {
  const sql = several ? html`<code title=${one.sql}>${one.sql}</code>` : null;
  if (one.error) return html`<section class="result">${sql && html`<p>${sql}</p>`}<${Problem} error=${one.error} /></section>`;
  const rows = one.rows.length, from = one.offset + 1;
  const words = one.columns.length ? `${one.offset || one.more ? `Rows ${count(from)} to ${count(one.offset + rows)}` : some(rows, "row")} in ${milliseconds(one.duration)}${one.changes ? `, ${some(one.changes, "row")} changed` : ""}`
    : `Done, ${some(one.changes, "row")} changed in ${milliseconds(one.duration)}`;
  const columns = one.columns.map((name, index) => ({ label: name, width: "minmax(8rem, 1fr)", class: "mono", cell: (row) => html`<span title=${typeof row[index] === "string" ? row[index] : null}><${Cell} value=${row[index]} /></span>` }));
  return html`<section class=${rows < 12 ? "result short" : "result"} style=${{ "--grid-height": `${Math.max(rows, 1) * 32 + 50}px` }}><p>${sql}<span role="status">${words}</span></p>
    ${one.columns.length ? html`<${Grid} label="Result" columns=${columns} source=${local(one.rows)} id=${(row) => one.rows.indexOf(row)} empty="No rows." />` : null}
    ${one.pages && (one.offset || one.more) ? html`<div class="actions"><button type="button" disabled=${!one.offset} onClick=${() => page(Math.max(0, one.offset - 200))}>Previous rows</button>
      <button type="button" disabled=${!one.more} onClick=${() => page(one.offset + 200)}>Next rows</button></div>` : one.more ? html`<p class="none">More rows are not shown: run the statement alone to page through them.</p>` : null}</section>`;
}
