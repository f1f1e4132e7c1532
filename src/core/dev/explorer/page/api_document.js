// What an OpenAPI document says: its operations, its schemas as types are written, and values to begin with.

export const api = { document: null, committed: null, differs: false, fresh: false, problem: null, findings: [] };
const API_METHODS = ["get", "query", "post", "put", "patch", "delete", "options", "head", "trace"];

// -- what a document says

export function operations() {
  const found = [];
  for (const [path, item] of Object.entries(api.document?.paths || {})) {
    const add = (method, operation) => found.push({ method, path, operation, id: operation.operationId || `${method} ${path}` });
    for (const method of API_METHODS) if (item[method]) add(method.toUpperCase(), item[method]);
    for (const others of ["additionalOperations", "x-additional-operations"]) {
      for (const [method, operation] of Object.entries(item[others] || {})) add(method, operation);
    }
    if (item["x-websocket"]) add("WebSocket", item["x-websocket"]);
  }
  return found;
}

export function target(value) {
  for (let turn = 0; turn < 20 && typeof value?.$ref === "string"; turn += 1) {
    value = value.$ref.slice(2).split("/").reduce((whole, part) => whole?.[part.replaceAll("~1", "/").replaceAll("~0", "~")], api.document);
  }
  return value || {};
}

// A schema as a type is written: names, types and demands, with the classes in it written out once.
export function shape(schema, indent = "", seen = []) {
  const reference = schema?.$ref;
  if (reference) {
    const name = reference.split("/").pop();
    return seen.includes(reference) ? name : `${name} ${shape(target(schema), indent, [...seen, reference])}`;
  }
  if (schema === undefined || schema === true) return "any value";
  const choice = schema.anyOf || schema.oneOf;
  if (choice) return choice.map((part) => shape(part, indent, seen)).join(" | ");
  if (schema.allOf) return schema.allOf.map((part) => shape(part, indent, seen)).join(" & ");
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  const told = ["minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems", "pattern"]
    .filter((word) => word in schema).map((word) => `${word} ${schema[word]}`);
  const demands = told.length ? ` (${told.join(", ")})` : "";
  if (schema.type === "array") {
    if (schema.prefixItems) return `[${schema.prefixItems.map((part) => shape(part, indent, seen)).join(", ")}]`;
    return `list of ${shape(schema.items, indent, seen)}${demands}`;
  }
  if (schema.type === "object" || schema.properties) {
    const inner = `${indent}  `, required = schema.required || [];
    const lines = Object.entries(schema.properties || {}).map(([name, part]) => {
      const comment = part.description ? `  # ${part.description}` : "";
      return `${inner}${name}${required.includes(name) ? "" : "?"}: ${shape(part, inner, seen)}${comment}`;
    });
    if (typeof schema.additionalProperties === "object") lines.push(`${inner}…: ${shape(schema.additionalProperties, inner, seen)}`);
    return lines.length ? `{\n${lines.join("\n")}\n${indent}}` : "object";
  }
  const types = Array.isArray(schema.type) ? schema.type.join(" | ") : schema.type;
  return `${schema.format || types || "any value"}${demands}`;
}

// A value to begin with, for a body that somebody is about to write.
export function sample(schema, depth = 0) {
  const known = target(schema);
  if (depth > 6) return null;
  if ("default" in known) return known.default;
  if ("const" in known) return known.const;
  if (known.enum) return known.enum[0];
  const choice = known.anyOf || known.oneOf;
  if (choice) return sample(choice.find((part) => target(part).type !== "null") || choice[0], depth + 1);
  if (known.allOf) return Object.assign({}, ...known.allOf.map((part) => sample(part, depth + 1)));
  if (known.properties || known.type === "object") {
    const required = known.required || [], names = Object.keys(known.properties || {});
    const wanted = names.filter((name) => required.includes(name));
    return Object.fromEntries((wanted.length ? wanted : names).map((name) => [name, sample(known.properties[name], depth + 1)]));
  }
  switch (Array.isArray(known.type) ? known.type[0] : known.type) {
    case "array": return known.minItems ? [sample(known.items, depth + 1)] : [];
    case "integer": case "number": return known.minimum ?? 0;
    case "boolean": return false;
    case "null": return null;
    default: break;
  }
  const now = new Date().toISOString();
  return { "date-time": now, date: now.slice(0, 10), uuid: "00000000-0000-4000-8000-000000000000", email: "ada@example.com" }[known.format] ?? "";
}

// The media type's own example: one of the document's, or one made up.
export function exampleOf(content) {
  const first = Object.values(content.examples || {})[0];
  return content.example ?? target(first).value ?? sample(content.schema);
}

export function schemesOf(operation) {
  const names = (operation.security ?? api.document.security ?? []).flatMap((way) => Object.keys(way));
  const schemes = api.document.components?.securitySchemes || {};
  return [...new Set(names)].filter((name) => schemes[name]).map((name) => ({ name, ...target(schemes[name]) }));
}

