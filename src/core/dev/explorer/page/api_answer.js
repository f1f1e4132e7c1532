// The answer to a request that was sent, beside what the document declares.
import { shape, target } from "./api_document.js";
import { changed, html, pretty, size } from "./core.js";

// The last answer of each operation, kept while others are shown.
export const apiAnswers = new Map();
const API_LONGEST = 200000; // characters of an answer that are shown

export async function sendRequest(request, id) {
  const stop = new AbortController(), started = performance.now();
  const init = { method: request.method, headers: request.headers, redirect: "manual", cache: "no-store", signal: stop.signal };
  if (request.body && !["GET", "HEAD"].includes(request.method)) init.body = request.body.form || request.body.file || request.body.text;
  let response;
  try {
    response = await fetch(request.url, init);
  } catch (error) {
    throw new Error(`${request.method} ${request.url} got no answer: ${error.message}`);
  }
  const answer = { status: response.status, redirects: response.type === "opaqueredirect", took: performance.now() - started, headers: [...response.headers],
    media: response.headers.get("content-type") || "", text: "", size: 0, open: true, stop: () => stop.abort() };
  apiAnswers.set(id, answer);
  changed();
  try {
    const reader = response.body?.getReader(), decoder = new TextDecoder();
    for (;;) {
      const { value, done } = reader ? await reader.read() : { done: true };
      if (done) break;
      answer.size += value.length;
      if (answer.text.length < API_LONGEST) { answer.text += decoder.decode(value, { stream: true }); changed(); }
    }
  } catch (error) {
    if (!stop.signal.aborted) answer.text += `\n… cut short: ${error.message}`;
  }
  answer.open = false;
  changed();
}

export function Answer({ operation, answer }) {
  const status = answer.redirects ? Object.keys(operation.responses || {}).find((one) => one.startsWith("3")) || "3XX" : String(answer.status);
  const isText = !answer.media || /^text\/|json|xml|javascript|yaml|urlencoded|event-stream/.test(answer.media);
  const tone = answer.redirects || answer.status < 400 ? "ok" : answer.status < 500 ? "warn" : "bad";
  const text = !/json/.test(answer.media) || answer.open ? answer.text : pretty(answer.text);
  return html`<h3>Answer <span class=${tone}>${status}</span><span class="soft"> ${answer.took.toFixed(0)} ms, ${size(answer.size)}</span></h3>
    ${answer.open && html`<button type="button" onClick=${answer.stop}>Stop</button>`}
    <div class="beside"><div><h4>${answer.media || "No body"}</h4>
        ${answer.redirects ? html`<p class="none">A redirect. Browsers do not tell a page where to: see its headers with cURL.</p>`
          : !answer.size ? null : isText ? html`<pre tabindex="0">${text}</pre>` : html`<p class="none">${size(answer.size)} that are no text</p>`}
        ${answer.text.length >= API_LONGEST && html`<p class="none">Only the beginning is shown.</p>`}</div>
      <${Declared} operation=${operation} status=${status} /></div>
    <details><summary>${answer.headers.length} headers</summary><pre tabindex="0">${answer.headers.map((pair) => pair.join(": ")).join("\n")}</pre></details>`;
}

// What the document says of a status: as itself, as one of its range, or as what nobody foresaw.
export function Declared({ operation, status }) {
  const responses = operation.responses || {};
  const key = [status, `${status[0]}XX`, ...(status >= "500" ? ["default"] : [])].find((one) => one in responses);
  if (!key) return html`<div><h4 class="bad">The document does not declare ${status}</h4></div>`;
  const response = target(responses[key]), content = Object.entries(response.content || {});
  if (!content.length) return html`<div><h4>Declared for ${key}<span class="soft"> ${response.description}</span></h4><p class="none">Without a body.</p></div>`;
  return html`<div>${content.map(([media, one]) => html`<h4>Declared for ${key}<span class="soft"> ${one.itemSchema ? "each event of " : ""}${media}</span></h4>
    <pre tabindex="0">${shape(one.itemSchema || one.schema)}</pre>`)}</div>`;
}
