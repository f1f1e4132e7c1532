// The panel "API": every operation of the OpenAPI document, a form to send a request, the answer beside what is declared.
// It uses the tools of explorer.js, which is loaded after it.
"use strict";

const api = { document: null, committed: null, fresh: false, problem: null, findings: [] };
// The last answer of each operation, kept while others are shown.
const apiAnswers = new Map();
const API_METHODS = ["get", "query", "post", "put", "patch", "delete", "options", "head", "trace"];
const API_LONGEST = 200000; // characters of an answer that are shown

// -- what a document says

function operations() {
  const found = [];
  for (const [path, item] of Object.entries(api.document?.paths || {})) {
    const add = (method, operation) => found.push({ method, path, operation, id: operation.operationId || `${method} ${path}` });
    for (const method of API_METHODS) if (item[method]) add(method.toUpperCase(), item[method]);
    for (const others of ["additionalOperations", "x-additional-operations"]) {
      for (const [method, operation] of Object.entries(item[others] || {})) add(method, operation);
    }
    if (item["x-websocket"]) add("WebSocket", item["x-websocket"]);
  }
  return found;
}

function target(value) {
  for (let turn = 0; turn < 20 && typeof value?.$ref === "string"; turn += 1) {
    value = value.$ref.slice(2).split("/").reduce((whole, part) => whole?.[part.replaceAll("~1", "/").replaceAll("~0", "~")], api.document);
  }
  return value || {};
}

// A schema as a type is written: names, types and demands, with the classes in it written out once.
function shape(schema, indent = "", seen = []) {
  const reference = schema?.$ref;
  if (reference) {
    const name = reference.split("/").pop();
    return seen.includes(reference) ? name : `${name} ${shape(target(schema), indent, [...seen, reference])}`;
  }
  if (schema === undefined || schema === true) return "any value";
  const choice = schema.anyOf || schema.oneOf;
  if (choice) return choice.map((part) => shape(part, indent, seen)).join(" | ");
  if (schema.allOf) return schema.allOf.map((part) => shape(part, indent, seen)).join(" & ");
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  const told = ["minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems", "pattern"]
    .filter((word) => word in schema).map((word) => `${word} ${schema[word]}`);
  const demands = told.length ? ` (${told.join(", ")})` : "";
  if (schema.type === "array") {
    if (schema.prefixItems) return `[${schema.prefixItems.map((part) => shape(part, indent, seen)).join(", ")}]`;
    return `list of ${shape(schema.items, indent, seen)}${demands}`;
  }
  if (schema.type === "object" || schema.properties) {
    const inner = `${indent}  `, required = schema.required || [];
    const lines = Object.entries(schema.properties || {}).map(([name, part]) => {
      const comment = part.description ? `  # ${part.description}` : "";
      return `${inner}${name}${required.includes(name) ? "" : "?"}: ${shape(part, inner, seen)}${comment}`;
    });
    if (typeof schema.additionalProperties === "object") lines.push(`${inner}…: ${shape(schema.additionalProperties, inner, seen)}`);
    return lines.length ? `{\n${lines.join("\n")}\n${indent}}` : "object";
  }
  const types = Array.isArray(schema.type) ? schema.type.join(" | ") : schema.type;
  return `${schema.format || types || "any value"}${demands}`;
}

// A value to begin with, for a body that somebody is about to write.
function sample(schema, depth = 0) {
  const known = target(schema);
  if (depth > 6) return null;
  if ("default" in known) return known.default;
  if ("const" in known) return known.const;
  if (known.enum) return known.enum[0];
  const choice = known.anyOf || known.oneOf;
  if (choice) return sample(choice.find((part) => target(part).type !== "null") || choice[0], depth + 1);
  if (known.allOf) return Object.assign({}, ...known.allOf.map((part) => sample(part, depth + 1)));
  if (known.properties || known.type === "object") {
    const required = known.required || [], names = Object.keys(known.properties || {});
    const wanted = names.filter((name) => required.includes(name));
    return Object.fromEntries((wanted.length ? wanted : names).map((name) => [name, sample(known.properties[name], depth + 1)]));
  }
  switch (Array.isArray(known.type) ? known.type[0] : known.type) {
    case "array": return known.minItems ? [sample(known.items, depth + 1)] : [];
    case "integer": case "number": return known.minimum ?? 0;
    case "boolean": return false;
    case "null": return null;
    default: break;
  }
  const now = new Date().toISOString();
  return { "date-time": now, date: now.slice(0, 10), uuid: "00000000-0000-4000-8000-000000000000", email: "ada@example.com" }[known.format] ?? "";
}

// The media type's own example: one of the document's, or one made up.
function exampleOf(content) {
  const first = Object.values(content.examples || {})[0];
  return content.example ?? target(first).value ?? sample(content.schema);
}

function schemesOf(operation) {
  const names = (operation.security ?? api.document.security ?? []).flatMap((way) => Object.keys(way));
  const schemes = api.document.components?.securitySchemes || {};
  return [...new Set(names)].filter((name) => schemes[name]).map((name) => ({ name, ...target(schemes[name]) }));
}

// -- the panel

function showApi() {
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

  put("API", head, el("div", { class: "two api" },
    el("div", {}, el("form", { role: "search", onsubmit: (event) => event.preventDefault() }, field("Filter (press /)", filter, true)), list),
    detail));
  const slash = (event) => {
    if (event.key !== "/" || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
    event.preventDefault();
    filter.focus();
  };
  document.addEventListener("keydown", slash);
  leave = () => document.removeEventListener("keydown", slash);
  list.addEventListener("keydown", (event) => moveAmong(list, event));
  deeper = (rest) => {
    chosen = decoded(rest);
    draw();
    if (!chosen) { panel.focus(); return; }
    list.querySelector('[aria-current="true"]')?.scrollIntoView({ block: "nearest" });
    reveal(detail);
    detail.querySelector("h3")?.focus({ preventScroll: true });
  };
  reloaded = () => load().catch((error) => say(error.message, true));
  chosen = decoded(location.hash.split("/").slice(1).join("/"));
  draw();
  reloaded();
}

function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

const differs = () => api.committed !== null && JSON.stringify(api.committed) !== JSON.stringify(api.document);

function drawHead() {
  const told = [];
  if (!api.fresh) told.push(el("p", { class: "empty", text: api.document === null ? "Reading the code … the first time takes some seconds." : "From openapi.json; reading the code …" }));
  else if (api.problem) {
    told.push(el("div", { class: "problem", role: "alert" },
      el("p", { text: api.document === null ? "The code could not be described:" : "The code could not be described; this is what was known before:" }), el("pre", { text: api.problem, tabindex: "0" })));
  } else if (api.committed === null) told.push(el("p", { class: "empty" }, "As the code says now. Keep it: ", el("code", { text: "core openapi -o openapi.json" })));
  else if (differs()) told.push(el("p", { class: "warn" }, "As the code says now; openapi.json is not up to date: ", el("code", { text: "core openapi -o openapi.json" })));
  else told.push(el("p", { class: "empty", text: "As the code says now, and as openapi.json has it." }));
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
  const chosen = decoded(location.hash.split("/").slice(1).join("/"));
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
    return [told, el("p", { class: "empty", text: "A WebSocket. Open it from a page of this address:" }),
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

// The controls of a request, and `request()`, which reads them.
function requestForm(method, path, operation, id) {
  const keyed = (key, control) => { control.dataset.key = `api ${id} ${key}`; return draft(`api ${id} ${key}`, control); };
  const parameters = (operation.parameters || []).map(target).filter((one) => one.in !== "cookie");
  const controls = parameters.map((one) => {
    const hint = shape(one.schema).replace(/\s+/g, " ");
    return keyed(`${one.in} ${one.name}`, el("input", { required: one.in === "path" || one.required, placeholder: "default" in (one.schema || {}) ? String(one.schema.default) : hint, title: one.description }));
  });
  const content = target(operation.requestBody || {}).content || {}, medias = Object.keys(content);
  const media = keyed("media", el("select", {}, medias.map((name) => el("option", { value: name, text: name }))));
  const bodies = new Map(medias.map((name) => [name, bodyControls(name, content[name], keyed)]));
  const places = el("div", { class: "body" });
  const choose = () => fill(places, bodies.get(media.value)?.fields || []);
  media.addEventListener("change", choose);
  choose();
  const schemes = schemesOf(operation), credentials = schemes.map(credential);
  const fields = [
    credentials.map((one) => one.fields),
    controls.map((control, index) => field(`${parameters[index].name} (${parameters[index].in})`, control)),
    medias.length > 1 ? field("Body", media) : null, places];
  const request = () => {
    const headers = {}, query = [];
    let url = path;
    controls.forEach((control, index) => {
      const { name, in: place, schema } = parameters[index];
      if (place === "path") { url = url.replace(`{${name}}`, at(control.value).replaceAll("%2F", /slashes included/.test(parameters[index].description || "") ? "/" : "%2F")); return; }
      if (!control.value) return;
      const values = target(schema).type === "array" ? control.value.split(",") : [control.value];
      if (place === "query") for (const value of values) query.push([name, value]);
      else headers[name] = control.value;
    });
    for (const one of credentials) one.add(headers, query);
    const body = bodies.get(media.value)?.read() ?? null;
    if (body?.media) headers["Content-Type"] = body.media;
    const search = query.map((pair) => pair.map(at).join("=")).join("&");
    return { method, url: search ? `${url}?${search}` : url, headers, body };
  };
  return { fields, request };
}

// The controls of one body, and how they are read: { media, text } or { form } for what the browser puts together.
function bodyControls(media, content, keyed) {
  const schema = target(content.schema), kind = media.split(";")[0];
  if (/^application\/x-www-form-urlencoded$|^multipart\/form-data$/.test(kind)) {
    const parts = (schema.allOf || [schema]).map(target), files = kind === "multipart/form-data";
    const properties = Object.assign({}, ...parts.map((part) => part.properties || {}));
    const inputs = Object.entries(properties).map(([name, part]) => {
      const isFile = files && (target(part).contentMediaType || target(part).format === "binary");
      return [name, isFile ? el("input", { type: "file" }) : keyed(`form ${name}`, el("input", { placeholder: shape(part).replace(/\s+/g, " ") }))];
    });
    const read = () => {
      const given = inputs.filter(([, input]) => (input.type === "file" ? input.files[0] : input.value));
      if (!files) return { media: kind, text: new URLSearchParams(given.map(([name, input]) => [name, input.value])).toString() };
      const form = new FormData();
      for (const [name, input] of given) form.append(name, input.type === "file" ? input.files[0] : input.value);
      return { form };
    };
    return { fields: inputs.map(([name, input]) => field(name, input)), read };
  }
  if (/^application\/octet-stream$|^(image|audio|video)\//.test(kind)) {
    const file = el("input", { type: "file" });
    return { fields: [field("File", file, true)], read: () => (file.files[0] ? { media: kind, file: file.files[0] } : null) };
  }
  const isJson = /[/+]json$/.test(kind), first = isJson ? JSON.stringify(exampleOf(content), null, 2) : "";
  const text = keyed(`body ${kind}`, el("textarea", { rows: Math.min(Math.max(first.split("\n").length, 3), 16), spellcheck: "false", text: first }));
  return { fields: [field(`Body, ${kind} (Ctrl-Enter sends it)`, text, true)], read: () => ({ media: kind, text: text.value, isJson }) };
}

// The fields of a security scheme. What is typed stays for the session of this tab, and goes nowhere else.
function credential(scheme) {
  const remembered = (part, label, type) => {
    const key = `core-api ${scheme.name} ${part}`;
    const input = el("input", { type, autocomplete: "off", "data-key": key, oninput: () => sessionStorage.setItem(key, input.value) });
    input.value = sessionStorage.getItem(key) || "";
    return [input, field(label, input)];
  };
  if (scheme.type === "apiKey" && scheme.in === "cookie") {
    return { fields: el("p", { class: "empty", text: `The browser sends the cookie ${scheme.name} along, once the application has set it.` }), add: () => {} };
  }
  if (scheme.type === "http" && scheme.scheme.toLowerCase() === "basic") {
    const [name, first] = remembered("name", "User name", "text"), [password, second] = remembered("password", "Password", "password");
    const encoded = () => btoa(String.fromCharCode(...new TextEncoder().encode(`${name.value}:${password.value}`)));
    return { fields: [first, second], add: (headers) => { if (name.value || password.value) headers.Authorization = `Basic ${encoded()}`; } };
  }
  const [secret, shownField] = remembered("token", scheme.type === "apiKey" ? scheme.name : `Token (${scheme.name})`, "password");
  const add = (headers, query) => {
    if (!secret.value) return;
    const word = scheme.type === "http" ? scheme.scheme : "bearer";
    if (scheme.type !== "apiKey") headers.Authorization = `${word[0].toUpperCase()}${word.slice(1)} ${secret.value}`;
    else if (scheme.in === "query") query.push([target(scheme).name, secret.value]);
    else headers[(api.document.components.securitySchemes[scheme.name] || scheme).name] = secret.value;
  };
  return { fields: shownField, add };
}

// -- the answer

async function sendRequest(request, operation, id, place) {
  const stop = new AbortController(), started = performance.now();
  const init = { method: request.method, headers: request.headers, redirect: "manual", cache: "no-store", signal: stop.signal };
  if (request.body && !["GET", "HEAD"].includes(request.method)) init.body = request.body.form || request.body.file || request.body.text;
  let response;
  try {
    response = await fetch(request.url, init);
  } catch (error) {
    throw new Error(`${request.method} ${request.url} got no answer: ${error.message}`);
  }
  const answer = { status: response.status, redirects: response.type === "opaqueredirect", took: performance.now() - started,
    headers: [...response.headers], media: response.headers.get("content-type") || "", text: "", size: 0, open: true };
  apiAnswers.set(id, answer);
  const draw = () => { if (place.isConnected) drawAnswer(place, operation, answer, () => stop.abort()); };
  draw();
  reveal(place);
  try {
    const reader = response.body?.getReader(), decoder = new TextDecoder();
    for (;;) {
      const { value, done } = reader ? await reader.read() : { done: true };
      if (done) break;
      answer.size += value.length;
      if (answer.text.length < API_LONGEST) { answer.text += decoder.decode(value, { stream: true }); draw(); }
    }
  } catch (error) {
    if (!stop.signal.aborted) answer.text += `\n… cut short: ${error.message}`;
  }
  answer.open = false;
  draw();
}

function drawAnswer(place, operation, answer, stop) {
  const status = answer.redirects ? Object.keys(operation.responses || {}).find((one) => one.startsWith("3")) || "3XX" : String(answer.status);
  const isText = !answer.media || /^text\/|json|xml|javascript|yaml|urlencoded|event-stream/.test(answer.media);
  const tone = answer.redirects || answer.status < 400 ? "ok" : answer.status < 500 ? "warn" : "bad";
  fill(place,
    el("h3", {}, "Answer ", el("span", { class: tone, text: status }), el("span", { class: "soft", text: ` ${answer.took.toFixed(0)} ms, ${size(answer.size)}` })),
    answer.open && stop ? el("button", { type: "button", text: "Stop", onclick: stop }) : null,
    el("div", { class: "beside" },
      el("div", {}, el("h4", { text: answer.media || "No body" }),
        answer.redirects ? empty("A redirect. Browsers do not tell a page where to: see its headers with cURL.")
          : !answer.size ? null
            : isText ? el("pre", { text: pretty(answer), tabindex: "0" }) : empty(`${size(answer.size)} that are no text`),
        answer.text.length >= API_LONGEST ? empty("Only the beginning is shown.") : null),
      declared(operation, status)),
    el("details", {}, el("summary", { text: `${answer.headers.length} headers` }), el("pre", { text: answer.headers.map((pair) => pair.join(": ")).join("\n"), tabindex: "0" })));
}

function pretty(answer) {
  if (!/json/.test(answer.media) || answer.open) return answer.text;
  try { return JSON.stringify(JSON.parse(answer.text), null, 2); } catch { return answer.text; }
}

// What the document says of a status: as itself, as one of its range, or as what nobody foresaw.
function declared(operation, status) {
  const responses = operation.responses || {};
  const key = [status, `${status[0]}XX`, ...(status >= "500" ? ["default"] : [])].find((one) => one in responses);
  if (!key) return el("div", {}, el("h4", { class: "bad", text: `The document does not declare ${status}` }));
  const response = target(responses[key]), content = Object.entries(response.content || {});
  const name = `Declared for ${key}`;
  if (!content.length) return el("div", {}, el("h4", {}, name, el("span", { class: "soft", text: ` ${response.description || ""}` })), empty("Without a body."));
  return el("div", {}, content.map(([media, one]) => [
    el("h4", {}, name, el("span", { class: "soft", text: one.itemSchema ? ` each event of ${media}` : ` ${media}` })),
    el("pre", { text: shape(one.itemSchema || one.schema), tabindex: "0" })]));
}

// -- the same request elsewhere

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function asCurl({ method, url, headers, body }) {
  const parts = [`curl ${method === "GET" ? "" : `-X ${method} `}${quoted(location.origin + url)}`];
  for (const [name, value] of Object.entries(headers)) parts.push(`-H ${quoted(`${name}: ${value}`)}`);
  if (body?.form) for (const [name, value] of body.form) parts.push(`-F ${quoted(value instanceof File ? `${name}=@${value.name}` : `${name}=${value}`)}`);
  else if (body?.file) parts.push(`--data-binary ${quoted(`@${body.file.name}`)}`);
  else if (body?.text) parts.push(`--data-raw ${quoted(body.isJson ? compact(body.text) : body.text)}`);
  return parts.join(" \\\n  ");
}

function compact(text) {
  try { return JSON.stringify(JSON.parse(text)); } catch { return text; }
}

function asPython({ method, url, headers, body }) {
  const given = { ...headers }, lines = [`    ${pythonOf(method)},`, `    ${pythonOf(location.origin + url)},`];
  let json;
  try { json = body?.isJson ? { value: JSON.parse(body.text) } : null; } catch { json = null; }
  if (json || body?.form) delete given["Content-Type"]; // httpx writes it
  if (Object.keys(given).length) lines.push(`    headers=${pythonOf(given)},`);
  if (json) lines.push(`    json=${pythonOf(json.value)},`);
  else if (body?.form) {
    const all = [...body.form], files = all.filter(([, value]) => value instanceof File), texts = all.filter(([, value]) => !(value instanceof File));
    if (texts.length) lines.push(`    data=${pythonOf(Object.fromEntries(texts))},`);
    if (files.length) lines.push(`    files={${files.map(([name, file]) => `${pythonOf(name)}: open(${pythonOf(file.name)}, "rb")`).join(", ")}},`);
  } else if (body?.file) lines.push(`    content=open(${pythonOf(body.file.name)}, "rb"),`);
  else if (body?.text) lines.push(`    content=${pythonOf(body.text)},`);
  return `import httpx\n\nresponse = httpx.request(\n${lines.join("\n")}\n)\nprint(response.status_code, response.text)`;
}

// A value of JSON as Python writes it.
function pythonOf(value) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(pythonOf).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value).map(([name, one]) => `${pythonOf(name)}: ${pythonOf(one)}`).join(", ")}}`;
  return JSON.stringify(value);
}
