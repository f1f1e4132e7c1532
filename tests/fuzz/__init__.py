"""Fuzzing of all that reads what a client sends. `python -m tests.fuzz --help` says how to run it."""
