"""Pyodide, as far as the framework touches it inside a worker."""
