// One request, whole: what took how long, what was sent and answered, its statements with their plans, its logs.
import { act, ask, call, clock, copy, count, go, html, link, milliseconds, say, size, some, useLoaded } from "./core.js";
import { recordedAsCurl } from "./curl.js";
import { Editor } from "./editor.js";
import { Grid, local } from "./grid.js";
import { Empty, Failure, Loading, Problem, Tabs, Value } from "./parts.js";
import { statusOf, toneOf } from "./requests.js";
import { useMemo, useState } from "./vendor.js";

export function Exchange({ id, part = "timeline", duration, calls }) {
  const [found, error] = useLoaded(() => call(`/exchanges/${encodeURIComponent(id)}`), [id, duration, calls]);
  if (error) return html`<${Problem} error=${error} />`;
  if (!found || found.key !== id) return html`<${Loading} />`;
  const status = statusOf(found), isRequest = found.kind === "request";
  const tabs = [["timeline", "Timeline", found.calls.length || null], ["request", "Request"], ["response", "Response"], ["logs", "Logs", found.logs.length || null]]
    .filter(([name]) => isRequest || name === "timeline" || name === "logs");
  const replay = act(async () => go("requests", (await call(`/exchanges/${found.key}/replay`, { method: "POST" })).key));
  const write = act(async () => say((await call(`/exchanges/${found.key}/record`, { method: "POST" })).told));
  return html`
    <p class="facts"><span class=${toneOf(status)}>${status}</span><span>${milliseconds(found.duration)}</span><span>${clock(found.time)}</span>
      ${found.rowsRead != null && html`<span>${readRows(found.rowsRead, found.rowsExact)}</span>`}
      ${found.route && html`<span>route <code>${found.route}</code></span>`}${found.streams && html`<span>streams</span>`}</p>
    ${isRequest && found.method !== "WS" && html`<div class="actions">
      <button type="button" class="first" disabled=${found.request.cut} onClick=${replay}>Send again</button>
      <button type="button" onClick=${act(() => copy(recordedAsCurl(found), "as cURL"))}>Copy as cURL</button>
      <button type="button" disabled=${found.request.cut} onClick=${write}>Write a test</button></div>`}
    ${found.failure && html`<${Failure} one=${found.failure} />`}
    ${found.repeated && html`<div class="hint"><strong>N+1</strong>: <code>${found.repeated.what.slice(0, 300)}</code> was called ${count(found.repeated.times)} times.
      One statement with a JOIN or IN (…), a batch, or one call with several keys does the same in one turn.</div>`}
    <${Tabs} label="Parts of the request" tabs=${tabs} chosen=${part} choose=${(name) => go("requests", id, name)} />
    <div role="tabpanel" aria-labelledby=${`tab-${part}`} class="tab-body">
      ${part === "timeline" ? html`<${Timeline} key=${found.key} found=${found} />`
        : part === "logs" ? html`<${Logs} logs=${found.logs} />`
          : html`<${Side} side=${part === "response" ? found.response : found.request} name=${part} />`}</div>`;
}

function Side({ side, name }) {
  const type = side.headers.find(([one]) => one.toLowerCase() === "content-type")?.[1] || "";
  return html`<h4>Body <small>${type} ${side.size ? size(side.size) : ""}</small></h4>
    <${Value} value=${side} type=${type} label=${`Body of the ${name}`} />
    <h4>Headers</h4>
    ${side.headers.length ? html`<dl class="headers">${side.headers.map(([one, value]) => html`<div><dt>${one}</dt><dd>${value}</dd></div>`)}</dl>` : html`<p class="none">None</p>`}`;
}

function Logs({ logs }) {
  if (!logs.length) return html`<${Empty} title="No logs">What is logged with Python's <code>logging</code> while this ran stands here.<//>`;
  return html`<ol class="logs">${logs.map((one) => html`<li><span class="n">${milliseconds(one.at)}</span>
    <span class=${one.level === "error" || one.level === "critical" ? "bad" : one.level === "warning" ? "warn" : "level"}>${one.level}</span><pre>${one.text}</pre></li>`)}</ol>`;
}

// Calls that are equal but for their values, and so many that they are one line.
const lineOf = (found, one) => {
  const name = `${one.binding}.${one.method} ${one.statements.length === 1 ? one.statements[0] : ""}`.trim();
  return name in found.equal ? name : null;
};
const endOf = (one, now) => one.started + (one.duration ?? Math.max(now - one.started, 0));

// Middleware and calls in the order in which they began, equal calls in one line, or all of them where `unfolded` has it.
function linesOf(found, unfolded) {
  const rows = found.steps.map((one, index) => ({ ...one, id: `s${index}`, step: true })), lines = new Map(), now = found.duration ?? 0;
  for (const [index, one] of found.calls.entries()) {
    const call = { ...one, id: `c${index}` }, name = lineOf(found, one);
    if (name === null) rows.push(call);
    else if (lines.has(name)) lines.get(name).calls.push(call);
    else lines.set(name, { ...call, id: `e${index}`, name, calls: [call], times: found.equal[name] });
  }
  for (const line of lines.values()) {
    line.duration = Math.max(...line.calls.map((one) => endOf(one, now))) - line.started;
    line.error = line.calls.find((one) => one.error)?.error ?? null;
    line.took = line.calls.reduce((sum, one) => sum + (one.duration ?? 0), 0);
    rows.push(line);
  }
  rows.sort((one, other) => one.started - other.started || (one.step ? 0 : 1) - (other.step ? 0 : 1));
  return rows.flatMap((one) => (unfolded.has(one.name) && one.calls ? [one, ...one.calls.map((call) => ({ ...call, inside: true }))] : [one]));
}

// Middleware and calls on one axis of time.
function Timeline({ found }) {
  const [chosen, choose] = useState(null), [unfolded, unfold] = useState(new Set());
  const rows = useMemo(() => linesOf(found, unfolded), [found, unfolded]);
  const total = Math.max(found.duration || 0, ...rows.map((one) => one.started + (one.duration || 0)), 0.01);
  const columns = [
    { label: "What", width: "minmax(8rem, 3fr)", class: "call", cell: (one) => (one.step
      ? html`<span class="step" style=${{ paddingLeft: `${Math.min(one.depth, 8) * 0.6}rem` }} title=${one.name}>${one.name}</span>`
      : html`<span title=${one.detail} class=${one.inside ? "inside" : ""}>${one.calls && html`<span class="badge" title="The same call again and again">N+1</span> <strong class="times">${count(one.times)} ×</strong> `}<strong>${one.binding}.${one.method}</strong> ${one.calls ? one.statements[0] ?? "" : one.detail}</span>`) },
    { label: "When", width: "minmax(5rem, 2fr)", class: "when", cell: (one) => html`<span class=${`span ${one.step ? "of-step" : ""} ${one.background ? "of-background" : ""} ${one.error ? "of-failed" : ""}`}
      style=${{ left: `${(one.started / total) * 100}%`, width: `max(2px, ${((one.duration ?? total - one.started) / total) * 100}%)` }}></span>` },
    { label: "Took", width: "5rem", n: true, cell: (one) => milliseconds(one.calls ? one.took : one.duration) },
  ];
  const open = rows.find((one) => one.id === chosen);
  const turn = (name) => unfold((before) => { const after = new Set(before); if (!after.delete(name)) after.add(name); return after; });
  return html`
    <div style=${{ "--grid-height": `${Math.min(rows.length + 1, 14) * 28 + 8}px` }} class="timeline">
    <${Grid} label="Middleware and calls" columns=${columns} source=${local(rows)} id=${(one) => one.id} height=${28} opened=${chosen}
      open=${(one) => choose(one.id === chosen ? null : one.id)} empty=${html`<${Empty} title="No calls">No binding was called, and no middleware ran.<//>`} /></div>
    ${found.leftOut ? html`<p class="none">${some(found.leftOut, "more call")} not kept.</p>` : null}
    ${open && (open.step ? html`<div class="beneath"><h4>${open.name}</h4><p>Began after ${milliseconds(open.started)}; everything inside of it took ${milliseconds(open.duration)}.</p></div>`
      : html`<${Call} one=${open} unfolded=${unfolded.has(open.name)} turn=${() => turn(open.name)} />`)}
    ${rows.length && !open ? html`<p class="none">Open a call to see its statement and plan.</p>` : null}`;
}

// What is said of calls in one line.
function Equal({ line, unfolded, turn }) {
  const differ = new Set(line.calls.map((one) => one.detail)).size, failed = line.calls.filter((one) => one.error).length;
  return html`<p class="facts"><span>${some(line.times, "call")} took ${milliseconds(line.took)} in all</span><span>${differ === 1 ? "the same values each time" : `${count(differ)} different values`}</span>
    ${failed ? html`<span class="bad">${count(failed)} failed</span>` : null}
    <button type="button" class="link" aria-expanded=${unfolded ? "true" : "false"} onClick=${turn}>${unfolded ? "In one line" : "Each call"}</button></p>`;
}

function Call({ one, unfolded, turn }) {
  const open = act(async () => {
    const draft = `core-draft sql ${one.binding}`, text = one.statements.join(";\n"), written = sessionStorage.getItem(draft);
    if (written && written.trim() !== text && !(await ask("Replace the statements that are written there?", [written], "Replace"))) return;
    sessionStorage.setItem(draft, text);
    go("sql", one.binding);
  });
  return html`<div class="beneath"><h4>${one.binding}.${one.method} <small>${milliseconds(one.started)} after the beginning, took ${milliseconds(one.duration)}${one.background ? ", in the background" : ""}</small></h4>
    ${one.calls && html`<${Equal} line=${one} unfolded=${unfolded} turn=${turn} />`}
    ${one.error && html`<${Problem} error=${one.error} />`}
    ${one.kind === "d1" && one.statements.length ? html`
      <${Editor} value=${one.statements.join(";\n")} language="sql" label="Statement" readOnly />
      ${!one.calls && one.detail.includes("  ← ") && html`<p>Values: <code>${one.detail.split("  ← ").pop()}</code></p>`}
      <p class="facts">${!one.calls && one.rows_read !== null && html`<span>${readRows(one.rows_read, one.rows_exact)}</span>`}${!one.calls && one.rows_returned != null && html`<span>${some(one.rows_returned, "row")} returned</span>`}${!one.calls && one.rows_written ? html`<span>${some(one.rows_written, "row")} written</span>` : null}
        <a href=${link("sql", one.binding)} onClick=${open}>Open in SQL</a></p>
      <${Plans} binding=${one.binding} sql=${one.statements.join(";\n")} />`
      : html`<pre tabindex="0">${one.detail || "Without arguments"}</pre>`}</div>`;
}

// The rows that a database bills; a statement that could not be counted stands with those that it returned.
function readRows(rows, exact) {
  return `${exact ? "" : "about "}${some(rows, "row")} read`;
}

// The plan of statements, and how much each step reads.
export function Plans({ binding, sql }) {
  const [found, error] = useLoaded(() => call(`/d1/${encodeURIComponent(binding)}/explain`, { method: "POST", body: { sql } }), [binding, sql]);
  if (error) return html`<${Problem} error=${error} />`;
  if (!found) return html`<${Loading} />`;
  return html`<h4>Plan</h4>${found.plans.map((plan) => html`
    ${plan.error ? html`<p class="none">No plan: ${plan.error}</p>` : plan.steps.length ? html`<ul class="plan">${plan.steps.map((step) => html`
      <li style=${{ marginLeft: `${step.depth * 1.2}rem` }}><code>${step.text}</code>${step.scans !== null && html` <span class=${step.scans > 1000 ? "bad" : "warn"}>reads all ${some(step.scans, "row")}</span>`}</li>`)}</ul>`
      : html`<p class="none">Nothing is looked up.</p>`}`)}`;
}
