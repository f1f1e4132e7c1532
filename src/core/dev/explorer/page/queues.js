// The panel "Queues": what waits, what failed and why, and delivering it again.
import { act, ask, at, call, go, html, link, moment, say, size, some, until, useDraft, useLoaded } from "./core.js";
import { Editor } from "./editor.js";
import { Grid, Search, useListing } from "./grid.js";
import { Empty, Field, Head, Loading, Problem, Split, Value } from "./parts.js";
import { useEffect, useReducer, useRef, useState } from "./vendor.js";

const LOOK_EVERY = 2000;
const COLUMNS = [
  { label: "Body", sort: "body", width: "minmax(9rem, 3fr)", class: "mono", cell: (one) => one.body.text ?? html`<span class="null">${size(one.size)} of bytes</span>` },
  { label: "Failed because", width: "minmax(7rem, 2fr)", roomy: 480, cell: (one) => html`<span class="bad" title=${one.error}>${one.error || ""}</span>` },
  { label: "Attempts", sort: "attempts", width: "5.8rem", n: true, roomy: 380, cell: (one) => one.attempts },
  { label: "Sent", sort: "sent", width: "6.5rem", roomy: 300, cell: (one) => html`<span title=${moment(one.sent)}>${until(one.sent)}</span>` },
];

export function QueuesPanel({ parts }) {
  const [queues, error, again] = useLoaded(() => call("/queues"), []);
  const [turn, look] = useReducer((count) => count + 1, 0), first = useRef(null);
  useEffect(() => {
    const timer = setInterval(() => { if (!document.hidden) { again(); look(); } }, LOOK_EVERY);
    return () => clearInterval(timer);
  }, []);
  if (error && !queues) return html`<${Head} title="Queues" /><${Problem} error=${error} />`;
  if (!queues) return html`<${Head} title="Queues" /><${Loading} />`;
  if (!queues.length) return html`<${Head} title="Queues" /><${Empty} title="No queues">Write one into the configuration, under queues.<//>`;
  // What failed for good is what somebody comes for.
  first.current ??= (queues.find((one) => one.deadLettersOf.length && one.waiting) || queues.find((one) => one.consumed) || queues[0]).name;
  const queue = queues.find((one) => one.name === (parts[0] || first.current)) || queues[0];
  return html`<${Head} title="Queues" />
    <nav class="choice" aria-label="Queues">${queues.map((one) => html`<a href=${link("queues", one.name)} aria-current=${one === queue ? "true" : null}>${one.name} <span class="n">${one.waiting}</span></a>`)}</nav>
    <${Queue} key=${queue.name} queue=${queue} chosen=${parts[1]} turn=${turn} look=${() => { again(); look(); }} />`;
}

function Queue({ queue, chosen, turn, look }) {
  const listing = useListing({ path: `/queues/${at(queue.name)}`, draft: `queue ${queue.name} search`, by: "", turn });
  const { search, source, marked, setMarked, grid } = listing;
  const letters = queue.deadLettersOf.length > 0, target = queue.deadLettersOf[0] || queue.name;
  const change = (verb, done) => act(async () => {
    const number = marked.size || source.total;
    if (!marked.size || verb === "delete") {
      const words = verb === "delete" ? `Delete ${some(number, "message")}?` : `Send ${some(number, "message")} to ${target}?`;
      if (!(await ask(words, [], verb === "delete" ? "Delete" : "Redeliver"))) return;
    }
    const found = await call(`/queues/${at(queue.name)}/${verb}`, { method: "POST", body: { seqs: marked.size ? [...marked] : null, search, to: verb === "delete" ? null : target } });
    say(`${done} ${some(found.redelivered ?? found.deleted, "message")}`);
    setMarked(new Set());
    look();
  });
  const list = html`
    <p class="note">${letters ? `Dead letters of ${queue.deadLettersOf.join(", ")}: what failed too often.` : queue.consumed ? "Consumed by this application." : "Nothing consumes this queue here."}</p>
    <${Search} label="Messages with (press /)" what="message" listing=${listing}>
      <button type="button" onClick=${() => go("queues", queue.name, "send")}>New message</button>
      <button type="button" disabled=${!source.total || source.searching || source.stopped} onClick=${change("redeliver", "Redelivered")}>Redeliver ${marked.size || "all"}</button>
      <button type="button" class="danger" disabled=${!source.total || source.searching || source.stopped} onClick=${change("delete", "Deleted")}>Delete ${marked.size || "all"}</button><//>
    <${Grid} label="Messages" columns=${COLUMNS} ...${grid} id=${(one) => one.seq} opened=${Number(chosen)} open=${(one) => go("queues", queue.name, String(one.seq))}
      empty=${html`<${Empty} title="No message waits here">${letters ? "Nothing has failed too often." : "What is sent is delivered at once, or when its time has come."}<//>`} />`;
  const found = chosen && chosen !== "send" ? rowOf(source, Number(chosen)) : null;
  return html`<${Split} open=${chosen !== undefined} title=${chosen === "send" ? "New message" : "Message"} close=${() => go("queues", queue.name)} list=${list}>
    ${chosen === "send" ? html`<${Send} queue=${queue} sent=${look} />` : found ? html`<${Message} one=${found} />` : source.total === null ? html`<${Loading} />`
      : html`<${Empty} title="Not here any more">It was delivered, moved or deleted.<//>`}<//>`;
}

function rowOf(source, seq) {
  for (let index = 0; index < Math.min(source.total || 0, 100000); index += 1) {
    const row = source.row(index);
    if (row?.seq === seq) return row;
  }
  return null;
}

function Message({ one }) {
  return html`<p class="facts"><span>${one.type}, ${size(one.size)}</span><span>${some(one.attempts, "failed attempt")}</span><span>sent ${moment(one.sent)}</span>
      ${one.due * 1000 > Date.now() && html`<span>due ${until(one.due)}</span>`}<span>id <code>${one.id}</code></span></p>
    ${one.error && html`<div class="problem"><strong>${one.error}</strong><p><a href=${link("requests", one.exchange)}>The batch in which it failed</a></p></div>`}
    <h4>Body</h4><${Value} value=${{ size: one.size, ...one.body }} type=${one.type} label="Body" />`;
}

function Send({ queue, sent }) {
  const [text, setText] = useDraft(`queue ${queue.name}`, "{}");
  const [kind, setKind] = useDraft(`queue ${queue.name} kind`, "json"), [delay, setDelay] = useState("");
  const send = act(async () => {
    let body = text;
    if (kind !== "text") try { body = JSON.parse(text); } catch (error) { throw new Error(`The message is not JSON: ${error.message}`); }
    await call(`/queues/${at(queue.name)}/send`, { method: "POST", body: { body, content_type: kind, delay_seconds: delay ? Number(delay) : null } });
    say(`Sent to ${queue.name}`);
    setTimeout(sent, 300);
  });
  return html`<form class="stack" onSubmit=${send}>
    <div><h4>Message</h4><${Editor} value=${text} change=${setText} language=${kind === "text" ? "text" : "json"} label="Message" least="6rem" run=${send} /></div>
    <div class="bar"><${Field} label="Type"><select value=${kind} onChange=${(event) => setKind(event.target.value)}><option value="json">json</option><option value="text">text</option><option value="v8">v8</option></select><//>
      <${Field} label="Delay (seconds)"><input type="number" min="0" max="86400" value=${delay} onInput=${(event) => setDelay(event.target.value)} /><//></div>
    <div class="actions"><button class="first">Send</button></div></form>`;
}
