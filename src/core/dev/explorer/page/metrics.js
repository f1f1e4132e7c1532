// The panel "Metrics": what `core serve --metrics` counts, since the application was loaded.
import { act, call, copy, count, html, milliseconds, send, some, useLoaded, useStore } from "./core.js";
import { Grid, local } from "./grid.js";
import { Empty, Head, Loading, Problem } from "./parts.js";
import { useEffect } from "./vendor.js";

const LOOK_EVERY = 2000;
const number = (label, cell, more) => ({ label, cell, n: true, width: "5.2rem", ...more });
const text = (label, cell, more) => ({ label, cell: (one) => html`<span title=${cell(one)}>${cell(one)}</span>`, width: "minmax(6rem, 1fr)", ...more });
const counted = (label, get, level = "bad") => number(label, (one) => html`<span class=${get(one) ? level : ""}>${count(get(one))}</span>`, { roomy: 330 });
const within = (seconds) => (seconds === null ? "> 10 s" : `≤ ${seconds < 1 ? `${count(1000 * seconds)} ms` : `${count(seconds)} s`}`);
const TIMES = [
  number("Mean", (one) => milliseconds(1000 * one.mean), { roomy: 520 }),
  number("p50", (one) => within(one.p50), { roomy: 620, width: "6rem" }),
  number("p95", (one) => within(one.p95), { roomy: 420, width: "6rem" }),
];
const ROUTES = [
  { label: "Method", width: "5rem", class: "verb", cell: (one) => one.method },
  text("Route", (one) => one.route, { class: "path", width: "minmax(8rem, 2fr)" }),
  number("Requests", (one) => count(one.value), { width: "6rem" }),
  counted("4xx", (one) => one.refused, "warn"), counted("5xx", (one) => one.failed), ...TIMES,
];
const BINDINGS = [
  text("Binding", (one) => one.binding, { class: "mono" }), text("Methods", (one) => one.methods, { roomy: 700, width: "minmax(6rem, 2fr)" }),
  number("Calls", (one) => count(one.value), { width: "6rem" }), counted("Failed", (one) => one.failed), ...TIMES,
];
const QUEUES = [
  text("Queue", (one) => one.queue, { class: "mono" }), number("Waiting", (one) => count(one.value)),
  number("Oldest", (one) => (one.value ? milliseconds(1000 * one.age) : ""), { roomy: 420 }), number("Batches", (one) => count(one.batches), { roomy: 520 }),
  counted("Failed", (one) => one.failed), counted("Dead", (one) => one.dead),
];

const total = (rows, takes = () => true) => rows.filter(takes).reduce((sum, one) => sum + one.value, 0);
const by = (rows, ...labels) => (one) => rows.filter((other) => labels.every((label) => other[label] === one[label]));

export function MetricsPanel() {
  const { order } = useStore();
  const [numbers, error, again] = useLoaded(() => call("/metrics"), []);
  useEffect(() => {
    const timer = setInterval(() => { if (!document.hidden) again(); }, LOOK_EVERY);
    return () => clearInterval(timer);
  }, []);
  useEffect(again, [order.length, order[0]?.duration]);
  const take = act(async () => copy(await (await send("/metrics/text")).text(), "the metrics"));
  const head = html`<${Head} title="Metrics" note="Since the application was loaded"><button type="button" onClick=${take}>Copy as OpenMetrics</button><//>`;
  if (!numbers) return html`${head}${error ? html`<${Problem} error=${error} />` : html`<${Loading} />`}`;
  const statuses = by(numbers.core_http_requests, "method", "route"), calls = by(numbers.core_binding_calls, "binding", "kind");
  const batches = by(numbers.core_queue_batches, "queue"), ages = by(numbers.core_queue_oldest_message_age_seconds, "queue"), dead = by(numbers.core_queue_dead_letters, "queue");
  const routes = numbers.core_http_request_duration_seconds.map((one) => ({
    ...one, refused: total(statuses(one), (other) => /^4/.test(other.status)), failed: total(statuses(one), (other) => /^5/.test(other.status)),
  }));
  const bindings = numbers.core_binding_call_duration_seconds.map((one) => ({
    ...one, failed: total(calls(one), (other) => other.outcome === "error"), methods: [...new Set(calls(one).map((other) => other.method))].join(", "),
  }));
  const queues = numbers.core_queue_messages.map((one) => ({
    ...one, age: total(ages(one)), batches: total(batches(one)), failed: total(batches(one), (other) => other.outcome === "error"), dead: total(dead(one)),
  }));
  return html`${head}
    <p class="facts"><span>${some(total(routes), "request")}</span><span class=${total(routes, (one) => one.failed) ? "bad" : ""}>${some(routes.reduce((sum, one) => sum + one.failed, 0), "failure")}</span>
      <span>${some(total(bindings), "call of a binding", "calls of bindings")}</span>${total(numbers.core_websockets_open) > 0 && html`<span>${some(total(numbers.core_websockets_open), "open WebSocket")}</span>`}
      ${numbers.core_durable_objects_alive.map((one) => html`<span>${some(one.value, "object", "objects")} of ${one.class} in memory</span>`)}
      ${[...new Set(numbers.core_cron_runs.map((one) => one.cron))].map((cron) => html`<span>${some(total(numbers.core_cron_runs, (one) => one.cron === cron), "run")} of <code>${cron}</code></span>`)}</p>
    <${Part} title="Routes" columns=${ROUTES} rows=${routes} id=${(one) => `${one.method} ${one.route}`} none="No request yet" hint="What is sent to the application is counted here by its route." />
    <${Part} title="Bindings" columns=${BINDINGS} rows=${bindings} id=${(one) => one.binding} none="No call yet" hint="Calls of bindings are counted here." />
    ${queues.length > 0 && html`<${Part} title="Queues" columns=${QUEUES} rows=${queues} id=${(one) => one.queue} />`}`;
}

function Part({ title, columns, rows, id, none, hint }) {
  const sorted = [...rows].sort((a, b) => b.value - a.value || (id(a) < id(b) ? -1 : 1));
  return html`<section class="result short" aria-label=${title} style=${{ "--grid-height": `${Math.min(Math.max(rows.length, 2) + 1, 12) * 32 + 10}px` }}><h3>${title}</h3>
    <${Grid} label=${title} columns=${columns} source=${local(sorted)} id=${id} empty=${html`<${Empty} title=${none}>${hint}<//>`} /></section>`;
}
