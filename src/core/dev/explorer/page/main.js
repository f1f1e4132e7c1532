// The frame around the panels: which there are, which is shown, and the keys that lead to them.
import { ApiPanel } from "./api.js";
import { arrive, changed, here, html, link, store, useStore } from "./core.js";
import { ConfigurationPanel } from "./configuration.js";
import { DurablePanel } from "./durable.js";
import { KVPanel } from "./kv.js";
import { follow } from "./live.js";
import { MetricsPanel } from "./metrics.js";
import { ObjectsPanel } from "./objects.js";
import { Failure, Problem, Question } from "./parts.js";
import { QueuesPanel } from "./queues.js";
import { RequestsPanel } from "./requests.js";
import { RoutesPanel } from "./routes.js";
import { SQLPanel } from "./sql.js";
import { TriggersPanel } from "./triggers.js";
import { render, useEffect, useReducer, useRef } from "./vendor.js";

const PANELS = {
  requests: ["Requests", RequestsPanel],
  routes: ["Routes", RoutesPanel],
  api: ["API", ApiPanel],
  kv: ["Key-value", KVPanel],
  sql: ["SQL", SQLPanel],
  objects: ["Objects", ObjectsPanel],
  queues: ["Queues", QueuesPanel],
  triggers: ["Schedules", TriggersPanel],
  "durable-objects": ["Durable Objects", DurablePanel],
  configuration: ["Configuration", ConfigurationPanel],
  metrics: ["Metrics", MetricsPanel],
};
const NAMES = Object.keys(PANELS);
const KEYS = "1234567890m";

function Explorer() {
  const { overview, live, notice } = useStore();
  const [, moved] = useReducer((count) => count + 1, 0);
  const panel = useRef(null), shown = useRef(null);
  const { panel: given, parts } = here();
  const name = given in PANELS ? given : "requests";
  const [title, Panel] = PANELS[name];
  useEffect(() => {
    const arrived = async () => { if (await arrive()) moved(); };
    window.addEventListener("hashchange", arrived);
    document.addEventListener("keydown", keys);
    return () => { window.removeEventListener("hashchange", arrived); document.removeEventListener("keydown", keys); };
  }, []);
  useEffect(() => {
    // Not at first: whoever has just come has chosen nothing yet.
    if (shown.current !== null && shown.current !== name) { panel.current.focus(); panel.current.scrollTo?.(0, 0); }
    shown.current = name;
    document.querySelector('nav.panels [aria-current="page"]')?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [name]);
  useEffect(() => { document.title = `${title} – ${overview?.name || "core"}`; }, [title, overview?.name]);
  const failed = overview?.failed;
  return html`
    <a class="skip" href="#panel" onClick=${(event) => { event.preventDefault(); panel.current.focus(); }}>Skip to the panel</a>
    <header class="top"><h1><svg viewBox="0 0 32 32" aria-hidden="true"><path d="M23.6 8.2a9.4 9.4 0 1 0 0 10.6" /><path class="wave" d="m4.5 28.6 3.3-2.7 3.9 2.7 3.9-2.7 3.9 2.7 3.9-2.7 3.9 2.7" /></svg><span id="title">${overview?.name || "core"}</span></h1>
      <p id="where">${failed ? html`<span class="bad">not loaded</span>` : overview?.environment ? `environment ${overview.environment}` : "core dev"}</p>
      <p id="live" class=${live === "live" ? "on" : ""} role="status">${live}</p></header>
    <nav class="panels" aria-label="Panels"><ul>${NAMES.map((one, index) => html`
      <li><a href=${link(one)} aria-current=${one === name ? "page" : null} title=${`Key ${KEYS[index]}`}>${PANELS[one][0]}<kbd aria-hidden="true">${KEYS[index]}</kbd></a></li>`)}</ul></nav>
    <main id="panel" ref=${panel} tabindex="-1" aria-labelledby="panel-title" class=${`panel-${name}`}>
      ${failed && html`<${Failure} one=${failed} />`}
      ${overview ? html`<${Panel} key=${name} parts=${parts} />` : live === "connecting" ? null : html`<${Problem} error=${live} />`}
    </main>
    <p id="notice" class=${notice?.bad ? "bad" : ""} role="status" aria-live="polite">${notice?.text}</p>
    <${Question} />`;
}

function keys(event) {
  if (event.altKey || event.ctrlKey || event.metaKey || event.defaultPrevented || store.asking) return;
  const writing = event.composedPath().some((one) => one.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(one.tagName || "") && one.type !== "checkbox");
  if (writing) return;
  if (event.key === "/") {
    const search = document.querySelector('main input[type="search"]');
    if (search) { event.preventDefault(); search.focus(); }
    return;
  }
  const name = event.key.length === 1 ? NAMES[KEYS.indexOf(event.key)] : undefined;
  if (!name) return;
  if (here().panel === name) document.getElementById("panel").focus();
  else location.hash = link(name);
}

render(html`<${Explorer} />`, document.getElementById("app"));
follow().catch((error) => { store.live = error.message; changed(); });
