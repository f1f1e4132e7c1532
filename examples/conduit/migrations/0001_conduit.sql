CREATE TABLE users (
  id INTEGER PRIMARY KEY,
  username TEXT NOT NULL UNIQUE,
  email TEXT NOT NULL UNIQUE,
  password TEXT NOT NULL,
  bio TEXT,
  image TEXT
);
CREATE TABLE follows (
  follower_id INTEGER NOT NULL REFERENCES users,
  followed_id INTEGER NOT NULL REFERENCES users,
  PRIMARY KEY (follower_id, followed_id)
);
CREATE TABLE articles (
  id INTEGER PRIMARY KEY,
  slug TEXT NOT NULL UNIQUE,
  title TEXT NOT NULL,
  description TEXT NOT NULL,
  body TEXT NOT NULL,
  -- A JSON array: tags change with their article, in one statement.
  tag_list TEXT NOT NULL,
  author_id INTEGER NOT NULL REFERENCES users,
  created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  updated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);
CREATE INDEX articles_by_author ON articles (author_id);
CREATE TABLE favorites (
  article_id INTEGER NOT NULL REFERENCES articles ON DELETE CASCADE,
  user_id INTEGER NOT NULL REFERENCES users,
  PRIMARY KEY (article_id, user_id)
);
CREATE INDEX favorites_by_user ON favorites (user_id);
CREATE TABLE comments (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  body TEXT NOT NULL,
  article_id INTEGER NOT NULL REFERENCES articles ON DELETE CASCADE,
  author_id INTEGER NOT NULL REFERENCES users,
  created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  updated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);
CREATE INDEX comments_by_article ON comments (article_id);
