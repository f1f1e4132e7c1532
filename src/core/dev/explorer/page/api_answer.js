// The answer to a request that was sent, beside what the document declares.
import { shape, target } from "./api_document.js";
import { pretty as prettyText, size } from "./core.js";
import { el, empty, fill, reveal } from "./dom.js";

// The last answer of each operation, kept while others are shown.
export const apiAnswers = new Map();
const API_LONGEST = 200000; // characters of an answer that are shown

// -- the answer

export async function sendRequest(request, operation, id, place) {
  const stop = new AbortController(), started = performance.now();
  const init = { method: request.method, headers: request.headers, redirect: "manual", cache: "no-store", signal: stop.signal };
  if (request.body && !["GET", "HEAD"].includes(request.method)) init.body = request.body.form || request.body.file || request.body.text;
  let response;
  try {
    response = await fetch(request.url, init);
  } catch (error) {
    throw new Error(`${request.method} ${request.url} got no answer: ${error.message}`);
  }
  const answer = { status: response.status, redirects: response.type === "opaqueredirect", took: performance.now() - started,
    headers: [...response.headers], media: response.headers.get("content-type") || "", text: "", size: 0, open: true };
  apiAnswers.set(id, answer);
  const draw = () => { if (place.isConnected) drawAnswer(place, operation, answer, () => stop.abort()); };
  draw();
  reveal(place);
  try {
    const reader = response.body?.getReader(), decoder = new TextDecoder();
    for (;;) {
      const { value, done } = reader ? await reader.read() : { done: true };
      if (done) break;
      answer.size += value.length;
      if (answer.text.length < API_LONGEST) { answer.text += decoder.decode(value, { stream: true }); draw(); }
    }
  } catch (error) {
    if (!stop.signal.aborted) answer.text += `\n… cut short: ${error.message}`;
  }
  answer.open = false;
  draw();
}

export function drawAnswer(place, operation, answer, stop) {
  const status = answer.redirects ? Object.keys(operation.responses || {}).find((one) => one.startsWith("3")) || "3XX" : String(answer.status);
  const isText = !answer.media || /^text\/|json|xml|javascript|yaml|urlencoded|event-stream/.test(answer.media);
  const tone = answer.redirects || answer.status < 400 ? "ok" : answer.status < 500 ? "warn" : "bad";
  fill(place,
    el("h3", {}, "Answer ", el("span", { class: tone, text: status }), el("span", { class: "soft", text: ` ${answer.took.toFixed(0)} ms, ${size(answer.size)}` })),
    answer.open && stop ? el("button", { type: "button", text: "Stop", onclick: stop }) : null,
    el("div", { class: "beside" },
      el("div", {}, el("h4", { text: answer.media || "No body" }),
        answer.redirects ? empty("A redirect. Browsers do not tell a page where to: see its headers with cURL.")
          : !answer.size ? null
            : isText ? el("pre", { text: pretty(answer), tabindex: "0" }) : empty(`${size(answer.size)} that are no text`),
        answer.text.length >= API_LONGEST ? empty("Only the beginning is shown.") : null),
      declared(operation, status)),
    el("details", {}, el("summary", { text: `${answer.headers.length} headers` }), el("pre", { text: answer.headers.map((pair) => pair.join(": ")).join("\n"), tabindex: "0" })));
}

function pretty(answer) {
  return !/json/.test(answer.media) || answer.open ? answer.text : prettyText(answer.text);
}

// What the document says of a status: as itself, as one of its range, or as what nobody foresaw.
export function declared(operation, status) {
  const responses = operation.responses || {};
  const key = [status, `${status[0]}XX`, ...(status >= "500" ? ["default"] : [])].find((one) => one in responses);
  if (!key) return el("div", {}, el("h4", { class: "bad", text: `The document does not declare ${status}` }));
  const response = target(responses[key]), content = Object.entries(response.content || {});
  const name = `Declared for ${key}`;
  if (!content.length) return el("div", {}, el("h4", {}, name, el("span", { class: "soft", text: ` ${response.description || ""}` })), empty("Without a body."));
  return el("div", {}, content.map(([media, one]) => [
    el("h4", {}, name, el("span", { class: "soft", text: one.itemSchema ? ` each event of ${media}` : ` ${media}` })),
    el("pre", { text: shape(one.itemSchema || one.schema), tabindex: "0" })]));
}
