"""The text of a statement of SQL: its tokens, and an UPDATE of what was given. What a worker has of SQL."""
