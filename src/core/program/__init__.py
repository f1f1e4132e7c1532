"""A program read from its text, and the findings about it."""
