"""A link shortener with accounts, which counts clicks and shows them while they happen."""
