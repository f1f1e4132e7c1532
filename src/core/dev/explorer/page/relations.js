// Foreign keys, followed both ways: from a row to the one that it names, and to those that name it.
import { at, call, html, link, query, some, useLoaded } from "./core.js";

// The address of the rows of a table whose columns have these values: of the one, where they are its key.
export function rowsLink(database, table, values) {
  const names = Object.keys(values), isKey = table.key.length === names.length && table.key.every((name) => name in values);
  return isKey ? link("sql", database, "table", table.name, JSON.stringify(table.key.map((name) => values[name])))
    : link("sql", database, "table", table.name, "where", JSON.stringify(values));
}

// The row that a foreign key of a row leads to: { table, values }, or null where it leads nowhere.
export function target(schema, reference, valueOf) {
  const table = schema.tables.find((one) => one.name === reference.table);
  const values = reference.columns.map(valueOf);
  if (!table || !reference.to.length || values.some((value) => value === null || value === undefined)) return null;
  return { table, values: Object.fromEntries(reference.to.map((name, index) => [name, values[index]])) };
}

// The foreign keys of other tables that lead to this one.
export const incoming = (schema, table) => schema.tables.flatMap((other) => other.references
  .filter((one) => one.table === table.name && one.to.length).map((one) => ({ table: other, columns: one.columns, to: one.to })));

const written = (values) => Object.values(values).map((value) => (typeof value === "object" ? value.text ?? "…" : String(value))).join(", ");

// What is related to a row: links to the rows that it names, and to those that name it, with their number.
export function Related({ database, schema, table, valueOf }) {
  const out = table.references.map((one) => ({ one, to: target(schema, one, valueOf) })).filter(({ to }) => to);
  const back = incoming(schema, table).map((one) => ({ ...one, values: one.to.map(valueOf) })).filter(({ values }) => values.every((value) => value !== null && value !== undefined));
  if (!out.length && !back.length) return null;
  return html`<section aria-label="Related rows"><h4>Related rows</h4><ul class="related">
    ${out.map(({ one, to }) => html`<li><code>${one.columns.join(", ")}</code> names <a href=${rowsLink(database, to.table, to.values)}>${to.table.name} ${written(to.values)}</a></li>`)}
    ${back.map((one) => html`<${Naming} key=${`${one.table.name} ${one.columns}`} database=${database} table=${one.table} values=${Object.fromEntries(one.columns.map((name, index) => [name, one.values[index]]))} />`)}</ul></section>`;
}

function Naming({ database, table, values }) {
  const where = JSON.stringify(values);
  const [found] = useLoaded(() => call(`/d1/${at(database)}/rows/${at(table.name)}?${query({ where, limit: 1 })}`), [database, table.name, where]);
  const words = `${table.name}`, by = html`<code>${Object.keys(values).join(", ")}</code>`;
  if (found?.total === 0) return html`<li>none of ${words} by ${by}</li>`;
  return html`<li><a href=${link("sql", database, "table", table.name, "where", where)}>${found ? some(found.total, "row") : "rows"} of ${words}</a> by ${by}</li>`;
}
