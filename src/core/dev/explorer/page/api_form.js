// The form of an operation: parameters, body and credentials, and the request that they make.
import { api, exampleOf, schemesOf, shape, target } from "./api_document.js";
import { at, html, useDraft } from "./core.js";
import { Field } from "./parts.js";
import { useRef, useState } from "./vendor.js";

// What is typed into several controls: the properties of the one that has a name, with what it begins with.
function useTyped(key) {
  const [kept, keep] = useDraft(key, "{}"), values = useRef(null);
  values.current = JSON.parse(kept);
  return (name, first = "") => ({
    value: values.current[name] ?? first,
    onInput: (event) => {
      values.current = { ...values.current, [name]: event.target.value }; // a browser fills in two at once
      keep(JSON.stringify(values.current));
    },
  });
}

// The controls of a request, and the request that they make.
export function useRequest(method, path, operation, id) {
  const typed = useTyped(`api ${id}`), secret = useTyped("api credentials"), [files, setFiles] = useState({});
  const file = (name) => html`<input type="file" onChange=${(event) => setFiles({ ...files, [name]: event.target.files[0] })} />`;
  const parameters = (operation.parameters || []).map(target).filter((one) => one.in !== "cookie");
  const controls = parameters.map((one) => typed(`${one.in} ${one.name}`));
  const content = target(operation.requestBody || {}).content || {}, medias = Object.keys(content);
  const choice = typed("media", medias[0]), media = medias.includes(choice.value) ? choice.value : medias[0];
  const chooses = (event) => { setFiles({}); choice.onInput(event); };
  const body = media === undefined ? null : bodyOf(media, content[media], typed, files, file);
  const credentials = schemesOf(operation).map((scheme) => credential(scheme, secret));
  const fields = html`${credentials.map((one) => one.fields)}
    ${parameters.map(({ name, in: place, required, schema, description }, index) => html`<${Field} label=${`${name} (${place})`}><input ...${controls[index]} required=${place === "path" || required}
      placeholder=${"default" in (schema || {}) ? String(schema.default) : shape(schema).replace(/\s+/g, " ")} title=${description} /><//>`)}
    ${medias.length > 1 && html`<${Field} label="Body"><select value=${media} onInput=${chooses}>${medias.map((name) => html`<option value=${name}>${name}</option>`)}</select><//>`}
    <div class="body" key=${media}>${body?.fields}</div>`;

  const headers = {}, query = [];
  let url = path;
  parameters.forEach(({ name, in: place, schema, description }, index) => {
    const { value } = controls[index];
    if (place === "path") { url = url.replace(`{${name}}`, at(value).replaceAll("%2F", /slashes included/.test(description || "") ? "/" : "%2F")); return; }
    if (!value) return;
    const values = target(schema).type === "array" ? value.split(",") : [value];
    if (place === "query") for (const each of values) query.push([name, each]);
    else headers[name] = value;
  });
  for (const one of credentials) one.add(headers, query);
  if (body?.value?.media) headers["Content-Type"] = body.value.media;
  const search = query.map((pair) => pair.map(at).join("=")).join("&");
  return [fields, { method, url: search ? `${url}?${search}` : url, headers, body: body?.value ?? null }];
}

// The controls of one body, and what they hold: { media, text }, { media, file }, or { form } for what the browser puts
// together.
function bodyOf(media, content, typed, files, file) {
  const schema = target(content.schema), kind = media.split(";")[0];
  if (/^application\/x-www-form-urlencoded$|^multipart\/form-data$/.test(kind)) {
    const parts = (schema.allOf || [schema]).map(target), takesFiles = kind === "multipart/form-data";
    const controls = Object.entries(Object.assign({}, ...parts.map((part) => part.properties || {}))).map(([name, part]) => {
      const isFile = takesFiles && (target(part).contentMediaType || target(part).format === "binary"), control = typed(`form ${name}`);
      return [name, isFile ? files[name] : control.value, isFile ? file(name) : html`<input ...${control} placeholder=${shape(part).replace(/\s+/g, " ")} />`];
    });
    const given = controls.filter(([, value]) => value), form = takesFiles ? new FormData() : new URLSearchParams();
    for (const [name, value] of given) form.append(name, value);
    return { fields: controls.map(([name, , input]) => html`<${Field} label=${name}>${input}<//>`), value: takesFiles ? { form } : { media: kind, text: form.toString() } };
  }
  if (/^application\/octet-stream$|^(image|audio|video)\//.test(kind)) {
    return { fields: html`<${Field} label="File" wide>${file(kind)}<//>`, value: files[kind] ? { media: kind, file: files[kind] } : null };
  }
  const isJson = /[/+]json$/.test(kind), first = isJson ? JSON.stringify(exampleOf(content), null, 2) : "", control = typed(`body ${kind}`, first);
  return { fields: html`<${Field} label=${`Body, ${kind} (Ctrl-Enter sends it)`} wide>
    <textarea ...${control} rows=${Math.min(Math.max(first.split("\n").length, 3), 16)} spellcheck=${false} /><//>`, value: { media: kind, text: control.value, isJson } };
}

// The fields of a security scheme. What is typed stays for the session of this tab, and goes nowhere else.
function credential(scheme, secret) {
  const part = (name, label, type) => {
    const control = secret(`${scheme.name} ${name}`);
    return [control.value, html`<${Field} label=${label}><input ...${control} type=${type} autocomplete="off" /><//>`];
  };
  if (scheme.type === "apiKey" && scheme.in === "cookie") {
    return { fields: html`<p class="none">The browser sends the cookie ${scheme.name} along, once the application has set it.</p>`, add: () => {} };
  }
  if (scheme.type === "http" && scheme.scheme.toLowerCase() === "basic") {
    const [name, first] = part("name", "User name", "text"), [password, second] = part("password", "Password", "password");
    const encoded = () => btoa(String.fromCharCode(...new TextEncoder().encode(`${name}:${password}`)));
    return { fields: [first, second], add: (headers) => { if (name || password) headers.Authorization = `Basic ${encoded()}`; } };
  }
  const [token, fields] = part("token", scheme.type === "apiKey" ? scheme.name : `Token (${scheme.name})`, "password");
  const add = (headers, query) => {
    if (!token) return;
    const word = scheme.type === "http" ? scheme.scheme : "bearer";
    if (scheme.type !== "apiKey") headers.Authorization = `${word[0].toUpperCase()}${word.slice(1)} ${token}`;
    else if (scheme.in === "query") query.push([target(scheme).name, token]);
    else headers[(api.document.components.securitySchemes[scheme.name] || scheme).name] = token;
  };
  return { fields, add };
}

// -- the same request elsewhere

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
