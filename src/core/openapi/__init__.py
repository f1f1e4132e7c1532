"""An application described from facts: the OpenAPI document, and what changed between two of them.

Facts say what every function of a program sends, raises and reads (`facts.py`); whoever has a type checker gathers
them (`core.mypy_plugin.facts`). Nothing here knows mypy, so that tests can hold a response against a document.
"""
