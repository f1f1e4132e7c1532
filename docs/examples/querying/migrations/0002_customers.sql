CREATE TABLE customers (
  name TEXT PRIMARY KEY NOT NULL,
  email TEXT
);
CREATE INDEX orders_customer ON orders (customer);
