// The panel "API": every operation of the OpenAPI document, a form to send a request, the answer beside what is declared.
import { Answer, Declared, apiAnswers, sendRequest } from "./api_answer.js";
import { api, operations } from "./api_document.js";
import { asPython, useRequest } from "./api_form.js";
import { act, call, changed, html, link, say, store, useDraft } from "./core.js";
import { asCurl } from "./curl.js";
import { Field, Head, reveal } from "./parts.js";
import { useEffect, useRef, useState } from "./vendor.js";

async function load() {
  api.committed = (await call("/openapi")).document;
  if (api.document === null) api.document = api.committed;
  api.fresh = false;
  changed();
  const gathered = await call("/openapi/fresh");
  Object.assign(api, { fresh: true, problem: gathered.problem, findings: gathered.findings });
  if (gathered.document !== null) api.document = gathered.document;
  api.differs = api.committed !== null && JSON.stringify(api.committed) !== JSON.stringify(api.document);
  changed();
}

export function ApiPanel({ parts }) {
  const [filter, setFilter] = useDraft("api"), list = useRef(null), detail = useRef(null);
  const chosen = parts[0] || "", came = useRef(chosen);
  useEffect(() => { load().catch((error) => say(error.message, true)); }, [store.loads]);
  useEffect(() => {
    if (chosen === came.current) return;
    came.current = chosen;
    if (!chosen) return;
    list.current.querySelector('[aria-current="true"]')?.scrollIntoView({ block: "nearest" });
    reveal(detail.current);
    detail.current.querySelector("h3")?.focus({ preventScroll: true });
  }, [chosen]);
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean), every = operations();
  const kept = every.filter((one) => {
    const text = `${one.method} ${one.path} ${one.id} ${one.operation.summary || ""} ${(one.operation.tags || []).join(" ")}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const found = every.find((one) => one.id === chosen);
  return html`<${Head} title="API" /><${State} /><div class="two api">
    <div><form role="search" class="bar" onSubmit=${(event) => event.preventDefault()}>
        <${Field} label="Filter (press /)" wide><input type="search" value=${filter} onInput=${(event) => setFilter(event.target.value)} /><//></form>
      <div id="api-list" ref=${list} onKeyDown=${moveAmong}>${kept.length ? html`<${List} kept=${kept} chosen=${chosen} />`
        : every.length ? html`<p class="none">No route is like that.</p>` : api.fresh ? html`<p class="none">No routes yet.</p>` : null}</div></div>
    <div id="api-detail" class="detail" ref=${detail}>${found ? html`<${Operation} key=${chosen} one=${found} />`
      : api.document === null ? null
        : chosen ? html`<p class="problem">There is no operation ${chosen} in the document.</p>`
          : html`<p class="none">Choose a route to see what it takes and answers, and to send a request.</p>`}</div></div>`;
}

// Where the document comes from, and what is not known.
function State() {
  const written = html`<code>core openapi -o openapi.json</code>`;
  return html`
    ${!api.fresh ? html`<p class="none">${api.document === null ? "Reading the code … the first time takes some seconds." : "From openapi.json; reading the code …"}</p>`
      : api.problem ? html`<div class="problem" role="alert">
          <p>${api.document === null ? "The code could not be described:" : "The code could not be described; this is what was known before:"}</p><pre tabindex="0">${api.problem}</pre></div>`
        : api.committed === null ? html`<p class="none">As the code says now. Keep it: ${written}</p>`
          : api.differs ? html`<p class="warn">As the code says now; openapi.json is not up to date: ${written}</p>`
            : html`<p class="none">As the code says now, and as openapi.json has it.</p>`}
    ${api.findings.length > 0 && html`<details><summary class="warn">${api.findings.length === 1 ? "One thing is not known" : `${api.findings.length} things are not known`}</summary>
      <ul>${api.findings.map((text) => html`<li>${text}</li>`)}</ul></details>`}`;
}

function List({ kept, chosen }) {
  const groups = new Map();
  for (const one of kept) {
    const tag = one.operation.tags?.[0] || "";
    if (!groups.has(tag)) groups.set(tag, []);
    groups.get(tag).push(one);
  }
  return [...groups].map(([tag, ones]) => html`<section key=${tag} aria-label=${tag || "Routes"}>
    ${(tag || groups.size > 1) && html`<h3>${tag || "Routes"}</h3>`}
    <ul class="operations">${ones.map((one) => html`<li key=${one.id}><a href=${link("api", one.id)} aria-current=${one.id === chosen ? "true" : null} title=${one.operation.summary}>
      <span class=${`verb ${one.method.toLowerCase()}`}>${one.method === "WebSocket" ? "WS" : one.method}</span> <code>${one.path}</code></a></li>`)}</ul></section>`);
}

function moveAmong(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const links = [...event.currentTarget.querySelectorAll("a")], at = links.indexOf(document.activeElement);
  if (!step || at < 0) return;
  event.preventDefault();
  links[Math.min(Math.max(at + step, 0), links.length - 1)].focus();
}

function Operation({ one: { method, path, operation, id } }) {
  return html`<h3 tabindex="-1"><span class=${`verb ${method.toLowerCase()}`}>${method}</span> <code>${path}</code></h3>
    ${operation.summary && html`<p>${operation.summary}</p>`}
    ${(operation.description || "").split("\n\n").filter(Boolean).map((text) => html`<p>${text}</p>`)}
    ${method === "WebSocket" ? html`<p class="none">A WebSocket. Open it from a page of this address:</p>
      <pre tabindex="0">new WebSocket("${location.origin.replace("http", "ws")}${path}")</pre>` : html`<${Sending} ...${{ method, path, operation, id }} />`}`;
}

function Sending({ method, path, operation, id }) {
  const [fields, request] = useRequest(method, path, operation, id), [busy, setBusy] = useState(false);
  const answer = apiAnswers.get(id), seen = useRef(answer), place = useRef(null);
  useEffect(() => {
    if (answer !== seen.current) reveal(place.current);
    seen.current = answer;
  }, [answer]);
  const submit = act(async () => {
    setBusy(true);
    try { await sendRequest(request, id); } finally { setBusy(false); }
  });
  const keys = (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter") { event.preventDefault(); event.currentTarget.requestSubmit(); }
  };
  return html`<form onSubmit=${submit} onKeyDown=${keys}>${fields}<button class="first" disabled=${busy}>Send</button></form>
    <div id="api-answer" aria-live="polite" ref=${place}>${answer && html`<${Answer} operation=${operation} answer=${answer} />`}</div>
    <details class="declared"><summary>Answers that are declared</summary>${Object.keys(operation.responses || {}).map((status) => html`<${Declared} operation=${operation} status=${status} />`)}</details>
    <details class="declared"><summary>The same request elsewhere</summary><h4>cURL</h4><pre tabindex="0">${asCurl({ ...request, headers: Object.entries(request.headers) })}</pre><h4>Python</h4><pre tabindex="0">${asPython(request)}</pre></details>`;
}
