CREATE TABLE orders (
  id INTEGER PRIMARY KEY,
  customer TEXT NOT NULL,
  title TEXT NOT NULL,
  note TEXT,
  tags TEXT NOT NULL DEFAULT '[]',
  placed_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE INDEX orders_placed ON orders (placed_at, id);
CREATE TABLE stock (
  sku TEXT PRIMARY KEY NOT NULL,
  quantity INTEGER NOT NULL CHECK (quantity >= 0)
);
