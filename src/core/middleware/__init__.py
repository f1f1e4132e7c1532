"""Middleware, one function per file. Each file is imported by its own name; nothing is registered here."""
