"""The names of other frameworks and libraries, with the names here: one table, by the class they are looked for on.

A running program reads it after a failure only (`diagnosis.py`), and `core check` before one. The classes are those of
their public Protocols, whichever engine stands behind one: a fake, an embedded engine, the runtime's. A fix is ahead,
and behind it are the names that it is for, with commas: attributes, or what Python cannot do with such an object:

    "[]" reads an item, "[]=" writes one, "del []" deletes one, "in" looks for one, "for" and "async for" loop,
    "len" counts, "()" calls, "await" awaits, "with" enters, "put(ttl=)" gives an option, "put(…)" too many arguments

A fix in lower case or in backquotes is the name here; one that begins with a capital is a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final


def _by_name(fixes: Mapping[str, str]) -> dict[str, str]:
    return {name: fix for fix, names in fixes.items() for name in names.split(", ")}


_METHODS: Final = ("get", "post", "put", "delete", "patch", "all", "on")
_ROUTE_OPTIONS: Final = {
    '`@app.get("/path")` and `@app.post("/path")`, one above the other, or `@app.all("/path")`': "methods",
    "`res.status(201)` in the handler": "status_code",
    '`@app.get("/path", middleware)`: middleware before the handler': "dependencies",
    "what the handler sends, `res.json(value)`: `core openapi` reads its type there": "response_model",
    "`app.url_for(handler)`: a route needs no name": "name, endpoint",
    "the rule: a slash at the end of a path is ignored": "strict_slashes",
}

_FIXES: Final[Mapping[str, Mapping[str, str]]] = {
    "Request": {
        "`await req.bytes()`, `await req.text()` or `await req.json(T)`": "body",
        "`await req.bytes()`, or `await req.form()`": "data",
        "`await req.bytes()`": "get_data",
        "`await req.json(T)`": "get_json",
        '`req.params["id"]`': "param, path_params, match_info, view_args",
        '`req.query.get("q")`': "query_params, args, GET",
        '`req.query.get_all("tag")`': "queries",
        '`(await req.form())["field"]`': "POST, files",
        '`req.query.get("q")`, and `(await req.form())["field"]`': "values",
        '`req.header("Content-Type")`; `await req.json(T)` says itself what is wrong': "is_json",
        '`req.header("Content-Type")`': "content_type",
        '`req.header("Content-Length")`': "content_length",
        '`req.header("User-Agent")`': "user_agent",
        '`req.header("Host")`': "host",
        '`req.header("Accept")`': "accepts, accept, accept_mimetypes",
        '`req.cookies.get("name")`': "cookie, COOKIES",
        '`req.header("X-Name")`': "META, get",
        "`await session_of(req)` of `core.middleware.sessions`": "session",
        "`req.path`; `app.routes` has the table": "route, endpoint",
        "`req.url`": "base_url",
        "`req.ip`": "client, remote_addr, remote",
        "a module's own name: import the application": "app",
        "`await req.json(T)` and `req.query.parse(T)`": "valid",
        '`req.state["name"]`': "var, locals, g",
        '`req.state["name"] = value`': "set",
        "`req.env.DB`, as the Env class has it": "db",
        "`req.env`": "config",
        "`req.method`, `req.path` and `req.headers`: no ASGI scope reaches a handler": "scope",
        "`req.ctx`": "execution_ctx",
    },
    "Response": {
        "`res.text(…)`": "body_text",
        "`res.send(body)`": "bytes, data, set_data, content",
        '`res.cookie("name", "value")`': "set_cookie, cookie()",
        '`res.delete_cookie("name")`': "clear_cookie, clearCookie, unset_cookie",
        '`res.header("X-Name", "value")`': "set_header, add_header, set, headers=",
        '`res.header("Content-Type", "text/csv")`': "type, mimetype",
        "`res.send(body)`, or `res.stream(chunks)` for several": "write",
        "`res.send()`": "end",
        "`res.html(text)`": "render",
        '`raise CoreError(404, "Not Found")`': "not_found, notFound",
        "`res.json(value)`": "media",
        "`res.status(201)`": "code, status=",
        "`res.status(204).send()`": "sendStatus, send_status",
        "`res.file(path)`": "sendFile, send_file",
        '`res.file(path, filename="report.pdf")`': "download, file(download_name=)",
        "A handler is given its response: `return res.status(201).json(value)`.": "__init__(…), __init__(…=)",
        '`res.header("X-Name", "value").json(value)`': "json(headers=)",
        '`res.json({"name": value})`: one value': "json(…=)",
        "`res.json(value)`, or `res.send()` for no body": "json()",
        '`res.header("X-Name", "value").text(text)`': "text(headers=)",
        '`res.header("X-Name", "value").html(text)`': "html(headers=)",
        '`res.header("X-Name", "value").send(body)`': "send(headers=)",
        '`res.header("X-Name", "value")`, one header at a time': "header()",
        "`res.redirect(url, 301)`": "redirect(code=), redirect(status_code=)",
        '`res.file(path, content_type="text/plain")`': "file(mimetype=), file(media_type=)",
    },
    "Router": {
        '`@app.get("/path")` or `@app.on("PURGE", "/path")` for a handler; `app.use("/prefix", router)` for a router': "route",
        '`app.get("/path", handler)`': "add_route, add_url_rule, add_api_route",
        '`@app.on("GET", "/path")`': "api_route",
        '`app.use("/prefix", router)`': "include_router, register_blueprint, __init__(prefix=), __init__(url_prefix=)",
        "`app.use(middleware)`": "add_middleware",
        "`app.use(middleware)`, with `async def middleware(req, res, next)`": "middleware",
        "`app.use(middleware)`: its lines before `await next()`": "before_request",
        "`app.use(middleware)`: its lines after `await next()`": "after_request, teardown_request",
        "`@app.on_error` over `async def handler(err, req, res, next)`": "exception_handler, errorhandler, onError",
        "`app.on_error(handler)`": "add_exception_handler",
        "`@app.not_found` over `async def handler(req, res)`": "notFound",
        "`@app.lifespan` over an async generator function": "on_event, add_event_handler, before_first_request",
        '`@app.scheduled("*/5 * * * *")`': "cron, schedule",
        '`@app.queue("name")` over `async def consume(batch, env, ctx)`': "task",
        "`core dev` on the command line, or `asgi(app, env)` for an ASGI server": "run, listen, __call__()",
        "an entry file for the runtime, which `core new` writes": "fire",
        '`await Client(app, env).get("/path")` of `core.testing`': "request, fetch()",
        "`Client(app, env)` of `core.testing`": "test_client",
        '`router = app.Router()` and `app.use("/prefix", router)`': "basePath",
        "a variable of your module, or a binding": "state",
        "`req.env` in a handler: the application has no bindings of its own": "env, config, settings",
        "`req.env.DB` in a handler: the application has no bindings of its own": "db",
        "the application itself, or `app.Router()` for another": "router",
        "`app.routes`": "url_map",
        "`logging.getLogger(__name__)`": "logger",
        '`app.use("/static", static(directory="public"))` of `core.middleware.static`': "static",
        "`core openapi` on the command line": "openapi",
        "`core dev` on the command line": "debug",
        "fakes in the Env of a test: `Client(app, Env(DB=FakeD1Database()))`": "dependency_overrides",
        "`app.use(cors(…))` of `core.middleware.cors`": "cors",
        '`@app.websocket("/path")`': "ws, websocket_route",
        '`@app.get("/path")`': "get()",
        '`Router()`, and `app.use("/prefix", router)`': "__init__(…)",
        **{
            fix: ", ".join(f"{method}({option}=)" for method in _METHODS for option in options.split(", "))
            for fix, options in _ROUTE_OPTIONS.items()
        },
    },
    "CoreError": {'`CoreError(404, "Not Found")`, both by position': "__init__()"},
    "create_app": {
        "`@app.lifespan` over an async generator function": "(lifespan=)",
        "`name` in the configuration file and `version` in `pyproject.toml`: `core openapi` reads them there": (
            "(title=), (version=)"
        ),
        "`app.use(middleware)`": "(middleware=), (dependencies=)",
    },
    "timeout": {"`timeout(duration=5000)`, in milliseconds": "(…), (…=)"},
    "cors": {'`cors(origins=["https://app.example.com"])`': "(…), (allow_origins=), (origin=)"},
    "rate_limit": {'`rate_limit(kv_binding="COUNTERS", limit=10, window=60)`, in seconds': "(…), (kv=)"},
    "body_limit": {"`body_limit(max_size=1024 * 1024)`, in bytes": "(…)"},
    "sessions": {'`sessions(kv_binding="SESSIONS", secret=lambda req: req.env.SESSION_SECRET)`': "(…)"},
    "secure_hdrs": {
        "`secure_hdrs(strict_transport_security=…)`": "(hsts=)",
        "`secure_hdrs(content_security_policy=…)`": "(csp=)",
    },
    "Params": {'`req.params["id"]`': "()"},
    "Query": {
        '`req.query.get("q")`': "()",
        '`req.query.get_all("tag")`': "getlist",
        "`req.query.pairs`": "multi_items",
        "`dict(req.query)`": "to_dict",
    },
    "HeadersView": {
        '`req.header("X-Name")`': "()",
        '`req.headers.get_all("X-Name")`': "getlist, get_list",
    },
    "Headers": {
        '`res.append("X-Name", "value")`': "add",
        '`headers.get_all("X-Name")`': "getlist",
    },
    "State": {'`req.state["name"] = value`': "set"},
    "ExecutionContext": {
        "`req.ctx.wait_until(job())`": "add_task, run",
        "`@app.on_error` over `async def handler(err, req, res, next)`": "passThroughOnException",
    },
    "Secret": {
        "`secret.reveal()`": "value, get, get_secret_value, decode, [], in, for",
        "`secret.reveal().encode()`": "encode",
        "`secret.reveal().strip()`": "strip",
        "`secret.reveal().split()`": "split",
        "Give both sides their text: `secret.reveal()`.": "+",
        "`len(secret.reveal())`": "len",
    },
    "KVNamespace": {
        '`await kv.put("key", value)`': "set, []=",
        '`await kv.put("key", value, expiration_ttl=60)`, in seconds': (
            "setex, expire, put(ttl=), put(ex=), put(timeout=), put(expires=), put(expirationTtl=), put(…)"
        ),
        "A namespace has no conditional write. Keep what several requests write in a Durable Object.": "setnx",
        '`await kv.get("key") is not None`': "exists, has, in",
        "A namespace has no counters, and its writes are seen late. Count in a Durable Object.": "incr, decr",
        "`(await kv.list()).keys`": "keys, for, async for",
        '`await kv.list(prefix="a:", cursor=…)`': "scan, scan_iter",
        "`(await kv.list()).keys`, and `await kv.get(names)` for their values": "items, values",
        '`await kv.get(["a", "b"])`': "mget, get_many",
        '`await kv.delete("key")`': "remove, del []",
        '`await kv.get("key")` and `await kv.delete("key")`': "pop",
        '`await kv.get("key")`': "get_text, []",
        '`await kv.get("key", "bytes")`': "get_bytes",
        '`await kv.put_json("key", value)`': "set_json, hset",
        '`await kv.get_json("key", T)`': "hget",
        'Test for None: `value = await kv.get("key")`, then `if value is None:`.': "get(default=), get(…)",
        "Delete one key at a time: `await kv.delete(key)`.": "delete(…)",
        '`await kv.list(prefix="a:")`': "list(…)",
    },
    "KVListResult": {
        "`for key in result.keys`, with `key.name`": "for",
        "`result.keys`": "[], items, results",
        "`len(result.keys)`": "len",
        "`result.list_complete`": "complete",
        "`not result.list_complete`": "truncated",
    },
    "KVKey": {"`key.name`": "key, []"},
    "KVValue": {"`with_metadata.value`": "text, []"},
    "D1Database": {
        "`await db.prepare(sql).bind(…).all()`, or `.first()` or `.run()`": (
            "execute, query, fetch, sql, select, all, run, select_all, cursor, add, [], ()"
        ),
        "`(await db.prepare(sql).all()).results`": "fetchall, fetch_all",
        "`await db.prepare(sql).first()`": "fetchone, fetch_one, fetchrow, first, get",
        '`await db.prepare(sql).first("column")`': "fetchval, scalar",
        "`await db.batch([statement.bind(*values) for values in rows])`": "executemany",
        "`await db.exec(sql)`": "executescript",
        "Nothing has to be opened: `await db.prepare(sql).bind(…).all()`, or `.first()` or `.run()`.": "connect",
        "`db.with_session()`": "session",
        "Nothing has to be closed: remove the call.": "close",
        "A database of the platform has no open transaction: `await db.batch([…])` runs its statements as one.": (
            "commit, rollback, begin, transaction, with"
        ),
        "`db.prepare(sql).bind(value, …)`": "prepare(…)",
        "`await db.prepare(sql).bind(value, …).run()`": "exec(…)",
        "`await db.batch([statement, …])`: one list": "batch(…)",
    },
    "D1PreparedStatement": {
        "`await statement.run()`": "execute",
        "`(await statement.all()).results`": "fetchall, fetch_all, scalars, results, []",
        "`await statement.first()`, or `await statement.first(T)`": "fetchone, fetch_one, get, one_or_none",
        '`await statement.first("column")`': "fetchval, scalar",
        "`for row in (await statement.all()).results`": "for, async for",
        "A statement runs with `.first()`, `.all()`, `.run()` or `.raw()`: await one of them.": "await, ()",
        "Values are given by position, in the order of the `?`: `statement.bind(1, 2)`.": "bind(…=)",
        "Values are given by `bind`: `await statement.bind(1, 2).all()`.": "all(…)",
        "Values are given by `bind`: `await statement.bind(1, 2).run()`.": "run(…)",
        "Values are given by `bind`: `await statement.bind(1, 2).first()`.": "first(…)",
    },
    "D1Result": {
        "`result.results`": "rows, fetchall, all, data, scalars, mappings, in",
        "`await statement.first()` in place of the query": "fetchone, first, one",
        "`result.meta.last_row_id`": "lastrowid, last_row_id, inserted_id",
        "`result.meta.changes`": "rowcount, changes, affected_rows",
        "`result.meta.duration`": "duration",
        "`for row in result.results`": "for",
        "`result.results[0]`": "[]",
        "`len(result.results)`": "len",
        "`result.results[0].keys()`": "keys",
    },
    "D1Meta": {
        "`meta.changes`": "rowcount, rows_affected",
        "`meta.last_row_id`": "lastrowid",
        "`meta.changes`, `meta.last_row_id` and others, as attributes": "[]",
    },
    "D1ExecResult": {"`await db.prepare(sql).all()`, for rows": "results, for, []"},
    "R2Bucket": {
        '`await bucket.get("key")`': "get_object, read, download, open, [], get(…)",
        '`await bucket.put("key", body)`': "put_object, write, save, set, upload, []=",
        '`await bucket.put("key", body)`, with the file\'s bytes': "upload_file, upload_fileobj",
        '`await bucket.get("key")`, and `await found.bytes()`': "download_file, download_fileobj",
        '`await bucket.delete("key")`': "delete_object, delete_objects, remove, del []",
        '`await bucket.list(prefix="a/")`': "list_objects, list_objects_v2, objects, list(…)",
        '`await bucket.head("key")`, None where there is none': "exists, has, head_object, stat",
        '`await bucket.put("to", (await bucket.get("from")).body)`': "copy",
        "A binding signs no URLs. Serve the object from a route: `res.stream(found.body)`.": "generate_presigned_url",
        "A binding has no URLs. Serve the object from a route: `res.stream(found.body)`.": "url",
        '`await bucket.head("key") is not None`': "in",
        "`(await bucket.list()).objects`": "for, async for",
        '`await bucket.put("key", body, http_metadata={"content_type": "text/plain"})`': "put(content_type=)",
        '`await bucket.put("key", body, custom_metadata={"name": "value"})`': "put(metadata=)",
        '`await bucket.delete(["a", "b"])`': "delete(…)",
    },
    "R2ObjectBody": {
        "`await found.bytes()`, `await found.text()` or `await found.json()`": "read, content, data, get, []",
        "`found.http_metadata.content_type`": "content_type",
        "`found.custom_metadata`": "metadata",
        "`found.size`": "content_length",
        "`found.uploaded`": "last_modified",
        "`async for chunk in found.body`": "iter_chunks, for, async for",
    },
    "R2Object": {
        "`head` and `list` give no body: `await bucket.get(key)`": "read, body, text, bytes, json",
        "`found.http_metadata.content_type`": "content_type",
        "`found.custom_metadata`": "metadata",
        "`found.uploaded`": "last_modified",
        "`found.key`": "name",
        "`found.key`, `found.size` and others, as attributes": "[]",
    },
    "R2Objects": {
        "`[found.key for found in result.objects]`": "keys, contents",
        "`for found in result.objects`": "for",
        "`result.objects[0]`": "[]",
        "`len(result.objects)`": "len",
    },
    "Queue": {
        "`await queue.send(body)`": (
            "put, send_message, publish, enqueue, push, add, append, lpush, delay, put_nowait, apply_async, ()"
        ),
        "`await queue.send_batch(messages)`": "send_messages",
        '`@app.queue("name")` over `async def consume(batch, env, ctx)`': (
            "get, receive, receive_messages, pop, consume_messages, subscribe, for, async for"
        ),
        "`await queue.send(body, delay_seconds=60)`": "send(delay=), send(countdown=)",
        "`await queue.send(body)`: one body, and `await queue.send_batch(messages)` for several": "send(…)",
    },
    "MessageBatch": {
        "`for message in batch.messages`": "for",
        "`batch.messages[0]`": "[]",
        "`len(batch.messages)`": "len",
        "`batch.ack_all()`": "ack",
        "`batch.retry_all()`": "retry",
        "`message.body` of each of `batch.messages`": "body",
    },
    "Message": {
        "`message.body`": "data, payload, value, json, []",
        "`message.ack()`": "delete",
        "`message.retry()`": "nack",
        "`message.id`": "message_id",
    },
    "DurableObjectNamespace": {
        '`namespace.get_by_name("name")`': "[], (), get_stub",
        '`namespace.get_by_name("name")`: an object is made when it is first called': "create",
        "A namespace does not list its objects. Keep their names in one of them, or in a database.": "for",
    },
    "DurableObject": {
        "`self.ctx`": "state",
        "`self.ctx.storage`": "storage",
        "`self.ctx.storage.sql`": "sql",
    },
    "DurableObjectState": {
        '`await ctx.storage.get("key")`': "get, []",
        '`await ctx.storage.put("key", value)`': "put, []=",
        "`ctx.storage.sql`": "sql",
        "`self.env`": "env",
        "`await ctx.storage.set_alarm(time)`": "set_alarm",
    },
    "DurableObjectStorage": {
        '`await storage.put("key", value)`': "set, []=",
        '`await storage.get(["a", "b"])`': "get_many",
        '`await storage.put({"a": 1})`': "put_many",
        "`list(await storage.list())`": "keys",
        "`(await storage.list()).items()`": "items",
        '`await storage.get("key") is not None`': "exists, in",
        "`await storage.delete_all()`": "clear",
        "`storage.sql.exec(sql, value, …)`": "execute, exec, prepare",
        '`await storage.get("key")`': "[]",
        '`await storage.delete("key")`': "del []",
        "`for key in await storage.list()`": "for",
    },
    "SqlStorage": {
        "`sql.exec(query, value, …)`": "execute, prepare, query, run, all, first, (), cursor",
        "Nothing has to be committed: what an object writes is kept when its event ends.": "commit",
        "`self.ctx.storage.transaction_sync(function)`": "transaction",
    },
    "SqlStorageCursor": {
        "`cursor.to_array()`, or `for row in cursor`": "fetchall, all, results, rows, [], len",
        "`next(cursor, None)`, or `cursor.one()` for exactly one row": "fetchone, first, get",
        "`cursor.rows_written`": "rowcount",
        "`cursor.as_(Message).to_array()`, or `for message in cursor.as_(Message)`": "to_array(…)",
        "`cursor.as_(Message).one()`": "one(…)",
        "Rows are there at once: remove the `await`.": "await",
        "`for row in cursor`": "async for",
    },
    "Client": {
        '`await client.get("/path")`, or `client.request(method, path)`': "open, send",
        '`socket = await client.websocket("/path")`': "websocket_connect",
        "`client.cookies`": "cookie_jar",
        '`client.cookies["name"] = "value"`': "set_cookie",
        "`async with Client(app, env) as client`": "with",
        "`json=value` for JSON, or `body=text`": "request(data=)",
        "`body=text`": "request(content=)",
        '`query={"q": "1"}`': "request(params=), request(query_string=)",
        '`client.cookies["name"] = "value"` before the request': "request(cookies=)",
        "`body=…` with the bytes of the form, and its `content-type` in `headers=`": "request(files=)",
        "Remove it: a request to the application is a call of it.": "request(timeout=)",
        'Remove it: follow `response.headers["Location"]` yourself.': "request(follow_redirects=)",
        '`await client.get("/path", json=value)`: options by name': "get(…)",
        '`await client.post("/path", json=value)`: options by name': "post(…)",
        '`await client.put("/path", json=value)`: options by name': "put(…)",
        '`await client.patch("/path", json=value)`: options by name': "patch(…)",
        '`await client.delete("/path", json=value)`: options by name': "delete(…)",
        "`Client(app, env)`": "__init__(…)",
    },
    "http.Response": {
        "`response.status`": "status_code",
        "`await response.bytes()`": "content, data, read, aread, get_data",
        "`await response.json()`": "get_json, json_body",
        "`response.ok`": "is_success",
        "`assert response.ok`": "raise_for_status",
        "`client.cookies`, or `response.headers.get_set_cookie()`": "cookies",
        '`response.headers["X-Name"]`': "header",
        '`response.headers["Content-Type"]`': "charset",
        "`(await response.json())[…]`": "[]",
        '`res.cookie("name", "value")`, with the handler\'s second argument': "set_cookie",
    },
    "Body": {"`http.Response.from_json(value, status=201)`": "json(status=), json(headers=)"},
    "http.Request": {
        "`request.url`, parsed: `http.URL(request.url)`": "query, query_params, args, params",
        "`fetch` is given it beside the request": "env",
    },
    "FakeClock": {
        "`clock.advance(60)`, in seconds": "tick, move_to, shift, move, forward",
        "`clock.time()`": "now",
    },
    "FakeKVNamespace": {
        '`await kv.get("key")`, and `kv.calls` for what was called': "data, store, storage",
        "`kv.calls`, a list of what was called": "assert_called_with",
    },
    "FakeD1Database": {'A fake is always in memory: `FakeD1Database(migrations="migrations")`.': "__init__(…)"},
    "Call": {"`call.method`, `call.args` and `call.options`": "[]"},
}

NAMES: Final[Mapping[str, Mapping[str, str]]] = {owner: _by_name(fixes) for owner, fixes in _FIXES.items()}
"""The names of other frameworks and libraries, by class."""

MODULE: Final[Mapping[str, str]] = _by_name(
    {
        '`raise CoreError(404, "Not Found")`': "HTTPException, abort",
        "`res.json(value)`": "jsonify, JSONResponse",
        "`res.html(text)`": "HTMLResponse, render_template",
        "`res.redirect(url)`": "RedirectResponse, redirect",
        "`res.stream(chunks)`": "StreamingResponse",
        "`Router()`": "APIRouter, Blueprint",
        "`create_app(Env)`": "Hono, FastAPI, Flask, Starlette, Litestar",
        "`app.authenticated(authenticator)` for users, a middleware or a plain call for the rest": "Depends",
        "`req.ctx.wait_until(job())`": "BackgroundTasks",
        "`Client` of `core.testing`": "TestClient",
        "an object of your own with `async def fetch(self, request)`: a service has no fake": "FakeFetcher",
        "an attrs class: `@attrs.frozen`": "BaseModel",
        "a class of your own: `class Env(Bindings)` with `@attrs.frozen`": "Env",
        "`req: Request[Env]` and `res: Response`, two objects": "Context",
        "`cors(origins=…)` of `core.middleware.cors`": "CORSMiddleware",
        "`compress()` of `core.middleware.compress`": "GZipMiddleware",
        "`sessions(…)` of `core.middleware.sessions`": "SessionMiddleware",
        "`trusted_hosts(…)` of `core.middleware.trusted_hosts`": "TrustedHostMiddleware",
        "`static(directory=…)` of `core.middleware.static`": "StaticFiles, serveStatic",
        "`rate_limit(…)` of `core.middleware.rate_limit`": "Limiter",
        "`await session_of(req)` of `core.middleware.sessions`": "session",
        '`req.state["name"]`': "g",
        "a module's own name: import the application": "current_app",
        "`req.url_for(handler)`": "url_for",
        "`res.file(path)`": "send_file, FileResponse",
        "`res.text(text)`": "PlainTextResponse",
        '`(await req.form())["file"]`': "UploadFile, File",
        '`(await req.form())["name"]`': "Form",
        "`await req.json(T)`": "Body",
        '`req.params["id"]`, or `from pathlib import Path` for files': "Path",
        '`req.header("X-Name")`': "Header",
        '`req.cookies.get("name")`': "Cookie",
        '`@app.websocket("/path")` over `async def handler(req, socket)`; its type is `WebSocket` of `core.http.websocket`': "WebSocket",
    }
)
"""The names of other frameworks that a program imports, or uses without importing them."""

MODULES: Final[Mapping[str, str]] = _by_name(
    {
        "the second argument of a handler: `res.json(value)`, `res.redirect(url)` and its other methods": "responses",
        "`from core import CoreError`": "exceptions",
        "`from core import Request`": "requests",
        "`from core.testing import Client`": "testclient",
        "`from core.middleware.static import static`": "staticfiles",
        "`core.middleware.basic_auth`, `bearer_auth` or `jwt`, or an authenticator of your own": "security",
        "`req.ctx.wait_until(job())`": "background",
        "`core.http.websocket`": "websockets",
        "a method of a Router, `@router.get(path)`": "decorators",
    }
)
"""Modules of other frameworks, which programs look for in `core`."""

WORKERD: Final = frozenset(["js", "pyodide"])
"""The modules of the runtime, which the platform's `workers` imports too."""

IN_WORKERD: Final = (
    "Import it in the function that needs it, and run that with `core serve`: the module is in workerd alone. What "
    "`workers` has is `create_app(Env)` and `entrypoint(app)` here"
)
