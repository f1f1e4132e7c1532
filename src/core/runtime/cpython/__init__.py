"""The application on CPython: a process for the parts that exist once, others that answer requests, a supervisor."""
