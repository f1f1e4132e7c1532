"""The content of a configuration file: one frozen class per table, and the result of loading a file.

The tables follow the platform's own schema for `wrangler.toml`, key by key; a test holds them against it. Which
keys are inherited or unchecked is decided in `keys.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from core.bindings.kinds import KINDS
from core.values import field, frozen

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

# Tables of bindings -------------------------------------------------------------------------------------------------


@frozen
class KVTable:
    """`[[kv_namespaces]]`: a key-value namespace."""

    binding: str
    id: str | None = None
    preview_id: str | None = None
    remote: bool = False


@frozen
class D1Table:
    """`[[d1_databases]]`: a SQL database. `migrations_dir` is relative to the configuration file."""

    binding: str
    database_name: str | None = None
    database_id: str | None = None
    preview_database_id: str | None = None
    migrations_table: str = "d1_migrations"
    migrations_dir: str = "migrations"
    database_internal_env: str | None = None
    remote: bool = False


@frozen
class R2Table:
    """`[[r2_buckets]]`: an object bucket."""

    binding: str
    bucket_name: str | None = None
    preview_bucket_name: str | None = None
    jurisdiction: str | None = None
    remote: bool = False


@frozen
class QueueProducer:
    """`[[queues.producers]]`: where messages are sent. `delivery_delay` is in seconds, 0 to 86,400."""

    binding: str
    queue: str
    delivery_delay: int = 0
    remote: bool = False


@frozen
class QueueConsumer:
    """`[[queues.consumers]]`: a queue that this worker consumes. Defaults are the platform's.

    `max_batch_size` is 1 to 100 messages, `max_batch_timeout` 0 to 60 seconds, `max_retries` 0 to 100,
    `retry_delay` 0 to 86,400 seconds, `max_concurrency` 1 to 250 (None: as many as it takes).
    """

    queue: str
    type: Literal["worker", "http_pull"] = "worker"
    max_batch_size: int = 10
    max_batch_timeout: float = 5
    max_retries: int = 3
    dead_letter_queue: str | None = None
    max_concurrency: int | None = None
    visibility_timeout_ms: int | None = None
    retry_delay: int = 0


@frozen
class Queues:
    """`[queues]`."""

    producers: Sequence[QueueProducer] = ()
    consumers: Sequence[QueueConsumer] = ()


@frozen
class AiTable:
    """`[ai]`: the models of the platform."""

    binding: str
    staging: bool = False
    remote: bool = False


@frozen
class DurableObjectTable:
    """`[[durable_objects.bindings]]`: the objects of a class. With `script_name` the class is another worker's."""

    name: str
    class_name: str
    script_name: str | None = None
    environment: str | None = None


@frozen
class DurableObjects:
    """`[durable_objects]`."""

    bindings: Sequence[DurableObjectTable] = ()


@frozen
class RenamedClass:
    """An entry of `renamed_classes`: `from` and `to`."""

    from_: str
    to: str


@frozen
class DurableObjectMigration:
    """`[[migrations]]`: the changes of the classes of Durable Objects, step by step."""

    tag: str
    new_classes: Sequence[str] = ()
    new_sqlite_classes: Sequence[str] = ()
    renamed_classes: Sequence[RenamedClass] = ()
    deleted_classes: Sequence[str] = ()


@frozen
class ServiceTable:
    """`[[services]]`: another worker."""

    binding: str
    service: str
    environment: str | None = None
    entrypoint: str | None = None
    props: Mapping[str, Any] | None = None
    remote: bool = False


@frozen
class SimpleLimit:
    """`simple` of a rate limit: `limit` requests in `period` seconds, 10 or 60."""

    limit: int
    period: int


@frozen
class RateLimitTable:
    """`[[ratelimits]]`: a rate limiter of the platform."""

    name: str
    namespace_id: str
    simple: SimpleLimit


@frozen
class VectorizeTable:
    """`[[vectorize]]`: a vector index."""

    binding: str
    index_name: str
    remote: bool = False


@frozen
class AnalyticsEngineTable:
    """`[[analytics_engine_datasets]]`: a dataset for data points."""

    binding: str
    dataset: str | None = None
    remote: bool = False


@frozen
class HyperdriveTable:
    """`[[hyperdrive]]`: a pool of connections to a database elsewhere."""

    binding: str
    id: str
    localConnectionString: str | None = None  # the key's own spelling
    remote: bool = False


@frozen
class WorkflowLimits:
    """`limits` of a workflow."""

    steps: int | None = None


@frozen
class WorkflowTable:
    """`[[workflows]]`: a class of durable, many-step runs."""

    binding: str
    name: str
    class_name: str
    script_name: str | None = None
    remote: bool = False
    limits: WorkflowLimits | None = None


@frozen
class SendEmailTable:
    """`[[send_email]]`: where mail may be sent to."""

    name: str
    destination_address: str | None = None
    allowed_destination_addresses: Sequence[str] = ()
    allowed_sender_addresses: Sequence[str] = ()
    remote: bool = False


@frozen
class NamedTable:
    """A table with a binding's name and nothing else: `[images]`, `[browser]`, `[version_metadata]`."""

    binding: str
    remote: bool = False


@frozen
class MtlsCertificateTable:
    """`[[mtls_certificates]]`: a client certificate for outgoing requests."""

    binding: str
    certificate_id: str
    remote: bool = False


@frozen
class Outbound:
    """`outbound` of a dispatch namespace: the worker that its outgoing requests pass."""

    service: str
    environment: str | None = None
    parameters: Sequence[str] = ()


@frozen
class DispatchNamespaceTable:
    """`[[dispatch_namespaces]]`: workers of one's own users."""

    binding: str
    namespace: str
    outbound: Outbound | None = None
    remote: bool = False


@frozen
class Assets:
    """`[assets]`: static files. `directory` is relative to the configuration file; `binding` is optional."""

    directory: str | None = None
    binding: str | None = None
    html_handling: Literal["auto-trailing-slash", "force-trailing-slash", "drop-trailing-slash", "none"] = (
        "auto-trailing-slash"
    )
    not_found_handling: Literal["single-page-application", "404-page", "none"] = "none"
    run_worker_first: bool | Sequence[str] = False


@frozen
class Rule:
    """`[[rules]]`: files that go up beside the modules, by patterns of their paths below `base_dir`.

    The platform's tool reads it, and takes along `.txt`, `.html` and `.sql` without a rule. `core build` takes every
    file of a package.
    """

    type: Literal["ESModule", "CommonJS", "CompiledWasm", "Text", "Data", "PythonModule", "PythonRequirement"]
    globs: Sequence[str]
    fallthrough: bool | None = None


@frozen
class PythonModules:
    """`[python_modules]`: what of that folder does not go up, by patterns of paths below it."""

    exclude: Sequence[str]


@frozen
class SecretsStoreTable:
    """`[[secrets_store_secrets]]`: a secret that several workers share."""

    binding: str
    store_id: str
    secret_name: str


@frozen
class UnsafeBinding:
    """`[[unsafe.bindings]]`: a binding that the platform knows and its tools do not. `options` are its further keys."""

    name: str
    type: str
    options: Mapping[str, Any] = field(factory=dict[str, Any])


@frozen
class Unsafe:
    """`[unsafe]`."""

    bindings: Sequence[UnsafeBinding] = ()
    metadata: Mapping[str, Any] | None = None
    capnp: Mapping[str, Any] | None = None


# Other tables -------------------------------------------------------------------------------------------------------


@frozen
class Secrets:
    """`[secrets]`: the names of the secrets that the worker cannot do without."""

    required: Sequence[str] = ()


@frozen
class Triggers:
    """`[triggers]`: cron expressions of five fields."""

    crons: Sequence[str] = ()


@frozen
class Route:
    """An entry of `routes`: a pattern, and the zone or custom domain that it belongs to."""

    pattern: str
    zone_id: str | None = None
    zone_name: str | None = None
    custom_domain: bool = False
    enabled: bool = True
    previews_enabled: bool = False


@frozen
class Limits:
    """`[limits]`: CPU time in milliseconds, and outgoing requests, for each request."""

    cpu_ms: int | None = None
    subrequests: int | None = None


@frozen
class Placement:
    """`[placement]`."""

    mode: Literal["off", "smart", "targeted"] | None = None
    hint: str | None = None
    region: str | None = None
    host: str | None = None
    hostname: str | None = None


@frozen
class ObservabilityPart:
    """`[observability.logs]` and `[observability.traces]`."""

    enabled: bool | None = None
    head_sampling_rate: float | None = None
    invocation_logs: bool | None = None
    persist: bool | None = None
    destinations: Sequence[str] = ()


@frozen
class Observability:
    """`[observability]`. Sampling rates are 0 to 1."""

    enabled: bool | None = None
    head_sampling_rate: float | None = None
    logs: ObservabilityPart | None = None
    traces: ObservabilityPart | None = None


@frozen
class TailConsumer:
    """`[[tail_consumers]]`: a worker that gets this one's logs."""

    service: str
    environment: str | None = None


@frozen
class Build:
    """`[build]`: a command that runs before the worker is started or deployed."""

    command: str | None = None
    cwd: str | None = None
    watch_dir: str | Sequence[str] | None = None


@frozen
class Dev:
    """`[dev]`: the address of the local server."""

    ip: str | None = None
    port: int | None = None
    inspector_port: int | None = None
    inspector_ip: str | None = None
    local_protocol: Literal["http", "https"] = "http"
    upstream_protocol: Literal["http", "https"] | None = None
    host: str | None = None
    enable_containers: bool = True
    container_engine: Any = None
    generate_types: bool = False


@frozen
class AiServer:
    """`[core.ai]`: an OpenAI-compatible server that stands in for the platform's models.

    `url` ends where `/chat/completions` begins, for example `http://127.0.0.1:11434/v1`. `key` is the name of the
    secret that holds its API key. `models` maps the platform's model names to the server's; `model` is for all others.
    """

    url: str
    key: str | None = None
    model: str | None = None
    models: Mapping[str, str] = field(factory=dict[str, str])


@frozen
class CoreSettings:
    """`[core]`: the table that only the framework reads.
    The platform's own tools warn that they do not know it, and go on.

    `app` is where the application is, as `module:name`; without it, it is the `app` of the file that `main` names.
    `state` is the directory of the embedded bindings, relative to the configuration file. `checks` gives codes of
    findings a level for the whole project: `off`, `warning` or `error`, which is the default for all but
    `core-openapi`. A table in it, named by a path or a pattern of paths, holds levels for the files there.
    """

    app: str | None = None
    state: str = ".core/state"
    checks: Mapping[str, str | Mapping[str, str]] = field(factory=dict[str, "str | Mapping[str, str]"])
    ai: AiServer | None = None


@frozen
class Worker:
    """The configuration of one environment, with the keys it inherits."""

    # Made by factories: a default would have attrs finish its class whenever this module is imported.
    name: str | None = None
    main: str | None = None
    base_dir: str | None = None
    account_id: str | None = None
    compatibility_date: str | None = None
    compatibility_flags: Sequence[str] = ()
    workers_dev: bool | None = None
    preview_urls: bool | None = None
    routes: Sequence[str | Route] = ()
    route: str | Route | None = None
    triggers: Triggers = field(factory=Triggers)
    migrations: Sequence[DurableObjectMigration] = ()
    limits: Limits = field(factory=Limits)
    placement: Placement | None = None
    observability: Observability | None = None
    assets: Assets | None = None
    rules: Sequence[Rule] = ()
    python_modules: PythonModules | None = None
    build: Build = field(factory=Build)
    core: CoreSettings = field(factory=CoreSettings)

    vars: Mapping[str, Any] = field(factory=dict[str, Any])
    secrets: Secrets | None = None
    kv_namespaces: Sequence[KVTable] = ()
    d1_databases: Sequence[D1Table] = ()
    r2_buckets: Sequence[R2Table] = ()
    queues: Queues = field(factory=Queues)
    ai: AiTable | None = None
    durable_objects: DurableObjects = field(factory=DurableObjects)
    services: Sequence[ServiceTable] = ()
    ratelimits: Sequence[RateLimitTable] = ()
    vectorize: Sequence[VectorizeTable] = ()
    analytics_engine_datasets: Sequence[AnalyticsEngineTable] = ()
    hyperdrive: Sequence[HyperdriveTable] = ()
    workflows: Sequence[WorkflowTable] = ()
    send_email: Sequence[SendEmailTable] = ()
    images: NamedTable | None = None
    browser: NamedTable | None = None
    version_metadata: NamedTable | None = None
    mtls_certificates: Sequence[MtlsCertificateTable] = ()
    dispatch_namespaces: Sequence[DispatchNamespaceTable] = ()
    secrets_store_secrets: Sequence[SecretsStoreTable] = ()
    tail_consumers: Sequence[TailConsumer] = ()
    unsafe: Unsafe = field(factory=Unsafe)

    dev: Dev = field(factory=Dev)


# The result of loading a file --------------------------------------------------------------------------------------


@frozen
class Binding:
    """One name that the worker finds on its Env, and where it is declared.

    `kind` is a key of `KINDS`. `table` is the TOML header it is under, of the environment it belongs to. `entry` is
    the table itself, or the value of a variable; None for a secret. `file` and `line` (from 1) say where; a secret may
    stand in `.dev.vars`, and `line` is None where it cannot be had.
    """

    name: str
    kind: str
    table: str
    file: Path
    line: int | None
    entry: Any = field(default=None, repr=False)

    @property
    def protocol(self) -> str | None:
        """The name of its Protocol in `core.bindings`, or None where the framework has none."""
        return KINDS[self.kind].protocol

    @property
    def place(self) -> str:
        """The position of the declaration, for messages: `wrangler.toml:12 [[kv_namespaces]]`."""
        where = self.file.name if self.line is None else f"{self.file.name}:{self.line}"
        return f"{where} {self.table}" if self.table else where


@frozen
class Unchecked:
    """A part of the file that the framework reads and does not check."""

    key: str
    line: int | None
    reason: str


@frozen
class Configuration:
    """One environment of a configuration file.

    `environment` is None for the top level; `environments` are the names that the file declares. `bindings` has every
    name of the worker's Env: tables, variables, and secrets (`[secrets] required`, `.dev.vars`, `.env`). `unchecked`
    lists the keys that were read without being checked. `digest` changes with the file, and with nothing else.
    """

    path: Path
    environment: str | None
    environments: Sequence[str]
    worker: Worker
    bindings: Mapping[str, Binding]
    unchecked: Sequence[Unchecked] = ()
    digest: str = ""
    lines: Mapping[str, int] = field(factory=dict[str, int], repr=False, eq=False)

    def line_of(self, key: str) -> int:
        """The line of a key of this environment, `main` for example, or of the one that it inherits; else 1."""
        own = f"env.{self.environment}.{key}" if self.environment is not None else key
        return self.lines.get(own) or self.lines.get(key) or 1

    @property
    def is_json(self) -> bool:
        """True if the file is JSON, so that messages show JSON and not TOML."""
        return self.path.suffix != ".toml"

    @property
    def directory(self) -> Path:
        """The directory that the file's relative paths start from."""
        return self.path.parent

    def migrations_directory(self, database: D1Table) -> Path:
        """Return the directory of a database's migrations."""
        return self.directory / database.migrations_dir
