// The panel "Configuration": what `core check` finds, the bindings, and the file with the lines that are meant.
import { call, html, link, store, useLoaded } from "./core.js";
import { Grid, local } from "./grid.js";
import { Empty, Head, Loading, Problem } from "./parts.js";

const PANELS = { kv: "kv", d1: "sql", r2: "objects", queue: "queues", durable_object: "durable-objects" };
const COLUMNS = [
  { label: "Name", width: "minmax(7rem, 1fr)", class: "mono", cell: (one) => (PANELS[one.kind] && !one.absent && one.kind !== "queue" ? html`<a href=${link(PANELS[one.kind], one.name)}>${one.name}</a>` : one.name) },
  { label: "Kind", width: "8rem", cell: (one) => one.kind.replaceAll("_", " ") },
  { label: "Declared at", width: "minmax(8rem, 1fr)", roomy: 480, class: "mono", cell: (one) => one.place },
  { label: "Here", width: "minmax(7rem, 2fr)", roomy: 600, cell: (one) => (one.absent ? html`<span class="warn" title=${one.absent}>${one.absent}</span>` : ["secret", "var"].includes(one.kind) ? "" : "embedded") },
];

export function ConfigurationPanel() {
  const [found, error] = useLoaded(() => call("/configuration"), []);
  if (error) return html`<${Head} title="Configuration" /><${Problem} error=${error} />`;
  if (!found) return html`<${Head} title="Configuration" /><${Loading} />`;
  const { bindings } = store.overview, name = found.file.split(/[\\/]/).pop();
  const marked = new Set(found.findings.map((text) => RegExp(`^${name.replaceAll(".", "\\.")}:(\\d+)`).exec(text)?.[1]).filter(Boolean).map(Number));
  return html`<${Head} title="Configuration" note=${found.file} />
    <section><h3>What core check finds</h3>
      ${found.findings.length ? html`<ul class="findings">${found.findings.map((text) => html`<li class=${/: error:|^error/.test(text) ? "bad" : "warn"}>${text}</li>`)}</ul>` : html`<p class="ok">Nothing: Env and configuration agree.</p>`}
      ${found.unchecked.length ? html`<h4>Read, and not checked</h4><ul class="findings">${found.unchecked.map((one) => html`<li><code>${one.key}</code> ${one.reason}</li>`)}</ul>` : null}</section>
    <section class="timeline" style=${{ "--grid-height": `${Math.min(Math.max(bindings.length, 2) + 1, 10) * 32 + 10}px`, flex: "none" }}>
      <${Grid} label="Bindings" columns=${COLUMNS} source=${local(bindings)} id=${(one) => one.name} empty=${html`<${Empty} title="No bindings">They are declared in ${name}.<//>`} /></section>
    <section><h3>${name}</h3><pre class="source" tabindex="0" aria-label=${name}>${found.text.replace(/\n$/, "").split("\n").map((line, index) => html`<span class=${marked.has(index + 1) ? "marked" : ""}>${line}</span>`)}</pre></section>`;
}
