// The panel "Objects": what is in a bucket, with previews and metadata, up and down.
import { act, ask, at, call, go, html, moment, query, say, send, size, some, useLoaded, useUnsaved } from "./core.js";
import { Grid, Search, useListing } from "./grid.js";
import { Empty, Field, Loading, OfBinding, Problem, Split, Value } from "./parts.js";
import { useEffect, useRef, useState } from "./vendor.js";

const COLUMNS = [
  { label: "Key", sort: "key", width: "minmax(9rem, 3fr)", class: "mono", cell: (one) => html`<span title=${one.key}>${one.key}</span>` },
  { label: "Size", sort: "size", width: "6rem", n: true, cell: (one) => size(one.size) },
  { label: "Type", sort: "type", width: "minmax(6rem, 1fr)", roomy: 520, cell: (one) => one.type || "" },
  { label: "Uploaded", sort: "uploaded", width: "11rem", roomy: 700, cell: (one) => moment(one.uploaded / 1000) },
];
const HEADERS = [["content_type", "Content-Type"], ["content_language", "Content-Language"], ["content_disposition", "Content-Disposition"], ["content_encoding", "Content-Encoding"], ["cache_control", "Cache-Control"]];

export const ObjectsPanel = ({ parts }) => html`<${OfBinding} kind="r2" title="Objects" label="Buckets" table="r2_buckets" panel="objects" chosen=${parts[0]}
  show=${(name) => html`<${Bucket} key=${name} name=${name} chosen=${parts[1]} />`} />`;

function Bucket({ name, chosen }) {
  const listing = useListing({ path: `/r2/${at(name)}`, draft: `r2 ${name} search` }), { search, again, marked, setMarked, grid } = listing;
  const remove = act(async () => {
    if (!(await ask(`Delete ${some(marked.size, "object")}?`, [...marked].slice(0, 20), "Delete"))) return;
    await call(`/r2/${at(name)}/delete`, { method: "POST", body: { keys: [...marked] } });
    say(`Deleted ${some(marked.size, "object")}`);
    setMarked(new Set());
    go("objects", name);
    again();
  });
  const list = html`
    <${Search} label="Keys with (press /)" what="object" listing=${listing}>
      <button type="button" onClick=${() => go("objects", name, "")}>Upload</button>
      <button type="button" class="danger" disabled=${!marked.size} onClick=${remove}>Delete${marked.size ? ` ${marked.size}` : ""}</button><//>
    <${Grid} label="Objects" columns=${COLUMNS} ...${grid} id=${(one) => one.key} opened=${chosen} open=${(one) => go("objects", name, one.key)}
      empty=${search ? html`<${Empty} title="No objects here">No key has “${search}” in it.<//>` : html`<${Empty} title="No objects here">Upload a file, or let the application put one.<//>`} />`;
  const fresh = chosen === "";
  return html`<${Split} open=${chosen !== undefined} title=${fresh ? "Upload" : chosen} close=${() => go("objects", name)} list=${list}>
    ${fresh ? html`<${Upload} name=${name} saved=${(key) => { again(); go("objects", name, key); }} />`
      : html`<${One} key=${chosen} name=${name} id=${chosen} again=${again} />`}<//>`;
}

function Upload({ name, saved }) {
  const [key, setKey] = useState(""), [busy, setBusy] = useState(false), file = useRef(null);
  const leave = useUnsaved("An upload", Boolean(key));
  const put = act(async () => {
    const chosen = file.current.files[0];
    setBusy(true);
    try { await send(`/r2/${at(name)}/object?${query({ key, contentType: chosen.type || "application/octet-stream" })}`, { method: "PUT", raw: chosen }); } finally { setBusy(false); }
    say(`Stored ${key}`);
    leave();
    saved(key);
  });
  return html`<form class="stack" onSubmit=${put}>
    <${Field} label="File"><input type="file" required ref=${file} onChange=${(event) => { if (!key && event.target.files[0]) setKey(event.target.files[0].name); }} /><//>
    <${Field} label="Key"><input required value=${key} onInput=${(event) => setKey(event.target.value)} /><//>
    <div class="actions"><button class="first" disabled=${busy}>${busy ? "Uploading …" : "Upload"}</button></div></form>`;
}

function One({ name, id, again }) {
  const [found, error, reload] = useLoaded(() => call(`/r2/${at(name)}/object?key=${at(id)}`), [name, id]);
  const [form, setForm] = useState(null);
  useEffect(() => { if (found && !form?.touched) setForm({ http: found.httpMetadata, custom: Object.entries(found.customMetadata) }); }, [found]);
  const leave = useUnsaved(`The metadata of ${id}`, Boolean(form?.touched));
  if (error) return html`<${Problem} error=${error} />`;
  if (!found || !form) return html`<${Loading} />`;
  const set = (change) => setForm({ ...form, ...change, touched: true });
  const download = act(async () => {
    const blob = await (await send(`/r2/${at(name)}/object?download=1&key=${at(id)}`)).blob();
    const anchor = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: id.split("/").pop() });
    anchor.click();
    URL.revokeObjectURL(anchor.href);
  });
  const remove = act(async () => {
    if (!(await ask("Delete this object?", [id], "Delete"))) return;
    await call(`/r2/${at(name)}/delete`, { method: "POST", body: { keys: [id] } });
    say(`Deleted ${id}`);
    leave();
    go("objects", name);
    again();
  });
  const save = act(async () => {
    const custom = Object.fromEntries(form.custom.filter(([key]) => key));
    await call(`/r2/${at(name)}/metadata`, { method: "PUT", body: { key: id, http_metadata: form.http, custom_metadata: custom } });
    say(`Saved the metadata of ${id}`);
    setForm({ ...form, touched: false });
    reload();
    again();
  });
  const pair = (index, place, text) => set({ custom: form.custom.map((one, at) => (at === index ? one.with(place, text) : one)) });
  return html`
    <p class="facts"><span>${size(found.size)}</span><span>${new Date(found.uploaded).toLocaleString()}</span><span>etag <code>${found.etag}</code></span></p>
    <div class="actions"><button type="button" onClick=${download}>Download</button><button type="button" class="danger" onClick=${remove}>Delete</button></div>
    <h4>Preview</h4><${Value} value=${found} type=${found.httpMetadata.content_type || ""} label="Preview" />
    <form class="stack" onSubmit=${save}><h4>Metadata</h4>
      ${HEADERS.map(([key, label]) => html`<${Field} label=${label}><input value=${form.http[key] || ""} onInput=${(event) => set({ http: { ...form.http, [key]: event.target.value } })} /><//>`)}
      <h4>Custom metadata</h4>
      <div class="pairs">${form.custom.map(([key, value], index) => html`<div>
        <input aria-label=${`Name ${index + 1}`} value=${key} onInput=${(event) => pair(index, 0, event.target.value)} />
        <input aria-label=${`Value ${index + 1}`} value=${value} onInput=${(event) => pair(index, 1, event.target.value)} />
        <button type="button" aria-label=${`Remove ${key}`} onClick=${() => set({ custom: form.custom.toSpliced(index, 1) })}>×</button></div>`)}</div>
      <div class="actions"><button type="button" onClick=${() => set({ custom: [...form.custom, ["", ""]] })}>Add a name</button><button class="first">Save metadata</button></div></form>`;
}
