// The panel "Schedules": when the next one is, how the last one went, and running it now.
import { act, call, clock, html, link, milliseconds, moment, say, until, useLoaded, useStore } from "./core.js";
import { Empty, Head, Loading, Problem } from "./parts.js";
import { useState } from "./vendor.js";

export function TriggersPanel() {
  const { order } = useStore();
  const [crons, error] = useLoaded(() => call("/cron"), []);
  const [running, setRunning] = useState(null);
  const run = (cron) => act(async () => {
    setRunning(cron);
    try {
      const exchange = await call("/cron/run", { method: "POST", body: { cron } });
      say(exchange.outcome === "ok" ? `Ran in ${milliseconds(exchange.duration)}` : exchange.outcome, exchange.outcome !== "ok");
    } finally { setRunning(null); }
  });
  return html`<${Head} title="Schedules" note="Times of cron expressions are in UTC." />
    ${error ? html`<${Problem} error=${error} />` : !crons ? html`<${Loading} />` : !crons.length ? html`<${Empty} title="No schedules">Write a cron expression into the configuration, under triggers.<//>`
      : html`<div class="cards">${crons.map((one) => {
        const runs = order.filter((exchange) => exchange.kind === "cron" && exchange.path === one.cron).slice(0, 5);
        return html`<section class="card" aria-label=${one.cron}><code>${one.cron}</code>
          <span>${one.next ? html`next <time title=${moment(one.next)}>${until(one.next)}</time>, ${moment(one.next)}` : ""}</span>
          <div class="actions"><button type="button" aria-label=${`Run now: ${one.cron}`} disabled=${!one.handled || running !== null} onClick=${run(one.cron)}>${running === one.cron ? "Running …" : "Run now"}</button></div>
          <p>${!one.handled ? html`<span class="warn">Nothing handles it: write @app.scheduled("${one.cron}") above a function.</span>`
            : runs.length ? html`Last: ${runs.map((exchange) => html`<a class=${exchange.failed ? "bad" : "ok"} href=${link("requests", exchange.key)}>${clock(exchange.time)} ${exchange.failed ? "failed" : "ok"}</a> `)}` : "It has not run since the server was started."}</p></section>`;
      })}</div>`}`;
}
