"""CPython as a place to run: one process that has what exists once, others that answer requests, and their supervisor."""
