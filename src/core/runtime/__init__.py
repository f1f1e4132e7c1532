"""CPython in workerd, seen from a developer's machine: fetch it, bundle for it, configure it, run it.

Development and operations only: no worker ever loads any of it.
"""
