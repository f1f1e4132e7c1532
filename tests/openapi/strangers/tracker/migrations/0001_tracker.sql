CREATE TABLE accounts (
    id INTEGER PRIMARY KEY,
    email TEXT NOT NULL UNIQUE,
    password TEXT NOT NULL,
    role TEXT NOT NULL DEFAULT 'member'
);
CREATE TABLE projects (
    id INTEGER PRIMARY KEY,
    slug TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    owner INTEGER NOT NULL REFERENCES accounts (id),
    archived INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE issues (
    id INTEGER PRIMARY KEY,
    project INTEGER NOT NULL REFERENCES projects (id),
    title TEXT NOT NULL,
    body TEXT,
    state TEXT NOT NULL DEFAULT 'open',
    labels TEXT NOT NULL DEFAULT '[]',
    assignee INTEGER REFERENCES accounts (id),
    created_at TEXT NOT NULL,
    version INTEGER NOT NULL DEFAULT 1
);
CREATE TABLE comments (
    id INTEGER PRIMARY KEY,
    issue INTEGER NOT NULL REFERENCES issues (id),
    author INTEGER NOT NULL REFERENCES accounts (id),
    text TEXT NOT NULL
);
