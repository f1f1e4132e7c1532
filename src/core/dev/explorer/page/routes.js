// The panel "Routes": every route, what runs before it, and who may ask.
import { html, store, useDraft } from "./core.js";
import { Grid, local } from "./grid.js";
import { Empty, Field, Head } from "./parts.js";

const COLUMNS = [
  { label: "Method", width: "5rem", class: "verb", cell: (one) => one.method },
  { label: "Path", width: "minmax(8rem, 2fr)", class: "path", cell: (one) => html`<span title=${one.path}>${one.path}</span>` },
  { label: "Handler", roomy: 480, width: "minmax(6rem, 1fr)", cell: (one) => html`<span title=${one.handler}>${one.handler}</span>` },
  { label: "Runs before it", width: "minmax(8rem, 2fr)", roomy: 620, cell: (one) => html`<span title=${one.middleware.join(" → ")}>${one.middleware.join(" → ") || "nothing"}</span>` },
  { label: "Who", width: "minmax(6rem, 11rem)", cell: (one) => (one.authenticated ? "behind an authenticator" : one.public ? "public" : "everyone") },
];

export function RoutesPanel() {
  const [filter, setFilter] = useDraft("routes");
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = store.overview.routes.filter((one) => words.every((word) => `${one.method} ${one.path} ${one.handler}`.toLowerCase().includes(word)));
  return html`<${Head} title="Routes" note=${`${store.overview.routes.length} routes, in the order in which they are tried`} />
    <form class="bar" role="search" onSubmit=${(event) => event.preventDefault()}>
      <${Field} label="Filter (press /)" wide><input type="search" value=${filter} onInput=${(event) => setFilter(event.target.value)} /><//></form>
    <${Grid} label="Routes" columns=${COLUMNS} source=${local(rows)} id=${(one) => `${one.method} ${one.path}`}
      empty=${html`<${Empty} title=${words.length ? "No route is like that" : "No routes yet"}>A route is a function with @app.get("/path") above it.<//>`} />`;
}
