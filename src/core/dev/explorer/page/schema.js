// The schema of a database: a drawing of how its tables name each other, and each table with its columns, keys and indexes.
import { html, link, some } from "./core.js";
import { Empty } from "./parts.js";
import { useMemo, useReducer, useEffect } from "./vendor.js";

// The columns of a table with their keys, and its indexes.
export function Columns({ database, table }) {
  return html`<ul class="columns">${table.columns.map((column) => html`<li><code>${column.name}</code> ${column.type.toLowerCase()}${column.key ? html` <span class="mark">key</span>` : ""}${column.required ? " not null" : ""}${column.default === null ? "" : ` default ${column.default}`}
      ${table.references.filter((one) => one.columns.includes(column.name)).map((one) => html` → <a href=${link("sql", database, "table", one.table)}>${one.table}</a>${one.onDelete === "NO ACTION" ? "" : `, on delete ${one.onDelete.toLowerCase()}`}`)}</li>`)}
    ${table.indexes.map((one) => html`<li><span class="mark">${one.unique ? "unique" : "index"}</span> ${one.columns.join(", ")}${one.partial ? ", some rows" : ""}</li>`)}</ul>`;
}

export function Relations({ database, schema }) {
  const narrow = useNarrow(), own = schema.tables.filter((one) => !one.name.startsWith("d1_migrations"));
  const drawing = useMemo(() => draw(own.filter((one) => one.type === "table"), narrow), [schema, narrow]);
  return html`<div class="schema">${drawing.boxes.length ? html`<${Drawing} database=${database} drawing=${drawing} />` : html`<${Empty} title="No relations">No table has a foreign key.<//>`}
    <div class="definitions">${own.map((one) => html`<section class="card" aria-label=${`Table ${one.name}`}><h3><a href=${link("sql", database, "table", one.name)}>${one.name}</a></h3><span class="none">${one.type === "view" ? "view" : some(one.rows, "row")}</span><${Columns} database=${database} table=${one} /></section>`)}</div></div>`;
}

function useNarrow() {
  const query = useMemo(() => matchMedia("(max-width: 60rem)"), []);
  const [, redraw] = useReducer((count) => count + 1, 0);
  useEffect(() => { query.addEventListener("change", redraw); return () => query.removeEventListener("change", redraw); }, []);
  return query.matches;
}

// -- the drawing

const WIDTH = 190, HEAD = 30, LINE = 21, GAP = 26, APART = 84, MOST = 9;

// Whoever is named stands left of those that name it, or all in one column where there is no room. Only tables with a
// foreign key are drawn, with what is named or names first.
export function draw(tables, narrow) {
  const known = new Map(tables.map((one) => [one.name, one]));
  const edges = tables.flatMap((one) => one.references.filter((other) => other.to.length && known.has(other.table)).map((other) => ({ from: one.name, column: other.columns[0], to: other.table, key: other.to[0] })));
  const related = new Set(edges.flatMap((one) => [one.from, one.to]));
  const depths = new Map();
  const depth = (name, path = []) => {
    if (path.includes(name)) return 0; // a circle has no left and right
    if (!depths.has(name)) depths.set(name, Math.max(0, ...edges.filter((one) => one.from === name && one.to !== name).map((one) => 1 + depth(one.to, [...path, name]))));
    return depths.get(name);
  };
  const columns = [];
  for (const name of [...related].sort()) (columns[narrow ? 0 : depth(name)] ??= []).push(name);
  if (narrow) columns[0]?.sort((one, other) => depth(one) - depth(other) || (one < other ? -1 : 1));
  const boxes = new Map();
  let height = 0;
  columns.forEach((names, column) => {
    let y = 1;
    for (const name of names) {
      const table = known.get(name), tied = (one) => one.key > 0 || edges.some((edge) => (edge.from === name && edge.column === one.name) || (edge.to === name && edge.key === one.name));
      const listed = [...table.columns.filter(tied), ...table.columns.filter((one) => !tied(one))];
      const lines = listed.slice(0, listed.length > MOST ? MOST - 1 : MOST), rest = listed.length - lines.length;
      const box = { name, table, lines, rest, x: 1 + column * (WIDTH + APART), y, height: HEAD + (lines.length + (rest ? 1 : 0)) * LINE + 6 };
      boxes.set(name, box);
      y += box.height + GAP;
    }
    height = Math.max(height, y - GAP + 2);
  });
  let bend = 0;
  const at = (box, name) => box.y + HEAD + (Math.max(0, box.lines.findIndex((one) => one.name === name)) + 0.5) * LINE;
  const lines = edges.map((edge) => {
    const from = boxes.get(edge.from), to = boxes.get(edge.to), y = at(from, edge.column), end = at(to, edge.key);
    const words = `${edge.from}.${edge.column} names ${edge.to}.${edge.key}`;
    if (from.x > to.x) {
      const right = to.x + WIDTH, middle = (from.x + right) / 2;
      return { words, path: `M${from.x} ${y} C${middle} ${y} ${middle} ${end} ${right} ${end}` };
    }
    bend += 1;
    const right = from.x + WIDTH, away = Math.max(right, to.x + WIDTH) + 16 + Math.min(bend, 7) * 8;
    return { words, path: `M${right} ${y} C${away} ${y} ${away} ${end} ${to.x + WIDTH} ${end}` };
  });
  return { boxes: [...boxes.values()], lines, height, width: columns.length * (WIDTH + APART) };
}

function Drawing({ database, drawing }) {
  return html`<div class="drawing" tabindex="0" role="group" aria-label="Drawing of the relations"><svg width=${drawing.width} height=${drawing.height} viewBox=${`0 0 ${drawing.width} ${drawing.height}`}>
    <defs><marker id="names" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 .8 L7.5 4 L0 7.2" /></marker></defs>
    ${drawing.lines.map((one) => html`<path class="edge" d=${one.path} marker-end="url(#names)"><title>${one.words}</title></path>`)}
    ${drawing.boxes.map((box) => html`<a href=${link("sql", database, "table", box.name)} key=${box.name}><g transform=${`translate(${box.x} ${box.y})`}>
      <rect class="box" width=${WIDTH} height=${box.height} rx="7" /><path class="under" d=${`M0 ${HEAD} H${WIDTH}`} /><text class="name" x="10" y="20">${shortened(box.name, 22)}</text>
      ${box.lines.map((one, index) => html`<text class=${one.key ? "line key" : "line"} x="10" y=${HEAD + index * LINE + 16}>${shortened(one.name, 15)}</text><text class="type" x=${WIDTH - 10} y=${HEAD + index * LINE + 16}>${one.key ? "key" : shortened(one.type.toLowerCase(), 9)}</text>`)}
      ${box.rest ? html`<text class="type rest" x="10" y=${HEAD + box.lines.length * LINE + 16}>${some(box.rest, "more column")}</text>` : null}</g></a>`)}</svg></div>`;
}

const shortened = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
