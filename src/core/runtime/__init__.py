"""CPython in workerd: fetch it, bundle for it, configure it and run it, on a developer's machine or a server."""
