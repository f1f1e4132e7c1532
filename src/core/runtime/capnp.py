"""The configuration file that workerd is started with.

Decides which of workerd's bundled services stand behind which binding, where they keep what they keep, and what
changes when the process joins a cluster. It reads no TOML: a `Plan` says what the application has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from core.backends.workerd.env import ABSENT_BINDING
from core.runtime.plan import Cluster, External, Module, Plan, Socket

# The date the bundled services run under; the application keeps its own.
_SERVICE_DATE = "2026-01-01"


@attrs.frozen
class Raw:
    """Text that is already Cap'n Proto, such as a name of an enum or `void`."""

    text: str


_HEAD = 'using Workerd = import "/workerd/workerd.capnp";\n\nconst config :Workerd.Config = '
# V8 paces its full collections by its own heap, of which a service's call is the smallest part: the rest grew by 20 kB
# a call (workerd's issues 6824 and 6894). So each collection is a full one, which takes 10 to 20 ms. With the young
# generation's default of 1 MB that would cost a plain request a tenth of its time.
_V8_FLAGS = ("--gc-global", "--min-semi-space-size=4")
# V8 compiles much of Python a second time, into faster code: a third of a build, which ends before that is worth it.
_BRIEF_FLAGS = ("--liftoff-only",)
_KV = "core-kv"
_D1 = "core-d1"
_QUEUES = "core-queues"
_R2 = "core-r2"
_OBJECTS = "do-storage"
_ASSETS = "core-assets"


def worker_config(
    plan: Plan,
    modules: Sequence[Module],
    *,
    storage: Path | str,
    sockets: Mapping[str, Socket],
    cluster: Cluster | None = None,
    buckets: Mapping[str, External] | None = None,
    extra_bindings: Iterable[Mapping[str, object]] = (),
    private_network: bool = False,
    brief: bool = False,
    adjust: Callable[[Sequence[Mapping[str, object]]], None] = lambda services: None,
) -> str:
    """The text of the configuration. Each service keeps its state in a folder of its own below `storage`.

    `buckets` are the services of the plan's R2 buckets, by name; without them their bindings are absent.
    `private_network` lets the application's own `fetch` reach addresses of private networks. `brief` is for a process
    that soon ends. `adjust` is for tests: it changes the services beside the application.
    """
    if buckets is None:
        plan = attrs.evolve(plan, r2={}, absent={**plan.absent, **dict.fromkeys(plan.r2, _NO_BUCKETS)})
    services: list[Mapping[str, object]] = [_application(plan, modules, storage, extra_bindings)]
    services += _with_state(plan, storage, cluster)
    services += [_bucket(name, (buckets or {})[bucket]) for name, bucket in plan.r2.items()]
    adjust(services[1:])
    if plan.assets is not None:
        _, folder, settings = plan.assets
        static: dict[str, object] = {"path": folder, "config": json.dumps(settings), "userWorker": plan.name}
        services.append({"name": _ASSETS, "assets": static})
    allow = ["public", "private"] if private_network else ["public"]
    network = {"allow": allow, "tlsOptions": {"trustBrowserCas": True}}
    services.append({"name": "internet", "network": network})
    front = _ASSETS if plan.assets is not None else plan.name
    config: dict[str, object] = {
        "services": services,
        "sockets": [
            {
                "name": name,
                "address": socket.address,
                "http": {} if socket.proto_header is None else {"forwardedProtoHeader": socket.proto_header},
                "service": {
                    "name": socket.service or (plan.name if socket.entrypoint else front),
                    **({"entrypoint": socket.entrypoint} if socket.entrypoint else {}),
                },
            }
            for name, socket in sockets.items()
        ],
        "v8Flags": (*_V8_FLAGS, *(_BRIEF_FLAGS if brief else ())),
    }
    if cluster is not None:
        config["cluster"] = _cluster(cluster)
    return f"{_HEAD}{capnp(config)};\n"


def make_folders(storage: Path, plan: Plan, cluster: Cluster | None = None) -> None:
    """Make the storage, and the folders below it that must exist before workerd starts."""
    storage.mkdir(parents=True, exist_ok=True)
    for service in _with_state(plan, storage, cluster):
        disk: Any = service.get("disk")
        if disk is not None:
            Path(disk["path"]).mkdir(exist_ok=True)


def cluster_config(
    cluster: Cluster,
    script: str,
    *,
    folder: str,
    objects: Sequence[str] = (),
    disk: Path | None = None,
    token: str = "",
) -> str:
    """The text of a configuration of one script, whose `env.BUCKET` is a folder in the cluster's bucket.

    With `objects`, the unique keys of namespaces of Durable Objects, each of them is a binding of that name, its class
    the script's `Objects` and a number; `disk` is their folder, and `token` is `env.TOKEN`.
    """
    bindings: list[Mapping[str, object]] = [{"name": "BUCKET", "service": "bucket"}]
    worker: dict[str, object] = {
        "modules": [{"name": "main.mjs", "esModule": script}],
        "compatibilityDate": _SERVICE_DATE,
        "compatibilityFlags": list(_EXTRA_HANDLERS),
        "bindings": bindings,
    }
    services: list[Mapping[str, object]] = [
        {"name": "main", "worker": worker},
        {"name": "bucket", "bucket": {"path": folder}},
    ]
    if objects:
        bindings += [{"name": key, "durableObjectNamespace": f"Objects{at}"} for at, key in enumerate(objects)]
        bindings += [{"name": "SELF", "service": "main"}, {"name": "TOKEN", "text": token}]
        worker["durableObjectNamespaces"] = [_namespace(f"Objects{at}", key) for at, key in enumerate(objects)]
        worker["durableObjectStorage"] = {"localDisk": "disk"}
        services.append({"name": "disk", "disk": {"path": str(disk), "writable": True}})
    config = {
        "services": services,
        "sockets": [{"name": "http", "address": "127.0.0.1:0", "http": {}, "service": {"name": "main"}}],
        "cluster": _cluster(cluster),
    }
    return f"{_HEAD}{capnp(config)};\n"


_NO_BUCKETS = (
    "`core serve` and `core dev` answer R2 beside workerd, which has no buckets of its own. Serve it with them"
)


# The services ---------------------------------------------------------------------------------------------------------


def _application(
    plan: Plan, modules: Sequence[Module], storage: Path | str, extra: Iterable[Mapping[str, object]]
) -> Mapping[str, object]:
    bindings: list[Mapping[str, object]] = []
    for name, value in plan.vars.items():
        bindings.append({"name": name, "text": value} if isinstance(value, str) else _json(name, value))
    bindings += [{"name": name, "fromEnvironment": name} for name in (*plan.secrets, *plan.optional_secrets)]
    bindings += [{"name": name, "kvNamespace": _service(_KV, namespace=of)} for name, of in plan.kv.items()]
    for name, database in plan.d1.items():
        fetcher = {"name": "fetcher", "service": _service(_D1, database=database)}
        wrapped = {"moduleName": "cloudflare-internal:d1-api", "innerBindings": [fetcher]}
        bindings.append({"name": name, "wrapped": wrapped})
    bindings += [{"name": name, "queue": _service(_QUEUES, queue=queue)} for name, queue in plan.queues.items()]
    bindings += [{"name": name, "r2Bucket": f"{_R2}-{name}"} for name in plan.r2]
    bindings += [{"name": name, "durableObjectNamespace": cls} for name, cls in plan.durable_objects.items()]
    bindings += [{"name": name, "service": service} for name, service in plan.services.items()]
    if plan.assets is not None and plan.assets[0]:
        bindings.append({"name": plan.assets[0], "service": {"name": _ASSETS, "entrypoint": "AssetWorker"}})
    if plan.absent:
        bindings.append(_json(ABSENT_BINDING, dict(plan.absent)))
    bindings += extra
    worker: dict[str, object] = {
        "modules": [{"name": module.name, module.kind: Raw(f"embed {quoted(module.path)}")} for module in modules],
        "compatibilityDate": plan.compatibility_date,
        "compatibilityFlags": list(plan.compatibility_flags),
        "bindings": bindings,
    }
    if plan.classes:
        worker["durableObjectNamespaces"] = [_namespace(cls, f"{plan.name}-{cls}") for cls in plan.classes]
        worker["durableObjectStorage"] = {"localDisk": _OBJECTS}
    return {"name": plan.name, "worker": worker}


def _with_state(plan: Plan, storage: Path | str, cluster: Cluster | None) -> list[Mapping[str, object]]:
    """The services that keep something, and their disks."""
    services: list[Mapping[str, object]] = []
    worker = {"name": "worker", "service": plan.name}
    clustered = [] if cluster is None else [_json("CLUSTERED", True)]
    if plan.classes:
        services.append(_disk(_OBJECTS, storage, "do"))
    if plan.kv:
        given = [{"name": "BLOBS", "service": "core-kv-blobs"}, *clustered]
        blobs = _disk("core-kv-blobs", storage, "kv-blobs")
        if cluster is not None:
            # Values too large for a row live in the bucket, where every node finds them, and are cached on this one.
            given.append({"name": "BLOB_CACHE", "service": "core-kv-cache"})
            blobs = {"name": "core-kv-blobs", "bucket": {"path": "kv-blobs"}}
            services.append(_disk("core-kv-cache", storage, "kv-cache"))
        services += [blobs, *_bundled("kv", "KVNamespace", "SHARD", given, storage)]
    if plan.d1:
        services += _bundled("d1", "D1Database", "DATABASE", [], storage)
    if plan.queues or plan.consumers:
        consumers = {queue: {"consumer": "worker", **settings} for queue, settings in plan.consumers.items()}
        given = [_json("CONSUMERS", consumers), worker, *clustered]
        services += _bundled("queues", "QueueShard", "SHARD", given, storage, _EXTRA_HANDLERS)
    if plan.crons:
        given = [_json("CRONS", {"worker": list(plan.crons)}), worker]
        services += _bundled("cron", "Schedule", "SCHEDULE", given, storage, _EXTRA_HANDLERS)
    return services


def _bucket(name: str, external: External) -> Mapping[str, object]:
    token = {"name": "Authorization", "value": external.token}
    return {
        "name": f"{_R2}-{name}",
        "external": {"address": external.address, "http": {"injectRequestHeaders": [token]}},
    }


_EXTRA_HANDLERS = ("service_binding_extra_handlers",)


def _bundled(
    kind: str,
    cls: str,
    binding: str,
    others: Sequence[Mapping[str, object]],
    storage: Path | str,
    flags: Sequence[str] = (),
) -> list[Mapping[str, object]]:
    """One of the services whose code is inside workerd's binary, and the disk it keeps its objects on, by `binding`."""
    name = f"core-{kind}"
    worker = {
        "modules": [{"name": f"{kind}.js", "bundled": f"/workerd/{kind}.js"}],
        "compatibilityDate": _SERVICE_DATE,
        "compatibilityFlags": list(flags),
        "bindings": [{"name": binding, "durableObjectNamespace": cls}, *others],
        "durableObjectNamespaces": [_namespace(cls, cls)],
        "durableObjectStorage": {"localDisk": f"{name}-storage"},
    }
    return [{"name": name, "worker": worker}, _disk(f"{name}-storage", storage, kind)]


def _service(name: str, **props: str) -> Mapping[str, object]:
    return {"name": name, "props": {"json": json.dumps(props)}}


def _namespace(cls: str, key: str) -> Mapping[str, object]:
    return {"className": cls, "uniqueKey": key, "enableSql": True}


def _disk(name: str, storage: Path | str, folder: str) -> Mapping[str, object]:
    return {"name": name, "disk": {"path": f"{storage}/{folder}", "writable": True}}


def _json(name: str, value: object) -> Mapping[str, object]:
    return {"name": name, "json": json.dumps(value, ensure_ascii=False)}


def _cluster(cluster: Cluster) -> Mapping[str, object]:
    return {
        "bucket": cluster.bucket,
        "bucketOptions": list(cluster.options),
        "address": cluster.address,
        "key": cluster.key,
        "stopTimeoutMs": cluster.stop_timeout_ms,
    }


# Cap'n Proto's text form ----------------------------------------------------------------------------------------------


def capnp(value: object) -> str:
    """A value as Cap'n Proto writes it: structs from mappings, lists from sequences."""
    given: Any = value  # not narrowed by what follows
    match value:
        case Raw(text):
            return text
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case str():
            return quoted(value)
        case Mapping():
            return "( " + ", ".join(f"{key} = {capnp(item)}" for key, item in given.items()) + " )"
        case Sequence():
            return "[ " + ",\n    ".join(capnp(item) for item in given) + " ]"
        case _:
            raise TypeError(f"{value!r} has no form in a Cap'n Proto file")


def quoted(text: str) -> str:
    """A text literal. Cap'n Proto reads C's escapes, and UTF-8 as it is."""
    escaped = "".join(
        _ESCAPES.get(char) or (f"\\x{ord(char):02x}" if ord(char) < 32 or ord(char) == 127 else char) for char in text
    )
    return f'"{escaped}"'


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
