// The panel "Requests": a list that grows while one looks at it, by route where that is asked for, and the request that is open.
import { act, ask, call, clock, count, go, html, milliseconds, store, useDraft, useStore } from "./core.js";
import { Grid, inOrder, local, Total } from "./grid.js";
import { forget } from "./live.js";
import { Empty, Field, Head, Loading, Split } from "./parts.js";
import { Exchange } from "./request.js";
import { useMemo, useState } from "./vendor.js";

export const statusOf = (one) => one.status ?? (one.duration === null ? "…" : one.kind === "request" ? "gone" : one.outcome === "ok" ? "ok" : "failed");
export const toneOf = (status) => (status === "…" ? "" : status === "ok" || (status >= 100 && status < 400) ? "ok" : status >= 400 && status < 500 ? "warn" : "bad");
const routeOf = (one) => one.route ?? "none";

const COLUMNS = [
  { label: "Time", sort: "time", down: true, value: (one) => one.time, width: "5.4rem", roomy: 500, class: "time", cell: (one) => clock(one.time) },
  { label: "Method", sort: "method", value: (one) => one.method, width: "4.9rem", class: "verb", cell: (one) => one.method },
  { label: "Path", sort: "path", value: (one) => one.path, width: "minmax(6.5rem, 1fr)", class: "path", cell: (one) => html`<span title=${one.path}>${one.repeated && html`<span class="badge" title="The same call again and again">N+1</span> `}${one.path}${one.called && ` ${one.called}`}</span>` },
  { label: "Calls", sort: "calls", down: true, value: (one) => one.calls, width: "4.4rem", roomy: 410, n: true, cell: (one) => (one.calls ? count(one.calls) : "") },
  { label: "Status", sort: "status", down: true, value: (one) => String(statusOf(one)), width: "4.7rem", n: true, cell: (one) => html`<span class=${toneOf(statusOf(one))}>${statusOf(one)}</span>` },
  { label: "Took", sort: "took", down: true, value: (one) => one.duration, width: "5rem", n: true, cell: (one) => milliseconds(one.duration) },
];
const took = (label, sort) => ({ label, sort, down: true, value: (one) => one[sort], width: "5.2rem", n: true, cell: (one) => (one[sort] === null ? "" : milliseconds(one[sort])) });
const ROUTES = [
  { label: "Method", sort: "method", value: (one) => one.method, width: "4.9rem", class: "verb", roomy: 430, cell: (one) => one.method },
  { label: "Route", sort: "route", value: (one) => one.route, width: "minmax(7rem, 1fr)", class: "path", cell: (one) => html`<span title=${one.route}>${one.route}</span>` },
  { label: "Requests", sort: "all", down: true, value: (one) => one.all, width: "6rem", n: true, roomy: 520, cell: (one) => count(one.all) },
  { label: "Failed", sort: "failed", down: true, value: (one) => one.failed, width: "5.2rem", n: true, roomy: 600, cell: (one) => html`<span class=${one.failed ? "bad" : ""}>${count(one.failed)}</span>` },
  took("p50", "p50"), took("p95", "p95"), { ...took("p99", "p99"), roomy: 620 }, { ...took("Slowest", "most"), roomy: 480 },
];

// What some of the durations stay within, each a duration that was measured.
function times(requests) {
  const taken = requests.filter((one) => one.kind === "request" && one.method !== "WS" && one.duration !== null).map((one) => one.duration).sort((one, other) => one - other);
  const within = (percent) => taken[Math.ceil((percent / 100) * taken.length) - 1] ?? null;
  return { number: taken.length, p50: within(50), p95: within(95), p99: within(99), most: within(100) };
}

function byRoute(requests) {
  const groups = new Map();
  for (const one of requests) {
    if (one.kind !== "request") continue;
    const id = `${one.method} ${routeOf(one)}`;
    if (!groups.has(id)) groups.set(id, []);
    groups.get(id).push(one);
  }
  return [...groups].map(([id, group]) => ({
    id, method: group[0].method, route: routeOf(group[0]), all: group.length, failed: group.filter((one) => toneOf(statusOf(one)) === "bad").length, ...times(group),
  }));
}

// `status:5`, `method:post`, `route:/users/:id`, `slower:100` (milliseconds), `n+1` and `kind:queue` look at one thing
// only; other words are looked for in method, path, route and status.
function fits(one, words) {
  return words.every((word) => {
    const [, what, text] = /^(status|method|kind|path|route|slower):(.*)$/.exec(word) || [];
    if (what === "status") return String(statusOf(one)).startsWith(text);
    if (what === "route") return routeOf(one).toLowerCase() === text;
    if (what === "slower") return one.duration !== null && one.duration >= Number(text);
    if (what) return String(one[what]).toLowerCase().includes(text);
    if (word === "n+1") return one.repeated;
    return `${one.method} ${one.path} ${one.route ?? ""} ${one.called} ${statusOf(one)}`.toLowerCase().includes(word);
  });
}

const wordsOf = (filter) => filter.split(/\s+/).filter(Boolean);
// The filter with `what:value` in place of what it said of that; the word that it says now.
const saying = (filter, what, value) => [...wordsOf(filter).filter((word) => !word.startsWith(`${what}:`)), ...(value ? [`${what}:${value}`] : [])].join(" ");
const said = (filter, what) => wordsOf(filter).find((word) => word.startsWith(`${what}:`))?.slice(what.length + 1) ?? "";

export function RequestsPanel({ parts }) {
  const { order } = useStore();
  const [filter, setFilter] = useDraft("requests");
  const [view, setView] = useDraft("requests view");
  const [sort, setSort] = useState({ by: "", down: true }), [routeSort, setRouteSort] = useState({ by: "p95", down: true });
  const rows = useMemo(() => {
    const words = wordsOf(filter.toLowerCase());
    return words.length ? order.filter((one) => fits(one, words)) : order;
  }, [order, filter]);
  const sorted = useMemo(() => inOrder(rows, COLUMNS, sort), [rows, sort]);
  const taken = useMemo(() => times(rows), [rows]), grouped = view === "route";
  const groups = useMemo(() => (grouped ? inOrder(byRoute(rows), ROUTES, routeSort) : []), [grouped, rows, routeSort]);
  const routes = useMemo(() => [...new Set(order.map(routeOf))].sort(), [order]);
  const source = local(grouped ? groups : sorted), chosen = parts[0], open = store.exchanges.get(chosen);
  const clear = act(async () => {
    if (!(await ask("Forget all requests?", [], "Forget"))) return;
    await call("/exchanges", { method: "DELETE" });
    forget();
    go("requests");
  });
  const choose = (what) => (event) => setFilter(saying(filter, what, event.target.value));
  const option = (value, label, current) => html`<option value=${value} selected=${value === current}>${label}</option>`;
  const status = said(filter, "status"), route = said(filter, "route");
  const list = html`
    <form class="bar" role="search" onSubmit=${(event) => event.preventDefault()}>
      <${Field} label="Filter (press /)" wide><input type="search" value=${filter} placeholder="words, method:post, n+1" onInput=${(event) => setFilter(event.target.value)} /><//>
      <${Field} label="Status"><select onChange=${choose("status")}>${option("", "any", status)}${["2xx", "3xx", "4xx", "5xx"].map((one) => option(one[0], one, status))}${option("failed", "failed", status)}
        ${status && !["2", "3", "4", "5", "failed"].includes(status) ? option(status, status, status) : null}</select><//>
      <${Field} label="Route"><select class="routes" onChange=${choose("route")}>${option("", "any", route)}${(routes.includes(route) || !route ? routes : [...routes, route]).map((one) => option(one, one, route))}</select><//>
      <${Field} label="At least (ms)"><input type="number" min="0" class="brief" value=${said(filter, "slower")} onInput=${choose("slower")} /><//>
      ${store.read && html`<${Total} source=${source} what=${grouped ? "route" : "request"} />`}</form>
    ${taken.number ? html`<p class="facts times" aria-label="Durations"><span>p50 <strong>${milliseconds(taken.p50)}</strong></span><span>p95 <strong>${milliseconds(taken.p95)}</strong></span><span>p99 <strong>${milliseconds(taken.p99)}</strong></span>
      <span>slowest <strong>${milliseconds(taken.most)}</strong></span>${taken.number === rows.length ? null : html`<span>of ${count(taken.number)} answered</span>`}</p>` : null}
    ${grouped ? html`<${Grid} key="routes" label="Requests by route" columns=${ROUTES} source=${source} id=${(one) => one.id} sort=${routeSort} onSort=${setRouteSort}
      open=${(one) => { setFilter(saying(saying(filter, "method", one.method.toLowerCase()), "route", one.route)); setView(""); setSort({ by: "took", down: true }); }}
      empty=${html`<${Empty} title="No request is like that">Try fewer words, or clear the filter.<//>`} />`
      : html`<${Grid} key="requests" label="Requests" columns=${COLUMNS} source=${source} id=${(one) => one.key} open=${(one) => go("requests", one.key)} opened=${chosen} sort=${sort} onSort=${setSort}
      empty=${!store.read ? html`<${Loading} />` : order.length ? html`<${Empty} title="No request is like that">Try fewer words, or clear the filter.<//>`
        : html`<${Empty} title="Nothing yet">Send a request to this server, and it shows up here as it happens.<//>`} />`}`;
  return html`<${Head} title="Requests"><button type="button" aria-pressed=${grouped ? "true" : "false"} onClick=${() => setView(grouped ? "" : "route")}>By route</button>
      <button type="button" disabled=${!order.length} onClick=${clear}>Clear</button><//>
    <${Split} open=${chosen} title=${open ? `${open.method} ${open.path}` : "Request"} close=${() => go("requests")} list=${list}>
      <${Exchange} id=${chosen} part=${parts[1]} duration=${open?.duration} calls=${open?.calls} /><//>`;
}
