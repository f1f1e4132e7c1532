"""The application behind any ASGI server: `uvicorn hosting:served`."""

# --8<-- [start:asgi]
from core.backends.embedded.kv import EmbeddedKVNamespace
from core.backends.embedded.store import Store
from core.hosts.asgi import asgi
from hello import Env, app

store = Store(".core/state")
served = asgi(app, Env(GREETINGS=EmbeddedKVNamespace(store, "greetings")))
# --8<-- [end:asgi]
