"""The one table of the kinds of bindings: the name of each in the configuration, and the places of its parts.

Everything is written as text, so that this file imports none of it: `core.config` reads it for the tables, `core.env`
for the lines to write when a binding is missing, `core.backends.workerd` for its classes, `core.assembly` and
`core.testing` for the embedded engines and the fakes. A new kind begins with a row here: `tests/bindings/test_kinds.py`
then names every file that is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple


def header(section: Sequence[str], *, environment: str | None = None, many: bool = False, json: bool = False) -> str:
    """A TOML header, such as `[vars]`, `[[queues.producers]]` or `[env.staging.vars]`; in JSON `"env.staging.vars"`."""
    dotted = ".".join([*(("env", environment) if environment else ()), *section])
    if json:
        return f'"{dotted}"'
    return f"[[{dotted}]]" if many else f"[{dotted}]"


_ALL: Final = ("Workerd", "Embedded", "Fake")


class Kind(NamedTuple):
    """A kind of binding.

    `title` is the kind in a sentence. `section` is the key of its table in the configuration; `many` says that it is an
    array of tables; `key` holds the name of the attribute on Env, `example` such a name. `protocol` is its Protocol in
    `core.bindings`, or None for a kind that the framework has no type for; `alias` is a second Protocol, that of an
    attribute which is of this kind and of no other.

    `engines` begin the names of its classes, before that of the Protocol: `WorkerdKVNamespace` in
    `core.backends.workerd`, `EmbeddedKVNamespace` in `core.backends.embedded`, `FakeKVNamespace` in `core.testing`.
    `file` is the name of the file that each package has for it, where it is not its own. `alone` says that workerd
    by itself has a service for it.
    """

    name: str
    title: str
    section: tuple[str, ...]
    protocol: str | None = None
    example: str = "BINDING"
    many: bool = True
    key: str = "binding"
    alias: str | None = None
    engines: tuple[str, ...] = ()
    file: str = ""
    alone: bool = True

    @property
    def module(self) -> str:
        """The name of the file that each package has for it; empty where the framework has none."""
        return self.file or (self.name if self.engines else "")

    def engine(self, place: str) -> str:
        """The name of its class that begins with `place`; empty where there is none."""
        return f"{place}{self.protocol}" if place in self.engines else ""

    def table(self, environment: str | None = None, *, json: bool = False) -> str:
        """Its header, for example `[[kv_namespaces]]` or `[[env.staging.kv_namespaces]]`; in JSON, its key path."""
        return header(self.section, environment=environment, many=self.many, json=json)

    def write(self, name: str, environment: str | None = None, *, json: bool = False) -> str:
        """Return the configuration that declares a binding of this kind: `[[kv_namespaces]] binding = "COUNTERS"`."""
        if not json:
            return f'{self.table(environment)} {self.key} = "{name}"'
        entry = f'{{ "{self.key}": "{name}" }}'
        return f"{self.table(environment, json=True)}: {f'[{entry}]' if self.many else entry}"


KINDS: Final[Mapping[str, Kind]] = {
    kind.name: kind
    for kind in (
        Kind("kv", "KV namespace", ("kv_namespaces",), "KVNamespace", "COUNTERS", engines=_ALL),
        Kind("d1", "D1 database", ("d1_databases",), "D1Database", "DB", engines=_ALL),
        Kind("r2", "R2 bucket", ("r2_buckets",), "R2Bucket", "FILES", engines=_ALL),
        Kind("queue", "queue producer", ("queues", "producers"), "Queue", "JOBS", engines=_ALL),
        Kind("ai", "AI binding", ("ai",), "Ai", "AI", many=False, engines=_ALL, alone=False),
        Kind(
            "durable_object",
            "Durable Object binding",
            ("durable_objects", "bindings"),
            "DurableObjectNamespace",
            "COUNTER",
            key="name",
            engines=_ALL,
        ),
        # The JavaScript class of what merely answers requests is that of many kinds: the annotation decides which.
        Kind("service", "service binding", ("services",), "Fetcher", "AUTH", engines=("Workerd",), file="fetcher"),
        Kind("assets", "assets binding", ("assets",), "Fetcher", "ASSETS", many=False, alias="Assets", file="assets"),
        Kind(
            "rate_limit", "rate limit", ("ratelimits",), "RateLimit", "LIMITER", key="name", engines=_ALL, alone=False
        ),
        Kind("vectorize", "Vectorize index", ("vectorize",), "Vectorize", "INDEX", engines=("Workerd",), alone=False),
        Kind(
            "analytics_engine",
            "Analytics Engine dataset",
            ("analytics_engine_datasets",),
            "AnalyticsEngineDataset",
            "EVENTS",
            engines=("Workerd",),
            alone=False,
        ),
        Kind("hyperdrive", "Hyperdrive binding", ("hyperdrive",), "Hyperdrive", "POSTGRES", engines=_ALL, alone=False),
        Kind("workflow", "workflow", ("workflows",), "Workflow", "ORDERS", engines=("Workerd",), alone=False),
        Kind(
            "send_email",
            "email binding",
            ("send_email",),
            "SendEmail",
            "MAIL",
            key="name",
            engines=("Workerd",),
            file="email",
            alone=False,
        ),
        Kind(
            "images", "Images binding", ("images",), "Images", "IMAGES", many=False, engines=("Workerd",), alone=False
        ),
        Kind(
            "version_metadata",
            "version metadata",
            ("version_metadata",),
            "VersionMetadata",
            "VERSION",
            many=False,
            engines=("Workerd", "Embedded"),
        ),
        Kind("browser", "browser binding", ("browser",), "Fetcher", "BROWSER", many=False, alone=False),
        Kind("mtls_certificate", "mTLS certificate", ("mtls_certificates",), "Fetcher", "CERTIFICATE"),
        Kind("dispatch_namespace", "dispatch namespace", ("dispatch_namespaces",), example="DISPATCHER"),
        Kind("unsafe", "unsafe binding", ("unsafe", "bindings"), key="name"),
        Kind("pipeline", "pipeline", ("pipelines",)),
        Kind(
            "secrets_store",
            "secret of a Secrets Store",
            ("secrets_store_secrets",),
            "SecretsStoreSecret",
            "KEY",
            engines=("Workerd",),
            file="secret_store",
        ),
        Kind("ai_search", "AI Search instance", ("ai_search",)),
        Kind("ai_search_namespace", "AI Search namespace", ("ai_search_namespaces",)),
        Kind("artifacts", "Artifacts binding", ("artifacts",)),
        Kind("agent_memory", "Agent Memory namespace", ("agent_memory",)),
        Kind("analytics", "Analytics SQL binding", ("analytics",), many=False),
        Kind("k2", "K2 producer", ("k2",)),
        Kind("flagship", "Flagship binding", ("flagship",)),
        Kind("worker_loader", "Worker Loader", ("worker_loaders",)),
        Kind("vpc_service", "VPC service", ("vpc_services",)),
        Kind("vpc_network", "VPC network", ("vpc_networks",)),
        Kind("hello_world", "hello world binding", ("unsafe_hello_world",)),
        Kind("media", "Media binding", ("media",), many=False),
        Kind("stream", "Stream binding", ("stream",), many=False),
        Kind("logfwdr", "log forwarder", ("logfwdr", "bindings"), key="name"),
        Kind("var", "variable", ("vars",), many=False),
        Kind("secret", "secret", ("secrets",), "Secret", many=False, file="secret"),
        Kind("wasm_module", "WebAssembly module", ("wasm_modules",), many=False),
        Kind("text_blob", "text blob", ("text_blobs",), many=False),
        Kind("data_blob", "data blob", ("data_blobs",), many=False),
    )
}
"""Every kind of binding that the platform's configuration can declare, by the framework's name for it."""

PROTOCOLS: Final[Mapping[str, Kind]] = {
    protocol: kind
    # Backwards, so that the first kind of a Protocol wins: for a `Fetcher` one writes a service binding.
    for kind in [*KINDS.values()][::-1]
    for protocol in (kind.alias, kind.protocol)
    if protocol is not None and kind.name != "secret"
}
"""The kind to declare for an attribute that is annotated with a Protocol, by its name.

`Secret` is a class, and not here.
"""


def bindings_of(env: object, /) -> Iterator[tuple[str, str, Any]]:
    """Name, kind and value of the bindings that have a class of ours, here, embedded or faked.

    `env` is an Env, or anything with the bindings as attributes.
    """
    kinds = {kind.engine(place): kind.name for kind in KINDS.values() for place in kind.engines}
    named: Iterable[str] = getattr(env, "__dataclass_fields__", getattr(env, "__dict__", ()))
    if (fields := getattr(type(env), "__attrs_attrs__", None)) is not None:
        named = [field.name for field in fields]
    for name in named:
        binding: Any = getattr(env, name, None)
        kind = next((kinds[cls.__name__] for cls in type(binding).__mro__ if cls.__name__ in kinds), None)
        if kind is not None:
            yield name, kind, binding
