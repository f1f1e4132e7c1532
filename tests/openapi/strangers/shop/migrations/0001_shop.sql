CREATE TABLE products (
    sku TEXT PRIMARY KEY NOT NULL,
    name TEXT NOT NULL,
    price INTEGER NOT NULL,
    stock INTEGER NOT NULL CHECK (stock >= 0)
);
CREATE TABLE orders (
    id TEXT PRIMARY KEY NOT NULL,
    customer TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'placed',
    total INTEGER NOT NULL
);
CREATE TABLE lines (
    order_id TEXT NOT NULL REFERENCES orders (id),
    sku TEXT NOT NULL REFERENCES products (sku),
    quantity INTEGER NOT NULL,
    PRIMARY KEY (order_id, sku)
);
