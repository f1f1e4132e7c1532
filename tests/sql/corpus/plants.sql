-- Gardeners and their plants.
CREATE TABLE gardener (id TEXT PRIMARY KEY NOT NULL, species TEXT NOT NULL UNIQUE, role TEXT NOT NULL DEFAULT 'plain', settings TEXT);
CREATE TABLE plant (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  gardener_id TEXT NOT NULL REFERENCES gardener (id) ON DELETE CASCADE,
  species TEXT NOT NULL,
  nickname TEXT,
  height INTEGER NOT NULL DEFAULT 0,
  done BOOLEAN NOT NULL DEFAULT 0,
  extra TEXT,
  created_at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP,
  removed_at TEXT,
  UNIQUE (gardener_id, species)
);
CREATE INDEX plant_recent ON plant (gardener_id, created_at DESC);
CREATE TABLE plant_tags (plant_id INTEGER NOT NULL, tag TEXT NOT NULL, PRIMARY KEY (plant_id, tag)) WITHOUT ROWID;
-- statements
SELECT * FROM plant;
SELECT * FROM plant WHERE id = ?;
SELECT id, species FROM plant WHERE gardener_id = ? LIMIT 1;
SELECT species FROM plant WHERE nickname = 'none' AND height = 1;
SELECT "species" FROM "plant" WHERE "id" = ? AND "gardener_id" = ?;
SELECT `species`, [nickname] FROM `plant` ORDER BY `height` DESC, "id" ASC;
SELECT COUNT(*) as count FROM plant WHERE gardener_id = ?;
SELECT COUNT(*) as count FROM plant WHERE created_at > datetime('now', '-7 days');
SELECT count(DISTINCT gardener_id) AS owners, sum(height) AS total, avg(height) AS mean FROM plant;
SELECT COALESCE(MAX(height), 0) + 1 AS next FROM plant WHERE gardener_id = ?1;
SELECT * FROM plant WHERE gardener_id = ? ORDER BY created_at DESC LIMIT ? OFFSET ?;
SELECT * FROM plant WHERE id > ?1 AND (nickname IS NULL OR nickname <> ?2) ORDER BY id LIMIT 50;
SELECT * FROM plant WHERE species LIKE '%' || ? || '%' OR nickname LIKE ? ESCAPE '!';
SELECT * FROM plant WHERE lower(species) = lower(?) COLLATE NOCASE;
SELECT * FROM plant WHERE species IN (?, ?, ?) AND id NOT IN (SELECT plant_id FROM plant_tags WHERE tag = 'hidden');
SELECT * FROM plant WHERE species IN (SELECT value FROM json_each(?));
SELECT 1 FROM plant WHERE species = ? AND removed_at IS NULL LIMIT 1;
SELECT EXISTS(SELECT 1 FROM plant WHERE species = ?) AS found;
SELECT x.id, x.species, y.species AS owner FROM plant x JOIN gardener y ON x.gardener_id = y.id WHERE y.role = 'admin';
SELECT x.*, y.species AS owner FROM plant AS x LEFT JOIN gardener AS y ON y.id = x.gardener_id ORDER BY x.id DESC;
SELECT y.id, y.species, COUNT(x.id) AS owned FROM gardener y LEFT JOIN plant x ON x.gardener_id = y.id GROUP BY y.id ORDER BY owned DESC;
SELECT nickname, COUNT(*) AS n FROM plant GROUP BY nickname HAVING COUNT(*) > ? ORDER BY n DESC LIMIT 10;
SELECT date(created_at) AS day, COUNT(*) AS n, SUM(CASE WHEN done = 1 THEN 1 ELSE 0 END) AS finished FROM plant WHERE date(created_at) BETWEEN date('now', '-30 days') AND date('now') GROUP BY date(created_at) ORDER BY day ASC;
SELECT strftime('%Y-%m', created_at) AS month, ROUND(AVG(height), 2) AS mean FROM plant GROUP BY month;
SELECT json_extract(extra, '$.colour') AS colour, extra ->> '$.size' AS size FROM plant WHERE json_valid(extra);
SELECT x.id, group_concat(t.tag, ',') AS tags FROM plant x INNER JOIN plant_tags t ON t.plant_id = x.id GROUP BY x.id;
SELECT x.id, json_group_array(json_object('tag', t.tag)) AS tags FROM plant x LEFT JOIN plant_tags t ON t.plant_id = x.id WHERE x.id = ?;
SELECT id, (SELECT COUNT(*) FROM plant_tags t WHERE t.plant_id = plant.id) AS tags FROM plant WHERE gardener_id = ?;
SELECT * FROM plant WHERE height = (SELECT MAX(height) FROM plant) LIMIT 1;
SELECT * FROM plant ORDER BY RANDOM() LIMIT 1;
SELECT id, species, ROW_NUMBER() OVER (PARTITION BY gardener_id ORDER BY height DESC) AS place FROM plant;
SELECT * FROM (SELECT id, height, RANK() OVER (ORDER BY height DESC) AS place FROM plant) WHERE place <= ?;
WITH recent AS (SELECT * FROM plant WHERE created_at > ?) SELECT gardener_id, COUNT(*) AS n FROM recent GROUP BY gardener_id;
WITH a AS (SELECT gardener_id, SUM(height) AS total FROM plant GROUP BY gardener_id), b AS (SELECT MAX(total) AS most FROM a) SELECT a.gardener_id, a.total FROM a, b WHERE a.total = b.most;
WITH RECURSIVE days(day) AS (SELECT date('now', '-6 days') UNION ALL SELECT date(day, '+1 day') FROM days WHERE day < date('now')) SELECT day, COUNT(x.id) AS n FROM days LEFT JOIN plant x ON date(x.created_at) = day GROUP BY day;
SELECT species AS label, 'own' AS kind FROM plant UNION ALL SELECT species, 'owner' FROM gardener ORDER BY label LIMIT 20;
SELECT DISTINCT nickname FROM plant WHERE nickname IS NOT NULL AND nickname != '' ORDER BY nickname;
SELECT IFNULL(nickname, '-') AS shown, substr(species, 1, 3) AS short, length(species) AS size, height * 1.0 / 2 AS half FROM plant;
SELECT CAST(height AS TEXT) AS written, CASE height WHEN 0 THEN 'none' WHEN 1 THEN 'one' ELSE 'many' END AS many FROM plant;
SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'plant';
SELECT * FROM plant WHERE (created_at, id) < (?, ?) ORDER BY created_at DESC, id DESC LIMIT ?;
SELECT * FROM plant WHERE (?1 IS NULL OR gardener_id = ?1) AND (?2 = '' OR species = ?2) LIMIT ?3;
INSERT INTO plant (gardener_id, species) VALUES (?, ?);
INSERT INTO plant (gardener_id, species, nickname, height) VALUES (?1, ?2, ?3, ?4) RETURNING *;
INSERT INTO plant (gardener_id, species, height, created_at) VALUES (?, ?, 1, CURRENT_TIMESTAMP) RETURNING id;
INSERT OR IGNORE INTO plant_tags (plant_id, tag) VALUES (?, ?);
INSERT OR REPLACE INTO gardener (id, species, role) VALUES (?, ?, 'admin');
INSERT INTO gardener (id, species) VALUES (lower(hex(randomblob(16))), ?);
INSERT INTO plant (gardener_id, species, height) VALUES (?, ?, ?) ON CONFLICT (gardener_id, species) DO UPDATE SET height = height + excluded.height;
INSERT INTO gardener (id, species, settings) VALUES (?, ?, ?) ON CONFLICT(id) DO UPDATE SET settings = excluded.settings WHERE settings IS NOT excluded.settings;
INSERT INTO gardener (id, species) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING id;
INSERT INTO plant_tags (plant_id, tag) SELECT id, ? FROM plant WHERE gardener_id = ?;
INSERT INTO gardener (id, species) SELECT ?1, ?2 WHERE NOT EXISTS (SELECT 1 FROM gardener WHERE species = ?2);
INSERT INTO plant (gardener_id, species) SELECT ?, ? WHERE (SELECT COUNT(*) FROM plant WHERE removed_at IS NULL) < ? RETURNING id;
REPLACE INTO gardener (id, species) VALUES (?, ?);
UPDATE plant SET species = ? WHERE id = ?;
UPDATE plant SET nickname = NULL, removed_at = CURRENT_TIMESTAMP, done = 1 WHERE id = ? AND removed_at IS NULL;
UPDATE plant SET height = height + 1, nickname = COALESCE(?, nickname) WHERE id = ? RETURNING height;
UPDATE plant SET height = max(0, height - ?1), done = CASE WHEN height > ?1 THEN 0 ELSE 1 END WHERE gardener_id = ?2;
UPDATE gardener SET settings = json_set(coalesce(settings, '{}'), '$.theme', ?) WHERE id = ?;
UPDATE plant SET nickname = (SELECT species FROM gardener WHERE gardener.id = plant.gardener_id) WHERE nickname IS NULL;
DELETE FROM plant;
DELETE FROM plant WHERE id = ? AND gardener_id = ?;
DELETE FROM plant WHERE removed_at IS NOT NULL AND removed_at < datetime('now', '-90 days');
DELETE FROM plant WHERE id IN (SELECT id FROM plant WHERE created_at < datetime('now', ?) ORDER BY id LIMIT ?);
DELETE FROM plant_tags WHERE plant_id NOT IN (SELECT id FROM plant) RETURNING tag;
DELETE FROM gardener WHERE id = ? AND NOT EXISTS (SELECT 1 FROM plant WHERE plant.gardener_id = gardener.id);
