"""What the search of the site finds first.

The engine is the theme's. It is given what counts how much, words that readers bring from elsewhere, and a question
without its small words (`javascripts/search-words.js`).
"""

from __future__ import annotations

import html
import json
import re
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Final

BOOSTS: Final = {
    "index.md": 0.3,
    "how-to/from-*": 2,
    "how-to/?*/": 5,
    "tutorial/?*/": 2,
    "explanation/?*/": 3,
    "reference/api/http-*": 1,
    "reference/api/?*/": 1.4,
    "reference/middleware/comparison/": 0.5,
    "reference/checks/?*/": 2,
    "reference/mistakes/": 2,
    "reference/middleware/?*/": 2,
    "reference/packages/": 0.6,
    "reference/traces/": 0.3,
    "reference/differences/": 0.7,
    "reference/api/": 0.1,
    "reference/?*/": 2.5,
    "*": 0.5,
}
"""How much a page counts, by its address, the first pattern that fits: how-tos before classes, lists of links last."""

ALIASES: Final = {
    "explanation/performance/": "performance benchmark benchmarks speed cold-start latency requests-per-second startup import time slow",
    "explanation/questions/": "faq sqlalchemy orm django pydantic requests numpy pandas cpu-limit license python-version why memory limit tenant limits production-ready mature",
    "explanation/why-env-is-a-class/": "dependency injection depends container",
    "explanation/fakes-and-proofs/": "mock fakes contract",
    "explanation/faults-at-the-edge/": "race lost-update interleaving concurrency idempotent chaos idempotency-key exactly-once duplicate global state singleton module deadlock shared",
    "explanation/what-kv-can-promise/": "eventual consistency stale limits size big large value",
    "explanation/which-place/": "local development production hosting what worker edge isolate",
    "how-to/around-answers/": "pagination cursor page etag if-match conditional download caching cache-control range paginate results offset",
    "how-to/asgi/": "uvicorn hypercorn granian gunicorn asgi",
    "how-to/assistants/": "ai copilot claude cursor llms agents skill",
    "how-to/authenticate/": "auth authentication authorization jwt bearer token api-key oauth guard permission role google github sso roles protect protected route keys",
    "how-to/background-work/": "cron scheduled schedule night nightly task background celery wait_until job periodic run code after response fire-and-forget later",
    "how-to/before-you-go-live/": "nginx caddy proxy tls https certificate healthcheck production checklist http-to-https redirect",
    "how-to/call-others/": "fetch outgoing external third-party api call http-client httpx requests aiohttp webhook",
    "how-to/client/": "python sdk api client generated",
    "how-to/cluster/": "leader replication failover high-availability scale several servers nodes",
    "how-to/cookies-and-sessions/": "session cookie remember flash",
    "how-to/describe-your-api/": "swagger redoc openapi schema api-docs documentation deprecate deprecated summary postman insomnia endpoint description hide exclude breaking change",
    "how-to/durable-objects/": "counter lock coordination alarm tenant one object per user",
    "how-to/errors/": "exception handler problem-details rfc9457 custom error-page 404-page not-found 500 catch traceback debug mode method-not-allowed",
    "how-to/forms/": "upload file multipart form-data form",
    "how-to/from-fastapi/": "fastapi starlette migrate depends",
    "how-to/from-hono/": "hono express migrate",
    "how-to/hosted/": "deploy deployment cloudflare publish pywrangler wrangler ci pipeline release blue-green rollback",
    "how-to/lifespan/": "startup shutdown lifespan pool",
    "how-to/logging/": "logs structlog log",
    "how-to/make-it-fast/": "slow profile profiling optimise n+1 load performance",
    "how-to/mcp/": "mcp model-context-protocol tools agent",
    "how-to/mount/": "static files assets starlette flask wsgi sub-application proxy another app reverse spa favicon frontend index.html serve flask versioning v1 folder directory",
    "how-to/objects/": "s3 bucket presigned signed-url download image",
    "how-to/observe/": "opentelemetry otel tracing trace spans sentry error tracking monitoring",
    "how-to/postgres/": "postgresql asyncpg sqlalchemy hyperdrive psycopg",
    "how-to/python/": "docker container systemd self-host vps kubernetes stop cleanly signal sigterm",
    "how-to/queues/": "message consumer retry dead-letter dlq",
    "how-to/rate-limits/": "throttle throttling ratelimit too-many-requests 429",
    "how-to/rooms/": "websocket websockets chat realtime pubsub broadcast presence online websocket authentication all connected clients push browser",
    "how-to/secrets-and-environments/": "env environment variables dotenv settings config staging secret",
    "how-to/security/": "owasp xss injection hardening sql-injection webhook signature hmac verify stripe",
    "how-to/sign-in/": "login logout register account password argon2 bcrypt user",
    "how-to/sql/": "database migration migrations orm sqlite query upsert transaction foreign-key join sqlalchemy batch bulk insert many update rollback join json-column full-text fts5 like null alembic create table reset local wildcard glob search d1 connect",
    "how-to/stream/": "streaming sse eventsource server-sent-events chunked async generator yield large export csv",
    "how-to/templates/": "jinja jinja2 mako html page render htmx form csrf server-side rendering ssr",
    "how-to/test-a-handler/": "mock patch testclient unittest pytest test unit coverage override dependency fake assert parametrize",
    "how-to/testing-in-depth/": "freeze time clock fault hypothesis simulate network failure chaos flaky breakpoint debugger property based",
    "how-to/typescript/": "typescript client generator frontend react",
    "how-to/validation/": "validation validate pydantic schema 422 required body email enum literal optional default nested min max length custom validator query-parameter list in query",
    "how-to/workerd/": "docker container self-host workerd stop cleanly",
    "reference/api/ai/": "llm model inference embeddings text generation chat completion prompt",
    "reference/api/vectorize/": "vector search similarity embeddings rag",
    "reference/api/d1/": "batch exec prepare bind first all raw session consistent read replica bookmark consistency d1 connect",
    "reference/api/durable-object/": "storage alarm rpc stub transaction eviction",
    "reference/api/kv/": "key keys list prefix delete bulk expiration ttl metadata get put temporary expiry expire",
    "reference/api/queue/": "send batch delay content-type",
    "reference/api/r2/": "object objects list prefix delete bulk head metadata",
    "reference/api/request/": "header headers body query ip client-ip address user-agent method get query-parameter path url cookie read state pass data middleware handler user bytes text",
    "reference/api/response/": "header headers redirect status 204 no-content empty set header change set status-code content-type html file plain text return",
    "reference/api/email/": "send mail smtp",
    "reference/api/fixtures/": "pytest fixture conftest",
    "reference/checks/": "ci pipeline github-actions continuous-integration lint static-analysis turn off disable ignore silence finding warning check",
    "reference/checks/core-env/": "binding name wrangler.toml missing",
    "reference/checks/editors/": "vscode pycharm neovim lsp language-server pyright mypy plugin type-checker types pre-commit sarif",
    "reference/configuration/": "wrangler.toml wrangler config monorepo several workers base_dir",
    "reference/errors/": "404 405 413 422 500 status-codes",
    "reference/json/": "must required string boolean null datetime serialise serialize decimal money enum date uuid",
    "reference/metrics/": "prometheus grafana gauge",
    "reference/middleware/": "custom middleware order",
    "reference/middleware/compress/": "gzip brotli zstd compression",
    "reference/middleware/ip-restriction/": "ip address allowlist blocklist",
    "reference/packages/": "numpy pandas pyodide wheels pip third-party package dependency not found bundle size pure-python support",
    "reference/routing/": "path parameter wildcard route url regex catch-all order first match trailing slash groups prefix nested routers router versioning method",
    "tutorial/begin/": "quickstart getting-started hello-world install reload hot",
    "how-to/record/": "reproduce replay recording production bug traffic",
    "reference/api/assets/": "spa favicon static single-page",
    "how-to/cors/": "preflight options request origin",
    "explanation/explorer/": "debug devtools inspect browse database requests",
    "reference/command-line/": "commands cli options flags reset seed backup restore",
    "reference/api/handlers/": "middleware handler pass data generic type",
    "how-to/contract/": "breaking change",
}
"""What readers of other frameworks call what a page is about: words that it does not have, or not often."""

RECEIVERS: Final = {"core.Request": "req", "core.Response": "res", "core.ExecutionContext": "ctx"}
"""The names that handlers give to an object: its members are found as `req.json`."""


def on_post_build(*, config: Any, **_: Any) -> None:
    """Called by MkDocs when the site is written."""
    site = Path(config["site_dir"])
    index = site / "search" / "search_index.json"
    index.write_text(json.dumps(weighted(json.loads(index.read_text("utf-8"))), ensure_ascii=False), "utf-8")
    words = (site / "javascripts" / "search-words.js").read_text("utf-8")
    for worker in (site / "assets" / "javascripts" / "workers").glob("search.*.js"):
        worker.write_text(f"{words}\n{worker.read_text('utf-8')}", "utf-8")


def weighted(index: dict[str, Any]) -> dict[str, Any]:
    """The index, with what its entries count and the words that they are found by."""
    for entry in index["docs"]:
        page, _, part = entry["location"].partition("#")
        entry["boost"] = next(boost for pattern, boost in BOOSTS.items() if fnmatch(page, pattern))
        if not part and page in ALIASES:
            entry["tags"] = ALIASES[page].split()
        if part and page == "reference/mistakes/":
            # What the tools say is looked for, and not the program around it.
            said = re.findall(r"(core [^<>]*|pytest)<pre>(.*?)</pre>", entry["text"], re.DOTALL)
            entry["text"] = " ".join(f"{tool}<pre>{text}</pre>" for tool, text in said)
            entry["tags"] = sorted(set(re.findall(r"\w[\w.]*", html.unescape(" ".join(text for _, text in said)))))
        class_, _, member = part.rpartition(".")
        if class_ in RECEIVERS:
            entry["tags"] = [RECEIVERS[class_], member]
    return index
