"""The same small application in every framework, each written as its own documentation would.

A peer is a module with `build(routes, four)`, which returns an ASGI application with the seven workloads and,
besides, a GET route for each path in `routes`, in the form `/a/:b`. With `four` it has the four middleware of the
workload `full` over everything; the other six are measured without them.
"""
