// The rows of one table: sorted, searched and paged by the server, each to be edited, added or deleted.
import { act, ask, at, call, go, html, query, say, store, useDraft } from "./core.js";
import { Grid, Total, useRemote } from "./grid.js";
import { Cell, Empty, Field, Split } from "./parts.js";
import { useMemo, useReducer, useState } from "./vendor.js";

export function Table({ database, table, id, again }) {
  const [search, setSearch] = useDraft(`rows ${database} ${table.name}`);
  const [sort, setSort] = useState({ by: "", down: false });
  const [turn, look] = useReducer((count) => count + 1, 0);
  const path = `/d1/${at(database)}/rows/${at(table.name)}`;
  const load = async (offset, limit) => {
    const found = await call(`${path}?${query({ offset, limit, search, sort: sort.by, descending: sort.down || null })}`);
    return { ...found, rows: found.rows.map((values, index) => ({ values, key: found.keys[index], id: found.keys[index] ? JSON.stringify(Object.values(found.keys[index])) : String(offset + index) })) };
  };
  const source = useRemote(load, `${search} ${sort.by} ${sort.down}`, `${turn} ${store.loads}`);
  const editable = table.type === "table" && table.key.length > 0;
  const columns = useMemo(() => table.columns.map((one, index) => ({
    label: one.name, sort: one.name, width: /INT|REAL|NUM|BOOL/i.test(one.type) ? "7rem" : "minmax(9rem, 1fr)", n: /INT|REAL|NUM/i.test(one.type), class: "mono",
    cell: (row) => html`<span title=${typeof row.values[index] === "string" ? row.values[index] : null}><${Cell} value=${row.values[index]} /></span>`,
  })), [table]);
  const close = () => go("sql", database, "table", table.name);
  const [opened, setOpened] = useState(null);
  const row = id === "" ? { values: table.columns.map(() => undefined), key: null, id: "" } : opened?.id === id ? opened : find(source, id);
  const changed = () => { look(); again(); };
  const list = html`<form class="bar" role="search" onSubmit=${(event) => { event.preventDefault(); look(); }}>
      <${Field} label=${`Rows of ${table.name} with (press /)`} wide><input type="search" value=${search} onInput=${(event) => setSearch(event.target.value)} /><//>
      ${editable && html`<button type="button" onClick=${() => go("sql", database, "table", table.name, "")}>New row</button>`}
      <${Total} source=${source} what="row" /></form>
    <${Grid} label=${`Rows of ${table.name}`} columns=${columns} source=${source} id=${(one) => one.id} opened=${id} sort=${sort} onSort=${setSort}
      open=${editable ? (one) => { setOpened(one); go("sql", database, "table", table.name, one.id); } : null}
      empty=${html`<${Empty} title="No rows">${search ? `Nothing in ${table.name} has “${search}” in it.` : `${table.name} is empty.`}<//>`} />`;
  return html`<${Split} open=${id !== undefined} title=${id === "" ? `New row of ${table.name}` : `${table.name} ${id ?? ""}`} close=${close} list=${list}>
    ${row ? html`<${Row} key=${`${table.name} ${id}`} database=${database} table=${table} row=${row} changed=${changed} close=${close} />`
      : source.total === null ? null : html`<${Empty} title="Not in view">Look for the row in the list.<//>`}<//>`;
}

function find(source, id) {
  for (let index = 0; index < Math.min(source.total || 0, 2000); index += 1) {
    const row = source.row(index);
    if (row?.id === id) return row;
  }
  return null;
}

// A value as it is written in a field: bytes stay as they are.
const textOf = (value) => (value === null || value === undefined ? "" : typeof value === "object" ? value.text ?? "" : String(value));

function Row({ database, table, row, changed, close }) {
  const fresh = row.key === null;
  const first = () => table.columns.map((column, index) => ({
    text: textOf(row.values[index]), none: fresh ? !column.required : row.values[index] === null, given: false, fixed: column.made || row.values[index]?.base64 !== undefined || (row.values[index]?.size > 0),
  }));
  const [fields, setFields] = useState(first);
  const set = (index, change) => setFields(fields.map((one, place) => (place === index ? { ...one, ...change, given: true } : one)));
  const valueOf = (field, column) => {
    if (field.none) return null;
    if (/INT|REAL|NUM|FLOA|DOUB/i.test(column.type) && field.text.trim() !== "" && Number.isFinite(Number(field.text)) && (Number.isSafeInteger(Number(field.text)) || field.text.includes("."))) return Number(field.text);
    return field.text;
  };
  const write = (key, values) => call(`/d1/${at(database)}/row`, { method: "PUT", body: { table: table.name, key, values } });
  const save = act(async () => {
    const values = Object.fromEntries(table.columns.map((column, index) => [column.name, fields[index], column]).filter(([, field]) => field.given).map(([name, field, column]) => [name, valueOf(field, column)]));
    if (!fresh && !Object.keys(values).length) throw new Error("Nothing was changed");
    const done = await write(fresh ? null : row.key, values);
    say(fresh ? "Added a row" : `Saved, ${done.changes} row changed`);
    changed();
    close();
  });
  const remove = act(async () => {
    if (!(await ask("Delete this row?", [JSON.stringify(row.key)], "Delete"))) return;
    await write(row.key, null);
    say("Deleted the row");
    changed();
    close();
  });
  return html`<form class="stack rowform" onSubmit=${save}>${table.columns.map((column, index) => {
    const field = fields[index], id = `field-${index}`;
    return html`<div class="field"><label for=${id}>${column.name} <small>${column.type.toLowerCase()}${column.key ? ", key" : ""}</small></label>
      ${field.fixed ? html`<span class="null" id=${id}><${Cell} value=${row.values[index]} /></span>`
        : html`<textarea id=${id} class=${field.text.length > 60 || field.text.includes("\n") ? "long" : ""} rows="1" value=${field.text} placeholder=${field.none ? (fresh && column.default ? `default ${column.default}` : fresh && column.key ? "by itself" : "NULL") : ""}
          onInput=${(event) => set(index, { text: event.target.value, none: false })}></textarea>`}
      ${!column.required && !column.key && !field.fixed && !fresh ? html`<label class="is-null"><input type="checkbox" checked=${field.none} onChange=${(event) => set(index, { none: event.target.checked, text: "" })} aria-label=${`${column.name} is NULL`} />NULL</label>` : html`<span></span>`}</div>`;
  })}
    <div class="actions"><button class="first">${fresh ? "Add" : "Save"}</button>${!fresh && html`<button type="button" class="danger" onClick=${remove}>Delete</button>`}</div></form>`;
}
