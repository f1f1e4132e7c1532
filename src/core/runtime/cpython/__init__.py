"""CPython as a place to run: one process for the parts that exist once, others that answer requests, and their
supervisor.
"""
