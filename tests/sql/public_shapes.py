"""Statements in the shapes that programs on D1 use: `SHAPES`, each over the tables of every one of `DOMAINS`.

The shapes are those of public programs, read and written anew; tables, columns and values are our own. `{p}` is the table of
owners, `{c}` that of what they own; `{n}` a text, `{o}` a text that may be NULL, `{i}` a number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

__all__ = ["DOMAINS", "SCHEMA", "SHAPES", "statements"]

SCHEMA: Final = """\
CREATE TABLE {p} (id TEXT PRIMARY KEY NOT NULL, {n} TEXT NOT NULL UNIQUE, role TEXT NOT NULL DEFAULT 'plain', settings TEXT);
CREATE TABLE {c} (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  {p}_id TEXT NOT NULL REFERENCES {p} (id) ON DELETE CASCADE,
  {n} TEXT NOT NULL,
  {o} TEXT,
  {i} INTEGER NOT NULL DEFAULT 0,
  done BOOLEAN NOT NULL DEFAULT 0,
  extra TEXT,
  created_at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP,
  removed_at TEXT,
  UNIQUE ({p}_id, {n})
);
CREATE INDEX {c}_recent ON {c} ({p}_id, created_at DESC);
CREATE TABLE {c}_tags ({c}_id INTEGER NOT NULL, tag TEXT NOT NULL, PRIMARY KEY ({c}_id, tag)) WITHOUT ROWID;
"""

DOMAINS: Final = (
    ("gardener", "plant", "species", "nickname", "height"),
    ("sailor", "boat", "hull", "homeport", "length"),
    ("baker", "loaf", "flour", "topping", "grams"),
    ("potter", "vase", "glaze", "motif", "firings"),
    ("luthier", "violin", "wood", "label", "strings"),
    ("farmer", "field", "crop", "soil", "hectares"),
    ("printer", "poster", "paper", "ink", "copies"),
    ("tailor", "jacket", "cloth", "lining", "buttons"),
    ("ranger", "trail", "name", "warning", "metres"),
    ("keeper", "lighthouse", "coast", "signal", "steps"),
    ("weaver", "rug", "pattern", "dye", "knots"),
    ("brewer", "batch", "style", "remark", "litres"),
    ("miner", "shaft", "ore", "hazard", "depth"),
    ("pilot", "glider", "registration", "callsign", "flights"),
    ("cobbler", "boot", "leather", "heel", "size_eu"),
    ("diver", "wreck", "ship", "story", "fathoms"),
    ("curator", "exhibit", "title", "donor", "visitors"),
)

SHAPES: Final = tuple(
    """
SELECT * FROM {c}
SELECT * FROM {c} WHERE id = ?
SELECT id, {n} FROM {c} WHERE {p}_id = ? LIMIT 1
SELECT {n} FROM {c} WHERE {o} = 'none' AND {i} = 1
SELECT "{n}" FROM "{c}" WHERE "id" = ? AND "{p}_id" = ?
SELECT `{n}`, [{o}] FROM `{c}` ORDER BY `{i}` DESC, "id" ASC
SELECT COUNT(*) as count FROM {c} WHERE {p}_id = ?
SELECT COUNT(*) as count FROM {c} WHERE created_at > datetime('now', '-7 days')
SELECT count(DISTINCT {p}_id) AS owners, sum({i}) AS total, avg({i}) AS mean FROM {c}
SELECT COALESCE(MAX({i}), 0) + 1 AS next FROM {c} WHERE {p}_id = ?1
SELECT * FROM {c} WHERE {p}_id = ? ORDER BY created_at DESC LIMIT ? OFFSET ?
SELECT * FROM {c} WHERE id > ?1 AND ({o} IS NULL OR {o} <> ?2) ORDER BY id LIMIT 50
SELECT * FROM {c} WHERE {n} LIKE '%' || ? || '%' OR {o} LIKE ? ESCAPE '!'
SELECT * FROM {c} WHERE lower({n}) = lower(?) COLLATE NOCASE
SELECT * FROM {c} WHERE {n} IN (?, ?, ?) AND id NOT IN (SELECT {c}_id FROM {c}_tags WHERE tag = 'hidden')
SELECT * FROM {c} WHERE {n} IN (SELECT value FROM json_each(?))
SELECT 1 FROM {c} WHERE {n} = ? AND removed_at IS NULL LIMIT 1
SELECT EXISTS(SELECT 1 FROM {c} WHERE {n} = ?) AS found
SELECT x.id, x.{n}, y.{n} AS owner FROM {c} x JOIN {p} y ON x.{p}_id = y.id WHERE y.role = 'admin'
SELECT x.*, y.{n} AS owner FROM {c} AS x LEFT JOIN {p} AS y ON y.id = x.{p}_id ORDER BY x.id DESC
SELECT y.id, y.{n}, COUNT(x.id) AS owned FROM {p} y LEFT JOIN {c} x ON x.{p}_id = y.id GROUP BY y.id ORDER BY owned DESC
SELECT {o}, COUNT(*) AS n FROM {c} GROUP BY {o} HAVING COUNT(*) > ? ORDER BY n DESC LIMIT 10
SELECT date(created_at) AS day, COUNT(*) AS n, SUM(CASE WHEN done = 1 THEN 1 ELSE 0 END) AS finished FROM {c} WHERE date(created_at) BETWEEN date('now', '-30 days') AND date('now') GROUP BY date(created_at) ORDER BY day ASC
SELECT strftime('%Y-%m', created_at) AS month, ROUND(AVG({i}), 2) AS mean FROM {c} GROUP BY month
SELECT json_extract(extra, '$.colour') AS colour, extra ->> '$.size' AS size FROM {c} WHERE json_valid(extra)
SELECT x.id, group_concat(t.tag, ',') AS tags FROM {c} x INNER JOIN {c}_tags t ON t.{c}_id = x.id GROUP BY x.id
SELECT x.id, json_group_array(json_object('tag', t.tag)) AS tags FROM {c} x LEFT JOIN {c}_tags t ON t.{c}_id = x.id WHERE x.id = ?
SELECT id, (SELECT COUNT(*) FROM {c}_tags t WHERE t.{c}_id = {c}.id) AS tags FROM {c} WHERE {p}_id = ?
SELECT * FROM {c} WHERE {i} = (SELECT MAX({i}) FROM {c}) LIMIT 1
SELECT * FROM {c} ORDER BY RANDOM() LIMIT 1
SELECT id, {n}, ROW_NUMBER() OVER (PARTITION BY {p}_id ORDER BY {i} DESC) AS place FROM {c}
SELECT * FROM (SELECT id, {i}, RANK() OVER (ORDER BY {i} DESC) AS place FROM {c}) WHERE place <= ?
WITH recent AS (SELECT * FROM {c} WHERE created_at > ?) SELECT {p}_id, COUNT(*) AS n FROM recent GROUP BY {p}_id
WITH a AS (SELECT {p}_id, SUM({i}) AS total FROM {c} GROUP BY {p}_id), b AS (SELECT MAX(total) AS most FROM a) SELECT a.{p}_id, a.total FROM a, b WHERE a.total = b.most
WITH RECURSIVE days(day) AS (SELECT date('now', '-6 days') UNION ALL SELECT date(day, '+1 day') FROM days WHERE day < date('now')) SELECT day, COUNT(x.id) AS n FROM days LEFT JOIN {c} x ON date(x.created_at) = day GROUP BY day
SELECT {n} AS label, 'own' AS kind FROM {c} UNION ALL SELECT {n}, 'owner' FROM {p} ORDER BY label LIMIT 20
SELECT DISTINCT {o} FROM {c} WHERE {o} IS NOT NULL AND {o} != '' ORDER BY {o}
SELECT IFNULL({o}, '-') AS shown, substr({n}, 1, 3) AS short, length({n}) AS size, {i} * 1.0 / 2 AS half FROM {c}
SELECT CAST({i} AS TEXT) AS written, CASE {i} WHEN 0 THEN 'none' WHEN 1 THEN 'one' ELSE 'many' END AS many FROM {c}
SELECT name FROM sqlite_master WHERE type = 'table' AND name = '{c}'
SELECT * FROM {c} WHERE (created_at, id) < (?, ?) ORDER BY created_at DESC, id DESC LIMIT ?
SELECT * FROM {c} WHERE (?1 IS NULL OR {p}_id = ?1) AND (?2 = '' OR {n} = ?2) LIMIT ?3
INSERT INTO {c} ({p}_id, {n}) VALUES (?, ?)
INSERT INTO {c} ({p}_id, {n}, {o}, {i}) VALUES (?1, ?2, ?3, ?4) RETURNING *
INSERT INTO {c} ({p}_id, {n}, {i}, created_at) VALUES (?, ?, 1, CURRENT_TIMESTAMP) RETURNING id
INSERT OR IGNORE INTO {c}_tags ({c}_id, tag) VALUES (?, ?)
INSERT OR REPLACE INTO {p} (id, {n}, role) VALUES (?, ?, 'admin')
INSERT INTO {p} (id, {n}) VALUES (lower(hex(randomblob(16))), ?)
INSERT INTO {c} ({p}_id, {n}, {i}) VALUES (?, ?, ?) ON CONFLICT ({p}_id, {n}) DO UPDATE SET {i} = {i} + excluded.{i}
INSERT INTO {p} (id, {n}, settings) VALUES (?, ?, ?) ON CONFLICT(id) DO UPDATE SET settings = excluded.settings WHERE settings IS NOT excluded.settings
INSERT INTO {p} (id, {n}) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING id
INSERT INTO {c}_tags ({c}_id, tag) SELECT id, ? FROM {c} WHERE {p}_id = ?
INSERT INTO {p} (id, {n}) SELECT ?1, ?2 WHERE NOT EXISTS (SELECT 1 FROM {p} WHERE {n} = ?2)
INSERT INTO {c} ({p}_id, {n}) SELECT ?, ? WHERE (SELECT COUNT(*) FROM {c} WHERE removed_at IS NULL) < ? RETURNING id
REPLACE INTO {p} (id, {n}) VALUES (?, ?)
UPDATE {c} SET {n} = ? WHERE id = ?
UPDATE {c} SET {o} = NULL, removed_at = CURRENT_TIMESTAMP, done = 1 WHERE id = ? AND removed_at IS NULL
UPDATE {c} SET {i} = {i} + 1, {o} = COALESCE(?, {o}) WHERE id = ? RETURNING {i}
UPDATE {c} SET {i} = max(0, {i} - ?1), done = CASE WHEN {i} > ?1 THEN 0 ELSE 1 END WHERE {p}_id = ?2
UPDATE {p} SET settings = json_set(coalesce(settings, '{{}}'), '$.theme', ?) WHERE id = ?
UPDATE {c} SET {o} = (SELECT {n} FROM {p} WHERE {p}.id = {c}.{p}_id) WHERE {o} IS NULL
DELETE FROM {c}
DELETE FROM {c} WHERE id = ? AND {p}_id = ?
DELETE FROM {c} WHERE removed_at IS NOT NULL AND removed_at < datetime('now', '-90 days')
DELETE FROM {c} WHERE id IN (SELECT id FROM {c} WHERE created_at < datetime('now', ?) ORDER BY id LIMIT ?)
DELETE FROM {c}_tags WHERE {c}_id NOT IN (SELECT id FROM {c}) RETURNING tag
DELETE FROM {p} WHERE id = ? AND NOT EXISTS (SELECT 1 FROM {c} WHERE {c}.{p}_id = {p}.id)
""".strip().splitlines()
)


def statements(domain: tuple[str, ...]) -> Iterator[str]:
    """Every shape over the tables of one domain."""
    for shape in SHAPES:
        yield over(shape, domain)


def over(shape: str, domain: tuple[str, ...]) -> str:
    """A shape, or the schema, with the names of one domain."""
    return shape.format(**dict(zip("pcnoi", domain, strict=True)))
