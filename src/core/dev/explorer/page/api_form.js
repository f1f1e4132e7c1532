// The form of an operation: parameters, body and credentials, and the request that they make.
import { exampleOf, api, schemesOf, shape, target } from "./api_document.js";
import { at } from "./core.js";
import { draft, el, field, fill } from "./dom.js";

// The controls of a request, and `request()`, which reads them.
export function requestForm(method, path, operation, id) {
  const keyed = (key, control) => { control.dataset.key = `api ${id} ${key}`; return draft(`api ${id} ${key}`, control); };
  const parameters = (operation.parameters || []).map(target).filter((one) => one.in !== "cookie");
  const controls = parameters.map((one) => {
    const hint = shape(one.schema).replace(/\s+/g, " ");
    return keyed(`${one.in} ${one.name}`, el("input", { required: one.in === "path" || one.required, placeholder: "default" in (one.schema || {}) ? String(one.schema.default) : hint, title: one.description }));
  });
  const content = target(operation.requestBody || {}).content || {}, medias = Object.keys(content);
  const media = keyed("media", el("select", {}, medias.map((name) => el("option", { value: name, text: name }))));
  const bodies = new Map(medias.map((name) => [name, bodyControls(name, content[name], keyed)]));
  const places = el("div", { class: "body" });
  const choose = () => fill(places, bodies.get(media.value)?.fields || []);
  media.addEventListener("change", choose);
  choose();
  const schemes = schemesOf(operation), credentials = schemes.map(credential);
  const fields = [
    credentials.map((one) => one.fields),
    controls.map((control, index) => field(`${parameters[index].name} (${parameters[index].in})`, control)),
    medias.length > 1 ? field("Body", media) : null, places];
  const request = () => {
    const headers = {}, query = [];
    let url = path;
    controls.forEach((control, index) => {
      const { name, in: place, schema } = parameters[index];
      if (place === "path") { url = url.replace(`{${name}}`, at(control.value).replaceAll("%2F", /slashes included/.test(parameters[index].description || "") ? "/" : "%2F")); return; }
      if (!control.value) return;
      const values = target(schema).type === "array" ? control.value.split(",") : [control.value];
      if (place === "query") for (const value of values) query.push([name, value]);
      else headers[name] = control.value;
    });
    for (const one of credentials) one.add(headers, query);
    const body = bodies.get(media.value)?.read() ?? null;
    if (body?.media) headers["Content-Type"] = body.media;
    const search = query.map((pair) => pair.map(at).join("=")).join("&");
    return { method, url: search ? `${url}?${search}` : url, headers, body };
  };
  return { fields, request };
}

// The controls of one body, and how they are read: { media, text } or { form } for what the browser puts together.
function bodyControls(media, content, keyed) {
  const schema = target(content.schema), kind = media.split(";")[0];
  if (/^application\/x-www-form-urlencoded$|^multipart\/form-data$/.test(kind)) {
    const parts = (schema.allOf || [schema]).map(target), files = kind === "multipart/form-data";
    const properties = Object.assign({}, ...parts.map((part) => part.properties || {}));
    const inputs = Object.entries(properties).map(([name, part]) => {
      const isFile = files && (target(part).contentMediaType || target(part).format === "binary");
      return [name, isFile ? el("input", { type: "file" }) : keyed(`form ${name}`, el("input", { placeholder: shape(part).replace(/\s+/g, " ") }))];
    });
    const read = () => {
      const given = inputs.filter(([, input]) => (input.type === "file" ? input.files[0] : input.value));
      if (!files) return { media: kind, text: new URLSearchParams(given.map(([name, input]) => [name, input.value])).toString() };
      const form = new FormData();
      for (const [name, input] of given) form.append(name, input.type === "file" ? input.files[0] : input.value);
      return { form };
    };
    return { fields: inputs.map(([name, input]) => field(name, input)), read };
  }
  if (/^application\/octet-stream$|^(image|audio|video)\//.test(kind)) {
    const file = el("input", { type: "file" });
    return { fields: [field("File", file, true)], read: () => (file.files[0] ? { media: kind, file: file.files[0] } : null) };
  }
  const isJson = /[/+]json$/.test(kind), first = isJson ? JSON.stringify(exampleOf(content), null, 2) : "";
  const text = keyed(`body ${kind}`, el("textarea", { rows: Math.min(Math.max(first.split("\n").length, 3), 16), spellcheck: "false", text: first }));
  return { fields: [field(`Body, ${kind} (Ctrl-Enter sends it)`, text, true)], read: () => ({ media: kind, text: text.value, isJson }) };
}

// The fields of a security scheme. What is typed stays for the session of this tab, and goes nowhere else.
function credential(scheme) {
  const remembered = (part, label, type) => {
    const key = `core-api ${scheme.name} ${part}`;
    const input = el("input", { type, autocomplete: "off", "data-key": key, oninput: () => sessionStorage.setItem(key, input.value) });
    input.value = sessionStorage.getItem(key) || "";
    return [input, field(label, input)];
  };
  if (scheme.type === "apiKey" && scheme.in === "cookie") {
    return { fields: el("p", { class: "none", text: `The browser sends the cookie ${scheme.name} along, once the application has set it.` }), add: () => {} };
  }
  if (scheme.type === "http" && scheme.scheme.toLowerCase() === "basic") {
    const [name, first] = remembered("name", "User name", "text"), [password, second] = remembered("password", "Password", "password");
    const encoded = () => btoa(String.fromCharCode(...new TextEncoder().encode(`${name.value}:${password.value}`)));
    return { fields: [first, second], add: (headers) => { if (name.value || password.value) headers.Authorization = `Basic ${encoded()}`; } };
  }
  const [secret, shownField] = remembered("token", scheme.type === "apiKey" ? scheme.name : `Token (${scheme.name})`, "password");
  const add = (headers, query) => {
    if (!secret.value) return;
    const word = scheme.type === "http" ? scheme.scheme : "bearer";
    if (scheme.type !== "apiKey") headers.Authorization = `${word[0].toUpperCase()}${word.slice(1)} ${secret.value}`;
    else if (scheme.in === "query") query.push([target(scheme).name, secret.value]);
    else headers[(api.document.components.securitySchemes[scheme.name] || scheme).name] = secret.value;
  };
  return { fields: shownField, add };
}

// -- the same request elsewhere

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

export function asCurl({ method, url, headers, body }) {
  const parts = [`curl ${method === "GET" ? "" : `-X ${method} `}${quoted(location.origin + url)}`];
  for (const [name, value] of Object.entries(headers)) parts.push(`-H ${quoted(`${name}: ${value}`)}`);
  if (body?.form) for (const [name, value] of body.form) parts.push(`-F ${quoted(value instanceof File ? `${name}=@${value.name}` : `${name}=${value}`)}`);
  else if (body?.file) parts.push(`--data-binary ${quoted(`@${body.file.name}`)}`);
  else if (body?.text) parts.push(`--data-raw ${quoted(body.isJson ? compact(body.text) : body.text)}`);
  return parts.join(" \\\n  ");
}

function compact(text) {
  try { return JSON.stringify(JSON.parse(text)); } catch { return text; }
}

export function asPython({ method, url, headers, body }) {
  const given = { ...headers }, lines = [`    ${pythonOf(method)},`, `    ${pythonOf(location.origin + url)},`];
  let json;
  try { json = body?.isJson ? { value: JSON.parse(body.text) } : null; } catch { json = null; }
  if (json || body?.form) delete given["Content-Type"]; // httpx writes it
  if (Object.keys(given).length) lines.push(`    headers=${pythonOf(given)},`);
  if (json) lines.push(`    json=${pythonOf(json.value)},`);
  else if (body?.form) {
    const all = [...body.form], files = all.filter(([, value]) => value instanceof File), texts = all.filter(([, value]) => !(value instanceof File));
    if (texts.length) lines.push(`    data=${pythonOf(Object.fromEntries(texts))},`);
    if (files.length) lines.push(`    files={${files.map(([name, file]) => `${pythonOf(name)}: open(${pythonOf(file.name)}, "rb")`).join(", ")}},`);
  } else if (body?.file) lines.push(`    content=open(${pythonOf(body.file.name)}, "rb"),`);
  else if (body?.text) lines.push(`    content=${pythonOf(body.text)},`);
  return `import httpx\n\nresponse = httpx.request(\n${lines.join("\n")}\n)\nprint(response.status_code, response.text)`;
}

// A value of JSON as Python writes it.
function pythonOf(value) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(pythonOf).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value).map(([name, one]) => `${pythonOf(name)}: ${pythonOf(one)}`).join(", ")}}`;
  return JSON.stringify(value);
}
