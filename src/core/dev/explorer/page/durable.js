// The panel "Durable Objects": those of a class, by name, and what one of them holds.
import { act, ask, at, call, go, html, link, mayLeave, milliseconds, moment, query, say, size, some, store, until, useDraft, useLoaded, useUnsaved } from "./core.js";
import { Editor } from "./editor.js";
import { Grid, local, Total, useListing, useRemote } from "./grid.js";
import { Cell, Empty, Field, Head, Loading, Problem, Split, Tabs } from "./parts.js";
import { useReducer, useState } from "./vendor.js";

const OBJECTS = [
  { label: "Name", width: "minmax(6rem, 1fr)", cell: (one) => one.name ?? html`<span class="null">unknown</span>` },
  { label: "Id", width: "minmax(9rem, 2fr)", class: "mono", cell: (one) => html`<span title=${one.id}>${one.id}</span>` },
];
const ENTRIES = [
  { label: "Key", sort: "key", width: "minmax(6rem, 1fr)", class: "mono", cell: (one) => one.key },
  { label: "Value", width: "minmax(8rem, 2fr)", class: "mono", cell: (one) => one.text.slice(0, 300) },
];

export function DurablePanel({ parts }) {
  const [namespaces, error] = useLoaded(() => call("/objects"), []);
  if (error) return html`<${Head} title="Durable Objects" /><${Problem} error=${error} />`;
  if (!namespaces) return html`<${Head} title="Durable Objects" /><${Loading} />`;
  if (!namespaces.length) return html`<${Head} title="Durable Objects" /><${Empty} title="No Durable Objects">Write one into the configuration, under durable_objects.<//>`;
  const one = namespaces.find((other) => other.name === parts[0]) || namespaces[0];
  return html`<${Head} title="Durable Objects" note=${`class ${one.className}`}>
    ${namespaces.length > 1 && html`<nav class="choice" aria-label="Classes">${namespaces.map((other) => html`<a href=${link("durable-objects", other.name)} aria-current=${other === one ? "true" : null}>${other.name}</a>`)}</nav>`}<//>
    <${Namespace} key=${one.name} name=${one.name} id=${parts[1]} part=${parts[2]} />`;
}

function Namespace({ name, id, part }) {
  const { search, setSearch, again, source } = useListing({ path: `/objects/${at(name)}`, draft: `objects ${name} search`, by: "" });
  const open = act(async () => { if (search) go("durable-objects", name, (await call(`/objects/${at(name)}/named?name=${at(search)}`)).id); });
  const list = html`
    <form class="bar" role="search" onSubmit=${open}>
      <${Field} label="Name or id (press /; Enter opens a name)" wide><input type="search" value=${search} onInput=${(event) => setSearch(event.target.value)} /><//>
      <button>Open by name</button><button type="button" onClick=${again}>Look again</button><${Total} source=${source} what="object" /></form>
    <${Grid} label="Objects of the class" columns=${OBJECTS} source=${source} id=${(one) => one.id} opened=${id} open=${(one) => go("durable-objects", name, one.id)}
      empty=${search ? html`<${Empty} title="None is listed by that">Enter looks for an object of exactly this name.<//>` : html`<${Empty} title="No object has stored anything yet">An object shows up with the first thing it stores.<//>`} />`;
  return html`<${Split} open=${id} title=${id ? `Object ${id.slice(0, 16)}…` : ""} close=${() => go("durable-objects", name)} list=${list}>
    <${One} key=${id} name=${name} id=${id} part=${part || "storage"} /><//>`;
}

function One({ name, id, part }) {
  const path = `/objects/${at(name)}/${at(id)}`;
  const [found, error, again] = useLoaded(() => call(path), [name, id]);
  if (error) return html`<${Problem} error=${error} />`;
  if (!found) return html`<${Loading} />`;
  const tabs = [["storage", "Storage"], ["sql", "SQL", found.tables.length || null], ["alarm", "Alarm", found.alarm ? 1 : null], ["sockets", "Sockets", found.sockets.length || null]];
  return html`<p class="facts"><span>${found.name ? html`<strong>${found.name}</strong>` : "name unknown"}</span><span>${found.className}</span><span>${size(found.size)} on disk</span></p><p class="none"><code>${found.id}</code></p>
    <${Tabs} label="Parts of the object" tabs=${tabs} chosen=${part} choose=${(one) => go("durable-objects", name, id, one)} />
    <div role="tabpanel" aria-labelledby=${`tab-${part}`} class="tab-body">${part === "sql" ? html`<${Sql} path=${path} id=${id} found=${found} again=${again} />`
      : part === "alarm" ? html`<${Alarm} path=${path} found=${found} again=${again} />`
        : part === "sockets" ? html`<${Sockets} found=${found} />` : html`<${Storage} path=${path} id=${id} />`}</div>`;
}

function Storage({ path, id }) {
  const [search, setSearch] = useState(""), [sort, setSort] = useState({ by: "key", down: false });
  const [marked, setMarked] = useState(new Set()), [chosen, choose] = useState(null);
  const [turn, again] = useReducer((count) => count + 1, 0);
  const source = useRemote((offset, limit, signal) => call(`${path}/entries?${query({ offset, limit, search, descending: sort.down || null, sort: sort.by })}`, { signal }), `${id} ${search} ${sort.down}`, `${turn} ${store.loads}`);
  const marks = { chosen: marked, set: setMarked };
  const leave = useUnsaved(chosen?.fresh ? "A new key" : `The key ${chosen?.key}`, Boolean(chosen?.touched));
  const write = (change) => choose({ ...chosen, ...change, touched: true });
  const turnTo = async (one) => { if (await mayLeave()) { leave(); choose(one); } };
  const save = act(async () => {
    await call(`${path}/entry`, { method: "PUT", body: { key: chosen.key, json: chosen.json } });
    say(`Saved ${chosen.key}`);
    choose({ ...chosen, fresh: false, touched: false });
    again();
  });
  const remove = act(async () => {
    if (!(await ask(`Delete ${some(marked.size, "key")}?`, [...marked].slice(0, 20), "Delete"))) return;
    await call(`${path}/delete`, { method: "POST", body: { keys: [...marked] } });
    say(`Deleted ${some(marked.size, "key")}`);
    setMarked(new Set());
    choose(null);
    again();
  });
  return html`<div class="bar"><${Field} label="Keys with" wide><input type="search" value=${search} onInput=${(event) => setSearch(event.target.value)} /><//>
      <button type="button" onClick=${() => turnTo({ key: "", json: "", fresh: true })}>New key</button>
      <button type="button" class="danger" disabled=${!marked.size} onClick=${remove}>Delete${marked.size ? ` ${marked.size}` : ""}</button></div>
    <div class="timeline" style=${{ "--grid-height": "16rem", marginTop: ".5rem" }}><${Grid} label="Stored values" columns=${ENTRIES} source=${source} id=${(one) => one.key} opened=${chosen?.key} sort=${sort} onSort=${setSort} marks=${marks} open=${turnTo}
      empty=${html`<${Empty} title="No stored values">What the object puts into its storage stands here.<//>`} /></div>
    ${chosen && html`<form class="stack" onSubmit=${save}><h4>${chosen.fresh ? "New key" : chosen.key}</h4>
      ${chosen.fresh && html`<${Field} label="Key"><input required value=${chosen.key} onInput=${(event) => write({ key: event.target.value })} /><//>`}
      ${chosen.json === null ? html`<pre tabindex="0">${chosen.text}</pre><p class="none">This value is not JSON, so it cannot be edited here.</p>`
        : html`<${Editor} value=${chosen.json} change=${(json) => write({ json })} language="json" label="Value" least="4rem" run=${save} />
          <p class="none">An instance that keeps a copy in memory goes on with its copy.</p><div class="actions"><button class="first">Save</button></div>`}</form>`}`;
}

// The statement for the rows of a table.
const all = (table) => `SELECT * FROM "${table.name.replaceAll('"', '""')}" LIMIT 50`;

function Sql({ path, id, found, again }) {
  const [sql, setSql] = useDraft(`object sql ${id}`, found.tables.length ? all(found.tables[0]) : "");
  const [result, setResult] = useState(null);
  const run = act(async () => { setResult(await call(`${path}/query`, { method: "POST", body: { sql } })); again(); });
  const columns = result?.columns.map((name, index) => ({ label: name, width: "minmax(7rem, 1fr)", class: "mono", cell: (row) => html`<${Cell} value=${row[index]} />` }));
  return html`${found.tables.length ? html`<ul class="tables">${found.tables.map((one) => html`<li><button type="button" class="link" onClick=${() => setSql(all(one))}>${one.name}</button> <span class="n">${some(one.rows, "row")}</span></li>`)}</ul>` : html`<p class="none">The object has no tables.</p>`}
    <form class="stack" onSubmit=${run}><${Editor} value=${sql} change=${setSql} language="sql" label="SQL of the object (Ctrl-Enter runs it)" least="4rem" run=${run} schema=${Object.fromEntries(found.tables.map((one) => [one.name, one.columns.map((column) => column.name)]))} />
      <div class="actions"><button class="first">Run</button>${result && html`<span class="none" role="status">${some(result.rows.length, "row")}${result.more ? " and more" : ""}, ${some(result.changes, "change")}, ${milliseconds(result.duration)}</span>`}</div></form>
    ${result?.columns.length ? html`<div class="timeline" style=${{ "--grid-height": "15rem", marginTop: ".6rem" }}><${Grid} label="Result" columns=${columns} source=${local(result.rows)} id=${(row) => result.rows.indexOf(row)} empty="No rows." /></div>` : null}`;
}

function Alarm({ path, found, again }) {
  const [when, setWhen] = useState("");
  const set = (time, said) => act(async () => { await call(`${path}/alarm`, { method: "PUT", body: { time } }); say(said); again(); });
  const fire = act(async () => { await call(`${path}/alarm/fire`, { method: "POST" }); say("The alarm ran"); again(); });
  if (!found.handlesAlarms) return html`<${Empty} title="No alarms">The class ${found.className} has no method alarm().<//>`;
  return html`<p>${found.alarm ? html`Goes off ${until(found.alarm / 1000)}, ${moment(found.alarm / 1000)}.` : "No alarm is set."}</p>
    <div class="bar"><${Field} label="At"><input type="datetime-local" step="1" value=${when} onInput=${(event) => setWhen(event.target.value)} /><//>
      <button type="button" disabled=${!when} onClick=${set(new Date(when).getTime(), "The alarm is set")}>Set</button>
      <button type="button" disabled=${!found.alarm} onClick=${fire}>Run now</button>
      <button type="button" class="danger" disabled=${!found.alarm} onClick=${set(null, "The alarm is taken back")}>Take back</button></div>`;
}

function Sockets({ found }) {
  if (!found.sockets.length) return html`<${Empty} title="No sockets">WebSockets that the object accepts stand here while they are open.<//>`;
  return html`<p>${some(found.sockets.length, "socket")} open</p><ul>${found.sockets.slice(0, 200).map((one) => html`<li>${one.tags.length ? one.tags.map((tag) => html`<code>${tag}</code> `) : html`<span class="null">no tags</span>`}</li>`)}</ul>`;
}
