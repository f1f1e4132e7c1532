"""Middleware, one function per file. Each file is imported by its own name; nothing is registered here.

A worker pays for every module that it loads at start: what few requests need is imported in the function that needs it.
"""
