"""CPython in workerd, seen from a developer's machine: fetch it, bundle for it, configure it, run it.

Development and operations only: nothing here is ever part of what a worker loads.
"""
