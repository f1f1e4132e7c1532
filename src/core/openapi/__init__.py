"""An application described from facts: the OpenAPI document, and the changes between two of them.

Facts are the responses, errors and inputs of every function of a program (`facts.py`); whoever has a type checker
gathers them (`core.mypy_plugin.facts`). Nothing here knows mypy, so that tests can hold a response against a document.
"""
