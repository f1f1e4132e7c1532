// The rows of one table: sorted, searched and paged by the server, each to be edited, added or deleted.
import { act, ask, at, call, go, html, link, query, say, useLoaded, useUnsaved } from "./core.js";
import { Grid, Search, useListing } from "./grid.js";
import { Cell, Empty, Loading, Problem, Split } from "./parts.js";
import { Related, rowsLink, target } from "./relations.js";
import { useMemo, useRef, useState } from "./vendor.js";

// The values that a row has to have, of an address.
function parsed(text) {
  try { return JSON.parse(text); } catch { return null; }
}

// Rows as the page holds them: `values` in the order of the columns, and the `key` that finds the row again, also as its `id`.
const rowsOf = (found, offset) => found.rows.map((values, index) => ({ values, key: found.keys[index], id: found.keys[index] ? JSON.stringify(Object.values(found.keys[index])) : String(offset + index) }));

export function Table({ database, schema, table, where, id, again }) {
  const path = `/d1/${at(database)}/rows/${at(table.name)}`;
  const read = (found, offset) => ({ ...found, rows: rowsOf(found, offset) });
  const listing = useListing({ path, draft: `rows ${database} ${table.name}`, by: "", more: { where }, read });
  const { search, again: look, grid } = listing;
  const editable = table.type === "table" && table.key.length > 0;
  const columns = useMemo(() => table.columns.map((one, index) => {
    const reference = table.references.find((other) => other.columns.includes(one.name));
    return {
      label: one.name, sort: one.name, width: /INT|REAL|NUM|BOOL/i.test(one.type) ? (reference ? "7.5rem" : "6.5rem") : "minmax(9rem, 1fr)", n: /INT|REAL|NUM/i.test(one.type), class: "mono",
      cell: (row) => html`<span title=${typeof row.values[index] === "string" ? row.values[index] : null}><${Cell} value=${row.values[index]} /></span>${reference && html`<${Arrow} database=${database} to=${target(schema, reference, valueIn(table, row))} />`}`,
    };
  }), [schema, table]);
  const address = ["sql", database, "table", table.name, ...(where ? ["where", where] : [])];
  const close = () => go(...address);
  // What was chosen in the list is shown once the address says so: until then a form may ask.
  const chosen = useRef(null);
  const row = useMemo(() => (id === "" ? NEW : chosen.current?.id === id ? chosen.current : null), [id]);
  const changed = () => { chosen.current = null; look(); again(); };
  const list = html`<${Search} label=${`Rows of ${table.name} with (press /)`} what="row" listing=${listing}>
      ${where && html`<p class="choice"><a href=${link("sql", database, "table", table.name)} title="Show all rows" aria-current="true">${Object.entries(parsed(where) ?? {}).map(([name, value]) => `${name} = ${textOf(value)}`).join(", ")} <span aria-hidden="true">×</span><span class="away">: show all rows</span></a></p>`}
      ${editable && html`<button type="button" onClick=${() => go(...address, "")}>New row</button>`}<//>
    <${Grid} label=${`Rows of ${table.name}`} columns=${columns} ...${grid} marks=${null} id=${(one) => one.id} opened=${id}
      open=${editable ? (one) => { chosen.current = one; go(...address, one.id); } : null}
      empty=${html`<${Empty} title="No rows">${search || where ? `No row of ${table.name} is like that.` : `${table.name} is empty.`}<//>`} />`;
  return html`<${Split} open=${id !== undefined} title=${id === "" ? `New row of ${table.name}` : `${table.name} ${(parsed(id ?? "[]") ?? []).map(textOf).join(", ")}`} close=${close} list=${list}>
    ${row ? html`<${Row} key=${`${table.name} ${id}`} database=${database} schema=${schema} table=${table} row=${row} changed=${changed} close=${close} />`
      : html`<${Found} key=${`${table.name} ${id}`} path=${path} table=${table} id=${id} make=${(row) => html`<${Row} database=${database} schema=${schema} table=${table} row=${row} changed=${changed} close=${close} />`} />`}<//>`;
}

const NEW = { values: [], key: null, id: "" };
const valueIn = (table, row) => (name) => (name === "rowid" ? row.key?.rowid : row.values[table.columns.findIndex((one) => one.name === name)]);

// To the row that a value names.
function Arrow({ database, to }) {
  return to && html` <a class="arrow" tabindex="-1" href=${rowsLink(database, to.table, to.values)} aria-label=${`Open ${to.table.name} ${Object.values(to.values).map(textOf).join(", ")}`}>→</a>`;
}

// A row that was not chosen in the list, but named by an address.
function Found({ path, table, id, make }) {
  const values = parsed(id), where = Array.isArray(values) ? JSON.stringify(Object.fromEntries(table.key.map((name, index) => [name, values[index] ?? null]))) : null;
  const [found, error] = useLoaded(() => (where ? call(`${path}?${query({ where, limit: 1 })}`) : Promise.resolve({ rows: [], keys: [] })), [where]);
  if (error) return html`<${Problem} error=${error} />`;
  if (!found) return html`<${Loading} />`;
  const [row] = rowsOf(found, 0);
  return row ? make(row) : html`<${Empty} title="No such row">It was deleted, or its key is another one now.<//>`;
}

// A value as it is written in a field: bytes stay as they are.
const textOf = (value) => (value === null || value === undefined ? "" : typeof value === "object" ? value.text ?? "" : String(value));

function Row({ database, schema, table, row, changed, close }) {
  const fresh = row.key === null;
  // What was changed, by the name of its column.
  const [given, setGiven] = useState({});
  const fieldOf = (column, index) => given[column.name] ?? { text: textOf(row.values[index]), none: fresh ? !column.required : row.values[index] === null };
  const isFixed = (column, index) => column.made || row.values[index]?.base64 !== undefined || row.values[index]?.size > 0;
  const set = (column, field) => setGiven({ ...given, [column.name]: field });
  const differs = ([name, field]) => {
    const index = table.columns.findIndex((one) => one.name === name), value = row.values[index];
    return fresh ? field.text !== "" : field.none !== (value === null) || field.text !== textOf(value);
  };
  const leave = useUnsaved(fresh ? `A new row of ${table.name}` : `A row of ${table.name}`, Object.entries(given).some(differs));
  const valueOf = (field, column) => {
    if (field.none) return null;
    if (/INT|REAL|NUM|FLOA|DOUB/i.test(column.type) && field.text.trim() !== "" && Number.isFinite(Number(field.text)) && (Number.isSafeInteger(Number(field.text)) || field.text.includes("."))) return Number(field.text);
    return field.text;
  };
  const write = (key, values) => call(`/d1/${at(database)}/row`, { method: "PUT", body: { table: table.name, key, values } });
  const save = act(async () => {
    const values = Object.fromEntries(table.columns.filter((column) => given[column.name]).map((column) => [column.name, valueOf(given[column.name], column)]));
    if (!fresh && !Object.keys(values).length) throw new Error("Nothing was changed");
    const done = await write(fresh ? null : row.key, values);
    say(fresh ? "Added a row" : `Saved, ${done.changes} row changed`);
    leave();
    changed();
    close();
  });
  const remove = act(async () => {
    if (!(await ask("Delete this row?", [JSON.stringify(row.key)], "Delete"))) return;
    await write(row.key, null);
    say("Deleted the row");
    leave();
    changed();
    close();
  });
  return html`<form class="stack rowform" onSubmit=${save}>${table.columns.map((column, index) => {
    const field = fieldOf(column, index), id = `field-${index}`;
    return html`<div class="field"><label for=${id}>${column.name} <small>${column.type.toLowerCase()}${column.key ? ", key" : ""}</small></label>
      ${isFixed(column, index) ? html`<span class="null" id=${id}><${Cell} value=${row.values[index]} /></span>`
        : html`<textarea id=${id} class=${field.text.length > 60 || field.text.includes("\n") ? "long" : ""} rows="1" value=${field.text} placeholder=${field.none ? (fresh && column.default ? `default ${column.default}` : fresh && column.key ? "by itself" : "NULL") : ""}
          onInput=${(event) => set(column, { text: event.target.value, none: false })}></textarea>`}
      ${!column.required && !column.key && !isFixed(column, index) && !fresh ? html`<label class="is-null"><input type="checkbox" checked=${field.none} onChange=${(event) => set(column, { none: event.target.checked, text: "" })} aria-label=${`${column.name} is NULL`} />NULL</label>` : html`<span></span>`}</div>`;
  })}
    <div class="actions"><button class="first">${fresh ? "Add" : "Save"}</button>${!fresh && html`<button type="button" class="danger" onClick=${remove}>Delete</button>`}</div>
    ${!fresh && html`<${Related} database=${database} schema=${schema} table=${table} valueOf=${valueIn(table, row)} />`}</form>`;
}
