"""A program read from its text, and what may be said of it."""
