// The panel "Requests": a list that grows while one looks at it, and beside it the request that is open.
import { act, ask, call, clock, go, html, milliseconds, store, useDraft, useStore } from "./core.js";
import { Grid, local, Total } from "./grid.js";
import { forget } from "./live.js";
import { Empty, Field, Head, Split } from "./parts.js";
import { Exchange } from "./request.js";
import { useMemo } from "./vendor.js";

export const statusOf = (one) => one.status ?? (one.duration === null ? "…" : one.kind === "request" ? "gone" : one.outcome === "ok" ? "ok" : "failed");
export const toneOf = (status) => (status === "…" ? "" : status === "ok" || (status >= 100 && status < 400) ? "ok" : status >= 400 && status < 500 ? "warn" : "bad");

const COLUMNS = [
  { label: "Time", width: "5.8rem", roomy: 520, class: "time", cell: (one) => clock(one.time) },
  { label: "Method", width: "5rem", class: "verb", cell: (one) => one.method },
  { label: "Path", width: "minmax(7rem, 1fr)", class: "path", cell: (one) => html`<span title=${one.path}>${one.path}${one.called && ` ${one.called}`}</span>` },
  { label: "Calls", width: "5.2rem", roomy: 340, n: true, cell: (one) => html`${one.repeated && html`<span class="badge" title="The same call again and again">N+1</span> `}${one.calls || ""}` },
  { label: "Status", width: "4.8rem", n: true, cell: (one) => html`<span class=${toneOf(statusOf(one))}>${statusOf(one)}</span>` },
  { label: "Took", width: "5.2rem", roomy: 430, n: true, cell: (one) => milliseconds(one.duration) },
];

// `status:5`, `method:post`, `n+1` and `kind:queue` look at one thing only; other words are looked for in method, path, status.
function fits(one, words) {
  return words.every((word) => {
    const [, what, text] = /^(status|method|kind|path):(.*)$/.exec(word) || [];
    if (what === "status") return String(statusOf(one)).startsWith(text);
    if (what) return String(one[what]).toLowerCase().includes(text);
    if (word === "n+1") return one.repeated;
    return `${one.method} ${one.path} ${one.called} ${statusOf(one)}`.toLowerCase().includes(word);
  });
}

export function RequestsPanel({ parts }) {
  const { order } = useStore();
  const [filter, setFilter] = useDraft("requests");
  const rows = useMemo(() => {
    const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
    return words.length ? order.filter((one) => fits(one, words)) : order;
  }, [order, filter]);
  const source = local(rows), chosen = parts[0], open = store.exchanges.get(chosen);
  const clear = act(async () => {
    if (!(await ask("Forget all requests?", [], "Forget"))) return;
    await call("/exchanges", { method: "DELETE" });
    forget();
    go("requests");
  });
  const list = html`
    <form class="bar" role="search" onSubmit=${(event) => event.preventDefault()}>
      <${Field} label="Filter (press /)" wide><input type="search" value=${filter} placeholder="words, status:5, method:post, n+1" onInput=${(event) => setFilter(event.target.value)} /><//>
      <${Total} source=${source} what="request" /></form>
    <${Grid} label="Requests" columns=${COLUMNS} source=${source} id=${(one) => one.key} open=${(one) => go("requests", one.key)} opened=${chosen}
      empty=${order.length ? html`<${Empty} title="No request is like that">Try fewer words, or clear the filter.<//>`
        : html`<${Empty} title="Nothing yet">Send a request to this server, and it shows up here as it happens.<//>`} />`;
  return html`<${Head} title="Requests"><button type="button" disabled=${!order.length} onClick=${clear}>Clear</button><//>
    <${Split} open=${chosen} title=${open ? `${open.method} ${open.path}` : "Request"} close=${() => go("requests")} list=${list}>
      <${Exchange} id=${chosen} part=${parts[1]} duration=${open?.duration} calls=${open?.calls} /><//>`;
}
