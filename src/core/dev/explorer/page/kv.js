// The panel "Key-value": keys by the hundred thousand, and one value with its metadata and expiry.
import { act, ask, at, bytesOf, call, go, html, moment, say, size, some, until, useLoaded, useUnsaved } from "./core.js";
import { Editor } from "./editor.js";
import { Grid, Search, useListing } from "./grid.js";
import { Empty, Field, Loading, OfBinding, Problem, Split, Value } from "./parts.js";
import { useEffect, useState } from "./vendor.js";

const COLUMNS = [
  { label: "Key", sort: "key", width: "minmax(9rem, 3fr)", class: "mono", cell: (one) => html`<span title=${one.key}>${one.key}</span>` },
  { label: "Size", sort: "size", width: "5.5rem", n: true, roomy: 400, cell: (one) => size(one.size) },
  { label: "Expires", sort: "expiration", width: "7rem", roomy: 330, cell: (one) => (one.expiration ? html`<span title=${moment(one.expiration)}>${until(one.expiration)}</span>` : "never") },
  { label: "Metadata", sort: "metadata", width: "minmax(5rem, 1fr)", class: "mono", roomy: 620, cell: (one) => (one.metadata === null ? "" : JSON.stringify(one.metadata)) },
];

export const KVPanel = ({ parts }) => html`<${OfBinding} kind="kv" title="Key-value" label="Namespaces" table="kv_namespaces" panel="kv" chosen=${parts[0]}
  show=${(name) => html`<${Namespace} key=${name} name=${name} chosen=${parts[1]} />`} />`;

function Namespace({ name, chosen }) {
  const listing = useListing({ path: `/kv/${at(name)}`, draft: `kv ${name} search` }), { search, again, source, marked, setMarked, grid } = listing;
  const remove = act(async () => {
    const all = !marked.size, number = all ? source.total : marked.size;
    const which = all ? (search ? [`every key with “${search}” in it`] : ["every key of this namespace"]) : [...marked].slice(0, 20);
    if (!(await ask(`Delete ${some(number, "key")}?`, which, "Delete"))) return;
    const done = await call(`/kv/${at(name)}/delete`, { method: "POST", body: all ? { search } : { keys: [...marked] } });
    say(`Deleted ${some(done.deleted, "key")}`);
    setMarked(new Set());
    go("kv", name);
    again();
  });
  const list = html`
    <${Search} label="Keys with (press /)" what="key" listing=${listing}>
      <button type="button" onClick=${() => go("kv", name, "", "new")}>New key</button>
      <button type="button" class="danger" disabled=${!source.total || source.searching || source.stopped} onClick=${remove}>${marked.size ? `Delete ${marked.size}` : "Delete all"}</button><//>
    <${Grid} label="Keys" columns=${COLUMNS} ...${grid} id=${(one) => one.key} opened=${chosen} open=${(one) => go("kv", name, one.key)}
      empty=${search ? html`<${Empty} title="No keys here">No key has “${search}” in it.<//>` : html`<${Empty} title="No keys here">What the application puts shows up here.<//>`} />`;
  const fresh = chosen === "";
  return html`<${Split} open=${chosen !== undefined} title=${fresh ? "New key" : chosen} close=${() => go("kv", name)} list=${list}>
    <${Entry} key=${`${name} ${chosen}`} name=${name} id=${chosen} fresh=${fresh} saved=${(key) => { again(); if (fresh) go("kv", name, key); }} gone=${() => { go("kv", name); again(); }} /><//>`;
}

function Entry({ name, id, fresh, saved, gone }) {
  const [found, error, again] = useLoaded(() => (fresh ? Promise.resolve({ text: "", metadata: null, expiration: null, size: 0 }) : call(`/kv/${at(name)}/value?key=${at(id)}`)), [name, id]);
  const [form, setForm] = useState(null);
  // What is being written stays when the value is looked up again.
  useEffect(() => { if (found && !form?.touched) setForm(formOf(found)); }, [found]);
  const first = found && formOf(found);
  const leave = useUnsaved(fresh ? "A new key" : `The key ${id}`, Boolean(form?.touched && Object.keys(first ?? {}).some((part) => form[part] !== first[part])));
  if (error) return html`<${Problem} error=${error} />`;
  if (!found || !form) return html`<${Loading} />`;
  const set = (change) => setForm({ ...form, ...change, touched: true });
  const save = act(async () => {
    const key = fresh ? form.key : id;
    let metadata = null;
    if (form.metadata.trim()) try { metadata = JSON.parse(form.metadata); } catch (problem) { throw new Error(`The metadata is not JSON: ${problem.message}`); }
    await call(`/kv/${at(name)}/value`, { method: "PUT", body: {
      key, value: form.text, base64: found.base64 && form.text === "" ? found.base64 : null, metadata,
      // A put replaces everything that was there: what was not changed is sent again.
      expiration: form.ttl || form.forever ? null : found.expiration, expiration_ttl: form.ttl && !form.forever ? Number(form.ttl) : null,
    } });
    say(`Saved ${key}`);
    leave();
    setForm({ ...form, ttl: "", forever: false, touched: false });
    again();
    saved(key);
  });
  const remove = act(async () => {
    if (!(await ask("Delete this key?", [id], "Delete"))) return;
    await call(`/kv/${at(name)}/delete`, { method: "POST", body: { keys: [id] } });
    say(`Deleted ${id}`);
    leave();
    gone();
  });
  const isJson = /^\s*[[{]/.test(form.text);
  return html`<form class="stack" onSubmit=${save}>
    ${fresh && html`<${Field} label="Key"><input value=${form.key} required autofocus onInput=${(event) => set({ key: event.target.value })} /><//>`}
    ${!fresh && html`<p class="facts"><span>${size(found.size)}</span><span>${found.expiration ? html`expires ${until(found.expiration)}, ${moment(found.expiration)}` : "never expires"}</span></p>`}
    <div><h4>Value ${isJson && html`<small><button type="button" class="link" onClick=${() => set({ text: JSON.stringify(JSON.parse(form.text), null, 2) })}>in lines</button></small>`}</h4>
      ${found.cut ? html`<${Value} value=${found} label="Value" /><p class="none">Too long to be edited here.</p>`
        : found.base64 ? html`<${Value} value=${found} label="Value" /><${Replace} name=${name} id=${id} found=${found} saved=${() => { again(); saved(id); }} />`
          : html`<${Editor} value=${form.text} change=${(text) => set({ text })} language=${isJson ? "json" : "text"} label="Value" least="7rem" run=${save} />`}</div>
    <div><h4>Metadata <small>JSON, or nothing</small></h4><${Editor} value=${form.metadata} change=${(metadata) => set({ metadata })} language="json" label="Metadata" run=${save} /></div>
    <div class="bar"><${Field} label=${found.expiration ? "Expires in (seconds; empty: as it is)" : "Expires in (seconds; empty: never)"}><input type="number" min="60" value=${form.ttl} disabled=${form.forever} onInput=${(event) => set({ ttl: event.target.value })} /><//>
      ${found.expiration && html`<label class="field check"><span>Never expire</span><input type="checkbox" checked=${form.forever} onChange=${(event) => set({ forever: event.target.checked })} /></label>`}</div>
    <div class="actions"><button class="first" disabled=${found.cut}>Save</button>${!fresh && html`<button type="button" class="danger" onClick=${remove}>Delete</button>`}</div></form>`;
}

const formOf = (found) => ({ key: "", text: found.text ?? "", metadata: found.metadata === null ? "" : JSON.stringify(found.metadata, null, 2), ttl: "", forever: false });

// A value of bytes is replaced by a file, or kept as a file.
function Replace({ name, id, found, saved }) {
  const put = act(async (event) => {
    const bytes = new Uint8Array(await event.target.files[0].arrayBuffer());
    let text = "";
    for (let start = 0; start < bytes.length; start += 32768) text += String.fromCharCode(...bytes.subarray(start, start + 32768));
    await call(`/kv/${at(name)}/value`, { method: "PUT", body: { key: id, base64: btoa(text), metadata: found.metadata, expiration: found.expiration } });
    say(`Saved ${id}`);
    saved();
  });
  const url = () => URL.createObjectURL(new Blob([bytesOf(found.base64)]));
  return html`<div class="bar"><${Field} label="Replace by a file"><input type="file" onChange=${put} /><//>
    <button type="button" onClick=${(event) => { event.preventDefault(); const anchor = Object.assign(document.createElement("a"), { href: url(), download: id.split("/").pop() }); anchor.click(); URL.revokeObjectURL(anchor.href); }}>Download</button></div>`;
}
