"""An application described from its types: the OpenAPI document, and the changes between two of them.

`gather.py` has mypy check the program. What its expressions are is worked out in `trees.py`, `frames.py`, `calls.py`,
`raised.py` and `program.py`, each on top of the one before; what happens when they run, in `expressions.py`,
`statements.py` and `functions.py`. `document.py` writes what comes of it. Whatever compares with a document
(`contract.py`, `changes.py`, `client.py`) loads no mypy.
"""
