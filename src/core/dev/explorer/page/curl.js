// A request as a line for a shell.
export const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
// What curl writes by itself, or what belongs to one connection only.
const OWN = /^(host|content-length|connection|accept-encoding|transfer-encoding|sec-fetch-.*|sec-ch-.*|upgrade-insecure-requests)$/;

export function asCurl({ method, path, request }) {
  const parts = [`curl${method === "GET" ? "" : method === "HEAD" ? " -I" : ` -X ${method}`} ${quoted(location.origin + path)}`];
  for (const [name, value] of request.headers) if (!OWN.test(name.toLowerCase())) parts.push(`-H ${quoted(`${name}: ${value}`)}`);
  if (request.text) parts.push(`--data-raw ${quoted(request.text)}`);
  else if (request.base64) return `printf %s ${quoted(request.base64)} | base64 -d | ${[...parts, "--data-binary @-"].join(" \\\n  ")}`;
  return parts.join(" \\\n  ");
}
