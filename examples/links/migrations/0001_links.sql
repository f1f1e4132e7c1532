CREATE TABLE users (
  id INTEGER PRIMARY KEY,
  email TEXT NOT NULL UNIQUE,
  password TEXT NOT NULL
);

CREATE TABLE links (
  id INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again, so that a late click is not another link's
  slug TEXT NOT NULL UNIQUE,
  url TEXT NOT NULL,
  owner INTEGER NOT NULL REFERENCES users (id),
  clicks INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX links_of_owner ON links (owner);

CREATE TABLE clicks (
  id TEXT PRIMARY KEY, -- of the queue's message: one that comes twice is counted once
  link INTEGER NOT NULL REFERENCES links (id) ON DELETE CASCADE
);
CREATE INDEX clicks_of_link ON clicks (link);

CREATE TRIGGER count_click AFTER INSERT ON clicks
BEGIN
  UPDATE links SET clicks = clicks + 1 WHERE id = NEW.link;
END;
