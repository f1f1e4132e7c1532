CREATE TABLE authors (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE posts (
  id INTEGER PRIMARY KEY,
  author_id INTEGER NOT NULL REFERENCES authors (id),
  answers INTEGER REFERENCES posts (id),
  title TEXT NOT NULL,
  written TEXT NOT NULL DEFAULT '2026-01-01'
);
CREATE INDEX posts_by_author ON posts (author_id, written DESC);
CREATE TABLE tags (name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE post_tags (
  post_id INTEGER NOT NULL REFERENCES posts ON DELETE CASCADE,
  tag TEXT NOT NULL REFERENCES tags (name),
  PRIMARY KEY (post_id, tag)
);
