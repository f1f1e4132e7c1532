"""SQL as D1 understands it: tokens, migrations, statements.

For tools and embedded engines; a worker loads nothing of it.
"""
