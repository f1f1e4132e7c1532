"""The same small application in every framework, each written as its own documentation would.

A peer is a module with `build(routes)`, which returns an ASGI application with the seven workloads and,
besides, a GET route for each path in `routes`, in the form `/a/:b`.
"""
