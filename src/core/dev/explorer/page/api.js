// The panel "API": every operation of the OpenAPI document, a form to send a request, the answer beside what is declared.
import { apiAnswers, declared, drawAnswer, sendRequest } from "./api_answer.js";
import { api, operations } from "./api_document.js";
import { asCurl, asPython, requestForm } from "./api_form.js";
import { act, at, call, here, html, say, store } from "./core.js";
import { draft, el, empty, field, fill, refill, reveal } from "./dom.js";
import { Head } from "./parts.js";
import { useEffect, useRef } from "./vendor.js";

// The panel as preact sees it: one element, which is filled here.
export function ApiPanel({ parts }) {
  const host = useRef(null), shown = useRef(null), chosen = parts[0] || "", loads = useRef(store.loads);
  useEffect(() => {
    const mounted = showApi(host.current, chosen);
    shown.current = mounted;
    return mounted.leave;
  }, []);
  useEffect(() => shown.current.deeper(chosen), [chosen]);
  useEffect(() => {
    if (loads.current !== store.loads) shown.current.reloaded();
    loads.current = store.loads;
  }, [store.loads]);
  return html`<${Head} title="API" /><div ref=${host}></div>`;
}

function showApi(host, first) {
  const head = el("div"), list = el("div", { id: "api-list" }), detail = el("div", { id: "api-detail", class: "detail" });
  const filter = draft("api", el("input", { type: "search", oninput: () => draw() }));
  let chosen = "";

  const draw = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const every = operations();
    const kept = every.filter((one) => {
      const text = `${one.method} ${one.path} ${one.id} ${one.operation.summary || ""} ${(one.operation.tags || []).join(" ")}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    refill(head, [api.fresh, api.problem, api.findings, api.document === null, api.fresh && differs()], drawHead);
    refill(list, [kept.map((one) => [one.method, one.path, one.operation.tags, one.operation.summary]), chosen, every.length], () => drawList(kept, every.length));
    const found = every.find((one) => one.id === chosen);
    const focus = keptFocus(detail);
    refill(detail, [chosen, found ?? null, found && api.document.components, api.document === null], () => (found ? drawOperation(found) : api.document === null ? [] : [
      chosen ? el("p", { class: "problem", text: `There is no operation ${chosen} in the document.` }) : empty("Choose a route to see what it takes and answers, and to send a request."),
    ]));
    focus();
  };

  const load = async () => {
    api.committed = (await call("/openapi")).document;
    if (api.document === null) api.document = api.committed;
    api.fresh = false;
    draw();
    const gathered = await call("/openapi/fresh");
    Object.assign(api, { fresh: true, problem: gathered.problem, findings: gathered.findings });
    if (gathered.document !== null) api.document = gathered.document;
    if (head.isConnected) draw();
  };

  fill(host, head, el("div", { class: "two api" },
    el("div", {}, el("form", { role: "search", class: "bar", onsubmit: (event) => event.preventDefault() }, field("Filter (press /)", filter, true)), list),
    detail));
  list.addEventListener("keydown", (event) => moveAmong(list, event));
  const deeper = (id) => {
    if (id === chosen) return;
    chosen = id;
    draw();
    if (!chosen) return;
    list.querySelector('[aria-current="true"]')?.scrollIntoView({ block: "nearest" });
    reveal(detail);
    detail.querySelector("h3")?.focus({ preventScroll: true });
  };
  const reloaded = () => load().catch((error) => say(error.message, true));
  chosen = first;
  draw();
  reloaded();
  return { deeper, reloaded, leave: () => {} };
}

const differs = () => api.committed !== null && JSON.stringify(api.committed) !== JSON.stringify(api.document);

function drawHead() {
  const told = [];
  if (!api.fresh) told.push(el("p", { class: "none", text: api.document === null ? "Reading the code … the first time takes some seconds." : "From openapi.json; reading the code …" }));
  else if (api.problem) {
    told.push(el("div", { class: "problem", role: "alert" },
      el("p", { text: api.document === null ? "The code could not be described:" : "The code could not be described; this is what was known before:" }), el("pre", { text: api.problem, tabindex: "0" })));
  } else if (api.committed === null) told.push(el("p", { class: "none" }, "As the code says now. Keep it: ", el("code", { text: "core openapi -o openapi.json" })));
  else if (differs()) told.push(el("p", { class: "warn" }, "As the code says now; openapi.json is not up to date: ", el("code", { text: "core openapi -o openapi.json" })));
  else told.push(el("p", { class: "none", text: "As the code says now, and as openapi.json has it." }));
  if (api.findings.length) {
    told.push(el("details", {}, el("summary", { class: "warn", text: api.findings.length === 1 ? "One thing is not known" : `${api.findings.length} things are not known` }),
      el("ul", {}, api.findings.map((text) => el("li", { text })))));
  }
  return told;
}

function drawList(kept, all) {
  const groups = new Map();
  for (const one of kept) {
    const tag = one.operation.tags?.[0] || "";
    if (!groups.has(tag)) groups.set(tag, []);
    groups.get(tag).push(one);
  }
  const chosen = here().parts[0];
  if (!kept.length) return all ? [empty("No route is like that.")] : api.fresh ? [empty("No routes yet.")] : [];
  return [...groups].map(([tag, ones]) => el("section", { "aria-label": tag || "Routes" },
    tag || groups.size > 1 ? el("h3", { text: tag || "Routes" }) : null,
    el("ul", { class: "operations" }, ones.map((one) => el("li", {},
      el("a", { href: `#api/${at(one.id)}`, "aria-current": one.id === chosen ? "true" : null, title: one.operation.summary },
        el("span", { class: `verb ${one.method.toLowerCase()}`, text: one.method === "WebSocket" ? "WS" : one.method }), " ", el("code", { text: one.path }))))))); 
}

function moveAmong(list, event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const links = [...list.querySelectorAll("a")], here = links.indexOf(document.activeElement);
  if (!step || here < 0) return;
  event.preventDefault();
  links[Math.min(Math.max(here + step, 0), links.length - 1)].focus();
}

// Remember which control has the focus, to give it back to the one that takes its place.
function keptFocus(element) {
  const control = element.contains(document.activeElement) ? document.activeElement : null;
  const key = control?.dataset.key, from = control?.selectionStart, to = control?.selectionEnd;
  return () => {
    const now = key && !control.isConnected ? element.querySelector(`[data-key="${CSS.escape(key)}"]`) : null;
    now?.focus();
    if (now && typeof from === "number") now.setSelectionRange(from, to);
  };
}

// -- one operation

function drawOperation({ method, path, operation, id }) {
  const answer = el("div", { id: "api-answer", "aria-live": "polite" });
  const heading = el("h3", { tabindex: "-1" }, el("span", { class: `verb ${method.toLowerCase()}`, text: method }), " ", el("code", { text: path }));
  const told = [heading, operation.summary ? el("p", { text: operation.summary }) : null,
    (operation.description || "").split("\n\n").filter(Boolean).map((text) => el("p", { text }))];
  if (method === "WebSocket") {
    return [told, el("p", { class: "none", text: "A WebSocket. Open it from a page of this address:" }),
      el("pre", { text: `new WebSocket("${location.origin.replace("http", "ws")}${path}")`, tabindex: "0" })];
  }
  const form = requestForm(method, path, operation, id);
  const curl = el("pre", { text: "", tabindex: "0" }), python = el("pre", { text: "", tabindex: "0" });
  const rewrite = () => {
    const request = form.request();
    curl.textContent = asCurl(request);
    python.textContent = asPython(request);
  };
  const send = el("button", { class: "first", text: "Send" });
  const fields = el("form", {
    oninput: rewrite,
    onchange: rewrite,
    onkeydown: (event) => { if ((event.ctrlKey || event.metaKey) && event.key === "Enter") { event.preventDefault(); fields.requestSubmit(); } },
    onsubmit: act(async () => {
      send.disabled = true;
      try { await sendRequest(form.request(), operation, id, answer); } finally { send.disabled = false; }
    }),
  }, form.fields, send);
  rewrite();
  if (apiAnswers.has(id)) drawAnswer(answer, operation, apiAnswers.get(id));
  return [told, fields, answer,
    el("details", { class: "declared" }, el("summary", { text: "Answers that are declared" }), Object.keys(operation.responses || {}).map((status) => declared(operation, status))),
    el("details", { class: "declared" }, el("summary", { text: "The same request elsewhere" }), el("h4", { text: "cURL" }), curl, el("h4", { text: "Python" }), python)];
}
