// The explorer's page: panels over /_core/api, and nothing from anywhere else.
// Every text from the application is put in as text; there is no innerHTML in this file.
"use strict";

const token = document.querySelector('meta[name="core-token"]').content;
const panel = document.getElementById("panel");
const notice = document.getElementById("notice");
let overview = { bindings: [], routes: [], queues: [], crons: [], notices: [] };
let exchanges = new Map();
// What the panel that is shown does when another one takes its place, and when the application was loaded again. A
// panel without the second is drawn anew; one in which somebody may be writing is not.
let leave = () => {};
let reloaded = null;
let shownFor = "";
// What the panel that is shown makes of the part of the address behind its name: `#api/get_user`.
let deeper = null;
let current = "";
// What was typed, by what it is for, kept while other panels are shown.
const drafts = new Map();

// -- small tools

function el(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "text") element.textContent = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

function svg(name, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// Replace what an element holds. What is null or false is left out, as `el` does it.
function fill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
}

// As `fill`, where something is looked up again and again: nothing is touched while it stays the same, and what had the
// focus has it afterwards.
const drawn = new WeakMap();
function refill(element, state, make) {
  const text = JSON.stringify(state);
  if (drawn.get(element) === text) return;
  drawn.set(element, text);
  const name = (one) => one.getAttribute("aria-label") || one.textContent;
  const focused = element.contains(document.activeElement) ? name(document.activeElement) : null;
  fill(element, make());
  if (focused !== null) [...element.querySelectorAll("a, button, summary")].find((one) => name(one) === focused)?.focus();
}

// Bring into view what was just opened, which may stand above, below or beside a long list.
function reveal(element) {
  const top = element.getBoundingClientRect().top;
  if (top < 0 || top > innerHeight / 2) element.scrollIntoView({ block: "start" });
}

function draft(key, control) {
  if (drafts.has(key)) control.value = drafts.get(key);
  control.addEventListener("input", () => drafts.set(key, control.value));
  return control;
}

async function call(path, { method = "GET", body, raw, headers = {} } = {}) {
  const response = await fetch(`/_core/api${path}`, {
    method,
    headers: { "X-Core-Token": token, ...headers },
    body: raw !== undefined ? raw : body === undefined ? undefined : JSON.stringify(body),
  });
  const answer = await response.json();
  if (!response.ok) {
    const issues = (answer.issues || []).map((issue) => `${issue.path} ${issue.message}`).join("; ");
    throw new Error(issues ? `${answer.error}: ${issues}` : answer.error);
  }
  return answer;
}

let quiet = 0;
function say(text, bad = false) {
  notice.textContent = text;
  notice.className = bad ? "bad" : "";
  clearTimeout(quiet);
  quiet = setTimeout(() => { notice.textContent = ""; }, bad ? 10000 : 3000);
}

// Run what a button or form does; say what failed.
function act(work) {
  return async (event) => {
    event.preventDefault();
    try { await work(event); } catch (error) { say(error.message, true); }
  };
}

function table(caption, heads, rows, numbers = []) {
  const cls = (index) => (numbers.includes(index) ? "n" : null);
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", {},
      el("caption", { text: caption }),
      el("thead", {}, el("tr", {}, heads.map((head, index) => el("th", { scope: "col", class: cls(index), text: head })))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, index) => el("td", { class: cls(index) }, cell)))))));
}

function shown(value) {
  if (value === null || value === undefined) return el("span", { class: "null", text: "NULL" });
  if (typeof value === "object") {
    if ("base64" in value) return el("span", { class: "null", text: `${value.size} bytes` });
    return JSON.stringify(value);
  }
  return String(value);
}

const field = (label, control, wide) => el("label", { class: wide ? "wide" : null }, label, control);
const empty = (text) => el("p", { class: "empty", text });
const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString();
const moment = (seconds) => new Date(seconds * 1000).toLocaleString();
const size = (bytes) => (bytes < 10000 ? `${bytes} B` : bytes < 10000000 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1000000).toFixed(1)} MB`);
const of = (kind) => overview.bindings.filter((binding) => binding.kind === kind);
const at = encodeURIComponent;

function put(title, ...children) {
  const heading = el("h2", { id: "panel-title", text: title });
  fill(panel, heading, children);
}

// A choice among the bindings of one kind; `show` gets the name.
function chooser(kind, what, show) {
  const names = of(kind).filter((binding) => !binding.absent).map((binding) => binding.name);
  const place = el("div");
  if (!names.length) return [empty(`There is no ${what} in the configuration.`)];
  const select = el("select", { onchange: () => show(select.value, place) }, names.map((name) => el("option", { value: name, text: name })));
  show(names[0], place);
  return [names.length > 1 ? el("form", {}, field(what, select)) : null, place];
}

// -- the live log

function exchangeRow(exchange) {
  const status = exchange.status ?? (exchange.kind === "request" ? "" : exchange.outcome === "ok" ? "ok" : exchange.duration === null ? "" : "failed");
  const tone = status === "ok" || (status >= 200 && status < 400) ? "ok" : status >= 400 && status < 500 ? "warn" : status === "" ? "" : "bad";
  const took = exchange.duration === null ? "…" : `${exchange.duration.toFixed(1)} ms`;
  const total = Math.max(exchange.duration || 0, ...exchange.calls.map((one) => one.started + (one.duration || 0)), 0.01);
  const falls = exchange.calls.map((one) => {
    const x = (one.started / total) * 100, width = Math.max(((one.duration || 0) / total) * 100, 0.5);
    const group = `${one.background ? "background" : ""} ${one.error ? "failed" : ""}`;
    return [
      el("span", { class: "call" }, el("strong", { text: `${one.binding}.${one.method}` }), ` ${one.detail}`,
        one.error ? el("span", { class: "bad", text: ` ${one.error}` }) : null,
        one.background ? el("span", { class: "warn", text: " in the background" }) : null),
      svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
        svg("g", { class: group }, svg("rect", { x, y: 2, width, height: 6 }))),
      el("span", { class: "n", text: one.duration === null ? "…" : `${one.duration.toFixed(2)} ms` }),
    ];
  });
  const details = el("details", { class: "exchange", "data-number": exchange.key },
    el("summary", {},
      el("span", { class: "time", text: clock(exchange.time) }),
      el("span", { text: exchange.method }),
      el("span", { class: "path", text: exchange.path }),
      el("span", { class: `n ${tone}`, text: String(status) }),
      el("span", { class: "n took", text: took })),
    exchange.error ? el("p", { class: "problem", text: exchange.error }) : null,
    exchange.calls.length ? el("div", { class: "fall" }, falls) : empty("No binding was called."),
    exchange.leftOut ? empty(`${exchange.leftOut} more calls are not shown.`) : null);
  return details;
}

function showRequests() {
  const list = el("div", { id: "exchanges" });
  const filter = draft("requests", el("input", { type: "search", oninput: () => draw() }));
  const draw = () => {
    const open = new Set([...list.querySelectorAll("details[open]")].map((one) => one.dataset.number));
    const focused = document.activeElement?.closest?.("details")?.dataset.number;
    const rows = [...exchanges.values()].reverse()
      .filter((one) => !filter.value || `${one.method} ${one.path} ${one.status}`.toLowerCase().includes(filter.value.toLowerCase()))
      .map(exchangeRow);
    rows.forEach((row) => { row.open = open.has(row.dataset.number); });
    fill(list, ...(rows.length ? rows : [empty("Nothing yet. Send a request, and it shows up here.")]));
    if (focused) list.querySelector(`details[data-number="${focused}"] summary`)?.focus();
  };
  put("Requests",
    el("form", { onsubmit: (event) => event.preventDefault() }, field("Filter", filter),
      el("button", { type: "button", text: "Clear", onclick: () => { exchanges = new Map(); draw(); } })),
    list);
  draw();
  let waiting = false;
  const update = () => { if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; draw(); }); } };
  document.addEventListener("exchange", update);
  leave = () => document.removeEventListener("exchange", update);
  reloaded = update;
}

// -- routes

function showRoutes() {
  put("Routes", overview.routes.length
    ? table(`${overview.routes.length} routes, in the order in which they are tried`, ["Method", "Path", "Handler", "Runs before it", "Who"],
      overview.routes.map((route) => [route.method, el("code", { text: route.path }), route.handler, route.middleware.join(" → ") || "nothing",
        route.authenticated ? "behind an authenticator" : route.public ? "public" : "everyone"]))
    : empty("No routes yet."));
}

// -- KV

function showKV() {
  put("Key-value", chooser("kv", "Namespace", (name, place) => {
    const prefix = el("input", { type: "search" });
    const list = el("div"), detail = el("div", { id: "kv-detail", class: "detail" });
    const load = async (cursor) => {
      const page = await call(`/kv/${at(name)}?prefix=${at(prefix.value)}${cursor ? `&cursor=${at(cursor)}` : ""}`);
      fill(list, page.keys.length
        ? table("Keys", ["Key", "Expires"], page.keys.map((key) => [
          el("button", { class: "link", type: "button", text: key.name, onclick: act(() => open(key.name)) }),
          key.expiration ? moment(key.expiration) : "never"]))
        : empty("No keys here."),
      page.cursor ? el("button", { type: "button", text: "Next page", onclick: act(() => load(page.cursor)) }) : "");
    };
    const open = async (key) => {
      const found = key === null ? { text: "", metadata: null } : await call(`/kv/${at(name)}/value?key=${at(key)}`);
      const forever = el("input", { type: "checkbox" }), expires = el("p"), removes = field("Never expire", forever);
      const tell = () => {
        expires.textContent = found.expiration ? `Expires ${moment(found.expiration)}, unless you change that` : "";
        removes.hidden = !found.expiration;
      };
      tell();
      const keyInput = el("input", { value: key ?? "", required: true, readonly: key !== null });
      const value = el("textarea", { rows: 8 });
      const ttl = el("input", { type: "number", min: 60, placeholder: "seconds, 60 or more" });
      value.value = found.text ?? "";
      const binary = found.text === null || found.text === undefined;
      fill(detail,
        el("h3", { text: key === null ? "New key" : "Value" }),
        binary ? empty(`${found.size} bytes that are no text`) : null,
        found.cut ? empty(`${size(found.size)}; only the beginning is shown, so saving is off.`) : null,
        found.metadata !== null ? el("pre", { text: `metadata ${JSON.stringify(found.metadata, null, 2)}` }) : null,
        expires,
        el("form", { onsubmit: act(async () => {
          await call(`/kv/${at(name)}/value`, { method: "PUT", body: {
            key: keyInput.value, value: value.value, metadata: found.metadata,
            // A put replaces everything that was there: what was not changed is sent again.
            expiration: ttl.value || forever.checked ? null : found.expiration ?? null,
            expiration_ttl: ttl.value && !forever.checked ? Number(ttl.value) : null,
          } });
          say(`Saved ${keyInput.value}`);
          Object.assign(found, await call(`/kv/${at(name)}/value?key=${at(keyInput.value)}`));
          ttl.value = "";
          forever.checked = false;
          tell();
          await load();
        }) },
        field("Key", keyInput, true), field("Value", value, true), field("Expires in", ttl), removes,
        el("button", { class: "first", text: "Save", disabled: binary && key !== null || found.cut }),
        key === null ? null : el("button", { class: "danger", type: "button", text: "Delete", onclick: act(async () => {
          await call(`/kv/${at(name)}/value?key=${at(key)}`, { method: "DELETE" });
          say(`Deleted ${key}`);
          fill(detail);
          await load();
        }) })));
      reveal(detail);
    };
    reloaded = () => load();
    fill(place, el("div", { class: "two" },
      el("div", {},
        el("form", { role: "search", onsubmit: act(() => load()) }, field("Prefix", prefix), el("button", { text: "List" }),
          el("button", { type: "button", text: "New key", onclick: act(() => open(null)) })), list),
      detail));
    load().catch((error) => say(error.message, true));
  }));
}

// -- D1

function showD1() {
  put("SQL", chooser("d1", "Database", (name, place) => {
    const sql = el("textarea", { rows: 5, spellcheck: "false", onkeydown: (event) => { if ((event.ctrlKey || event.metaKey) && event.key === "Enter") run(event); } });
    draft(`sql ${name}`, sql);
    const result = el("div", { id: "sql-result", "aria-live": "polite" }), tables = el("div");
    const run = act(async () => {
      const found = await call(`/d1/${at(name)}/query`, { method: "POST", body: { sql: sql.value } });
      const took = `${found.rows.length} ${found.rows.length === 1 ? "row" : "rows"} in ${found.duration.toFixed(2)} ms`;
      fill(result,
        found.columns.length ? table(took, found.columns, found.rows.map((row) => row.map(shown))) : empty(`Done, ${took}.`),
        found.leftOut ? empty(`${found.leftOut} more rows are not shown.`) : "");
      await load();
    });
    const load = async () => {
      const found = await call(`/d1/${at(name)}`);
      const pending = found.migrations.pending;
      fill(tables,
        found.tables.length
          ? table("Tables", ["Name", "Kind", "Rows"], found.tables.map((one) => [
            el("button", { class: "link", type: "button", text: one.name, onclick: (event) => { sql.value = `SELECT * FROM "${one.name.replaceAll('"', '""')}" LIMIT 50`; drafts.set(`sql ${name}`, sql.value); run(event).then(() => reveal(result)); } }),
            one.type, String(one.rows)]), [2])
          : empty("No tables yet."),
        el("h3", { text: "Migrations" }),
        el("ul", {}, found.migrations.applied.map((file) => el("li", {}, file, el("span", { class: "ok", text: " applied" }))),
          pending.map((file) => el("li", {}, file, el("span", { class: "warn", text: " pending" })))),
        pending.length ? el("button", { type: "button", text: "Apply pending", onclick: act(async () => {
          const done = await call(`/d1/${at(name)}/migrate`, { method: "POST" });
          say(`Applied ${done.applied.join(", ")}`);
          await load();
        }) }) : "");
    };
    reloaded = () => load();
    fill(place, el("div", { class: "two" }, tables,
      el("div", {}, el("form", { onsubmit: run }, field("SQL (Ctrl-Enter runs it)", sql, true), el("button", { class: "first", text: "Run" })), result)));
    load().catch((error) => say(error.message, true));
  }));
}

// -- R2

function showR2() {
  put("Objects", chooser("r2", "Bucket", (name, place) => {
    const prefix = el("input", { type: "search" }), list = el("div"), detail = el("div", { id: "r2-detail" });
    const key = el("input", { required: true }), file = el("input", { type: "file", required: true });
    const load = async (cursor) => {
      const page = await call(`/r2/${at(name)}?prefix=${at(prefix.value)}${cursor ? `&cursor=${at(cursor)}` : ""}`);
      fill(list, page.objects.length
        ? table("Objects", ["Key", "Size", "Type", "Uploaded", "What to do"], page.objects.map((one) => [
          el("button", { class: "link", type: "button", text: one.key, onclick: act(() => open(one)) }), size(one.size), one.contentType || "", new Date(one.uploaded).toLocaleString(),
          el("span", {},
            el("button", { type: "button", text: "Download", "aria-label": `Download ${one.key}`, onclick: act(() => download(one.key)) }), " ",
            el("button", { class: "danger", type: "button", text: "Delete", "aria-label": `Delete ${one.key}`, onclick: act(async () => {
              await call(`/r2/${at(name)}/object?key=${at(one.key)}`, { method: "DELETE" });
              say(`Deleted ${one.key}`);
              fill(detail);
              await load();
            }) }))]), [1])
        : empty("No objects here."),
      page.cursor ? el("button", { type: "button", text: "Next page", onclick: act(() => load(page.cursor)) }) : "");
    };
    const open = async (one) => {
      const found = await call(`/r2/${at(name)}/object?key=${at(one.key)}`);
      fill(detail, el("h3", { text: one.key }), el("p", {}, `etag ${one.etag}`),
        Object.keys(one.customMetadata || {}).length ? el("pre", { text: JSON.stringify(one.customMetadata, null, 2) }) : "",
        found.text === null ? empty(`${size(found.size)} that are no text`) : el("pre", { text: found.text, tabindex: "0" }),
        found.cut ? empty("Only the beginning is shown.") : "");
      reveal(detail);
    };
    reloaded = () => load();
    const download = async (objectKey) => {
      const response = await fetch(`/_core/api/r2/${at(name)}/object?download=1&key=${at(objectKey)}`, { headers: { "X-Core-Token": token } });
      const link = el("a", { href: URL.createObjectURL(await response.blob()), download: objectKey.split("/").pop() });
      link.click();
      URL.revokeObjectURL(link.href);
    };
    fill(place,
      el("form", { role: "search", onsubmit: act(() => load()) }, field("Prefix", prefix), el("button", { text: "List" })),
      list, detail,
      el("h3", { text: "Upload" }),
      el("form", { onsubmit: act(async () => {
        const chosen = file.files[0];
        await call(`/r2/${at(name)}/object?key=${at(key.value)}&contentType=${at(chosen.type || "application/octet-stream")}`, { method: "PUT", raw: chosen });
        say(`Stored ${key.value}`);
        await load();
      }) }, field("Key", key), field("File", file), el("button", { class: "first", text: "Upload" })));
    file.addEventListener("change", () => { if (!key.value && file.files[0]) key.value = file.files[0].name; });
    load().catch((error) => say(error.message, true));
  }));
}

// -- queues

function showQueues() {
  const list = el("div"), detail = el("div", { id: "queue-detail" }), waiting = el("div");
  let chosen = null;
  const load = async () => {
    const queues = await call("/queues");
    refill(list, queues, () => queues.length
      ? table("Queues", ["Queue", "Waiting", "What it is"], queues.map((queue) => [
        el("button", { class: "link", type: "button", text: queue.name, onclick: act(() => open(queue)) }), String(queue.waiting),
        queue.deadLettersOf.length ? `dead letters of ${queue.deadLettersOf.join(", ")}` : queue.consumed ? "consumed here" : "nobody consumes it here"]), [1])
      : empty("There are no queues in the configuration."));
    if (chosen) await look();
  };
  const open = async (queue) => {
    chosen = queue;
    const body = draft(`queue ${queue.name}`, el("textarea", { rows: 4, spellcheck: "false", text: "{}" }));
    fill(detail,
      el("h3", { text: queue.name }),
      el("form", { onsubmit: act(async () => {
        await call(`/queues/${at(queue.name)}/send`, { method: "POST", body: { body: JSON.parse(body.value) } });
        say(`Sent to ${queue.name}`);
        setTimeout(() => load().catch(() => {}), 300);
      }) }, field("Message (JSON)", body, true), el("button", { class: "first", text: "Send" })),
      waiting);
    await look();
    reveal(detail);
  };
  const look = async () => {
    const queue = chosen;
    const messages = await call(`/queues/${at(queue.name)}`);
    if (queue !== chosen) return;
    const target = queue.deadLettersOf[0] || queue.name;
    refill(waiting, [queue.name, messages], () => messages.length
      ? table("Messages", ["Id", "Body", "Failed attempts", "Sent", "What to do"], messages.map((message) => [
        el("code", { text: message.id.slice(0, 8) }), el("code", { text: JSON.stringify(message.body) }), String(message.attempts), moment(message.sent),
        el("span", {},
          el("button", { type: "button", text: `Redeliver to ${target}`, "aria-label": `Redeliver ${message.id.slice(0, 8)} to ${target}`, onclick: act(async () => {
            await call(`/queues/${at(queue.name)}/redeliver`, { method: "POST", body: { id: message.id, to: target } });
            say(`Redelivered to ${target}`);
            await load();
          }) }), " ",
          el("button", { class: "danger", type: "button", text: "Delete", "aria-label": `Delete ${message.id.slice(0, 8)}`, onclick: act(async () => {
            await call(`/queues/${at(queue.name)}/message?key=${at(message.id)}`, { method: "DELETE" });
            say("Deleted");
            await load();
          }) }))]), [2])
      : empty("No message waits here."));
  };
  put("Queues", list, detail);
  load().catch((error) => say(error.message, true));
  const timer = setInterval(() => load().catch(() => {}), 2000);
  leave = () => clearInterval(timer);
  reloaded = () => load();
}

// -- times

async function showCron() {
  const crons = await call("/cron");
  put("Triggers", crons.length
    ? table("Cron triggers, in UTC", ["Expression", "Next", "Handled", "What to do"], crons.map((one) => [
      el("code", { text: one.cron }), one.next ? moment(one.next) : "", one.handled ? "yes" : "by nothing",
      el("button", { type: "button", text: "Run now", "aria-label": `Run now: ${one.cron}`, disabled: !one.handled, onclick: act(async () => {
        const exchange = await call("/cron/run", { method: "POST", body: { cron: one.cron } });
        say(exchange.outcome === "ok" ? `Ran in ${exchange.duration.toFixed(1)} ms` : exchange.outcome, exchange.outcome !== "ok");
      }) })]))
    : empty("There are no triggers in the configuration."));
}

// -- Durable Objects

async function showObjects() {
  const namespaces = await call("/objects"), detail = el("div", { id: "object-detail" });
  const open = async (namespace, id) => {
    const found = await call(`/objects/${at(namespace)}/${at(id)}`);
    fill(detail, el("h3", { text: `${namespace} ${id.slice(0, 12)}…` }),
      found.entries.length ? table("Stored values", ["Key", "Value"], found.entries.map((one) => [el("code", { text: one.key }), el("code", { text: one.value })])) : empty("No stored values."),
      Object.entries(found.tables).map(([name, rows]) => table(`Table ${name}`, rows.columns, rows.rows.map((row) => row.map(shown)))));
    reveal(detail);
  };
  put("Durable Objects", namespaces.length
    ? namespaces.map((one) => [el("h3", { text: `${one.name} (${one.className})` }), one.objects.length
      ? el("ul", {}, one.objects.map((id) => el("li", {}, el("button", { class: "link mono", type: "button", text: id, onclick: act(() => open(one.name, id)) }))))
      : empty("No object has stored anything yet.")])
    : empty("There are no Durable Objects in the configuration."), detail);
}

// -- configuration

async function showConfiguration() {
  const found = await call("/configuration");
  put("Configuration",
    el("h3", { text: "What core check finds" }),
    found.findings.length ? el("ul", {}, found.findings.map((text) => el("li", { class: "bad", text }))) : el("p", { class: "ok", text: "Nothing: Env and configuration agree." }),
    found.unchecked.length ? [el("h3", { text: "Read, and not checked" }), el("ul", {}, found.unchecked.map((one) => el("li", {}, el("code", { text: one.key }), ` ${one.reason}`)))] : null,
    el("h3", { text: "Bindings" }),
    table("Bindings", ["Name", "Kind", "Declared at", "Here"], overview.bindings.map((one) => [el("code", { text: one.name }), one.kind, one.place, one.absent || (one.kind === "secret" || one.kind === "var" ? "" : "embedded")])),
    el("h3", { text: found.file }),
    el("pre", { text: found.text, tabindex: "0" }));
}

// -- moving between panels

const panels = {
  requests: ["Requests", showRequests],
  routes: ["Routes", showRoutes],
  api: ["API", showApi],
  kv: ["Key-value", showKV],
  sql: ["SQL", showD1],
  objects: ["Objects", showR2],
  queues: ["Queues", showQueues],
  triggers: ["Triggers", showCron],
  "durable-objects": ["Durable Objects", showObjects],
  configuration: ["Configuration", showConfiguration],
};

async function show(moved) {
  const [given, rest] = /^#([^/]*)\/?(.*)$/.exec(location.hash)?.slice(1) ?? ["", ""];
  const name = given in panels ? given : "requests";
  if (moved && name === current && deeper) { deeper(rest); return; }
  leave();
  leave = () => {};
  reloaded = null;
  deeper = null;
  current = name;
  shownFor = JSON.stringify(overview.bindings);
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${panels[name][0]} – ${overview.name || "core"}`;
  try { await panels[name][1](); } catch (error) { put(panels[name][0], el("p", { class: "problem", text: error.message })); }
  if (moved) panel.focus();
}

function keys(event) {
  if (event.altKey || event.ctrlKey || event.metaKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
  const names = Object.keys(panels);
  const name = /^[0-9]$/.test(event.key) ? names[(Number(event.key) + 9) % 10] : undefined; // 0 is the tenth
  if (!name) return;
  const hash = `#${name}`;
  if (location.hash === hash) panel.focus();
  else location.hash = hash;
}

async function start() {
  document.getElementById("tabs").replaceChildren(...Object.entries(panels).map(([name, [title]], index) =>
    el("li", {}, el("a", { href: `#${name}`, text: title, title: `Key ${(index + 1) % 10}` }))));
  window.addEventListener("hashchange", () => show(true));
  document.addEventListener("keydown", keys);
  await refresh();
  await show(false);
  follow();
}

async function refresh() {
  overview = { bindings: [], routes: [], queues: [], crons: [], notices: [], ...(await call("/overview")) };
  document.getElementById("title").textContent = overview.name;
  document.getElementById("where").textContent = overview.environment ? `environment ${overview.environment}` : "core dev";
  if (overview.failed) {
    const failed = overview.failed;
    document.getElementById("where").replaceChildren(el("span", { class: "bad", text: `not loaded: ${failed.kind}: ${failed.message}` }));
  }
  for (const one of await call("/exchanges")) note(one);
}

// Numbers begin anew in each process; what the one before did stays to be read.
function note(exchange) {
  exchange.key = `${overview.process}/${exchange.number}`;
  exchanges.set(exchange.key, exchange);
  while (exchanges.size > 200) exchanges.delete(exchanges.keys().next().value);
}

// The application was loaded again. While it cannot be, the panel stays as it is.
async function renew() {
  await refresh();
  if (overview.failed) return;
  if (reloaded && shownFor === JSON.stringify(overview.bindings)) await reloaded();
  else await show(false);
}

// The live log, and again after the server was reloaded.
async function follow() {
  const live = document.getElementById("live");
  for (;;) {
    try {
      const response = await fetch("/_core/api/live", { headers: { "X-Core-Token": token } });
      if (!response.ok) { live.textContent = "The token is out of date: open the explorer anew"; return; }
      live.textContent = "live";
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        const lines = (rest + value).split("\n");
        rest = lines.pop();
        for (const line of lines.filter(Boolean)) {
          note(JSON.parse(line));
        }
        if (lines.some(Boolean)) document.dispatchEvent(new Event("exchange"));
      }
    } catch { /* the server is being reloaded or has stopped */ }
    live.textContent = "reconnecting";
    await new Promise((resolve) => setTimeout(resolve, 500));
    try { await renew(); } catch { /* not yet */ }
  }
}

start().catch((error) => say(error.message, true));
