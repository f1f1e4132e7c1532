// A request as a line for a shell.
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
// What curl writes by itself, or what belongs to one connection only.
const OWN = /^(host|content-length|connection|accept-encoding|transfer-encoding|sec-fetch-.*|sec-ch-.*|upgrade-insecure-requests)$/;

// `headers` are pairs; the body has a `text`, `base64`, a `file`, or the `form` that the browser puts together.
export function asCurl({ method, url, headers, body }) {
  const parts = [`curl ${{ GET: "", HEAD: "-I " }[method] ?? `-X ${method} `}${quoted(location.origin + url)}`];
  for (const [name, value] of headers) parts.push(`-H ${quoted(`${name}: ${value}`)}`);
  if (body?.form) for (const [name, value] of body.form) parts.push(`-F ${quoted(value instanceof File ? `${name}=@${value.name}` : `${name}=${value}`)}`);
  else if (body?.file) parts.push(`--data-binary ${quoted(`@${body.file.name}`)}`);
  else if (body?.base64) return `printf %s ${quoted(body.base64)} | base64 -d | ${[...parts, "--data-binary @-"].join(" \\\n  ")}`;
  else if (body?.text) parts.push(`--data-raw ${quoted(body.isJson ? compact(body.text) : body.text)}`);
  return parts.join(" \\\n  ");
}

// The same of a request that was recorded.
export const recordedAsCurl = ({ method, path, request }) => asCurl({ method, url: path, headers: request.headers.filter(([name]) => !OWN.test(name.toLowerCase())), body: request });

function compact(text) {
  try { return JSON.stringify(JSON.parse(text)); } catch { return text; }
}
