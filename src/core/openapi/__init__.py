"""An application described from its types: the OpenAPI document, and the changes between two of them.

`gather.py` has mypy check the program and its facts read: the responses, errors and inputs of every function. Whatever
compares with a document (`contract.py`, `changes.py`, `client.py`) loads no mypy.
"""
