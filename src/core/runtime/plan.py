"""The records from which workerd's configuration is written: what an application needs, and where it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from core.http.json import JsonObject


@attrs.frozen
class Module:
    """One module of the worker: how the others import it, what it is, and the file it is embedded from."""

    name: str
    kind: str  # esModule | wasm | data | text
    path: str


@attrs.frozen
class Plan:
    """An application's requirements of the runtime, from its configuration.

    Each mapping goes from the binding's name to what it names: a namespace id, a database id, a queue, a class.
    `consumers` has the settings of the queues that it consumes, under workerd's own names.
    `secrets` and `optional_secrets` are read from workerd's own environment, so that no file has them. An optional one
    that is not there is null.
    """

    name: str = "app"
    compatibility_date: str = "2026-04-01"
    compatibility_flags: Sequence[str] = ()
    vars: Mapping[str, object] = attrs.field(factory=JsonObject)
    secrets: Sequence[str] = ()
    optional_secrets: Sequence[str] = ()
    kv: Mapping[str, str] = attrs.field(factory=dict[str, str])
    d1: Mapping[str, str] = attrs.field(factory=dict[str, str])
    queues: Mapping[str, str] = attrs.field(factory=dict[str, str])
    consumers: Mapping[str, Mapping[str, object]] = attrs.field(factory=dict[str, Mapping[str, object]])
    r2: Mapping[str, str] = attrs.field(factory=dict[str, str])
    durable_objects: Mapping[str, str] = attrs.field(factory=dict[str, str])
    crons: Sequence[str] = ()
    services: Mapping[str, str] = attrs.field(factory=dict[str, str])
    absent: Mapping[str, str] = attrs.field(factory=dict[str, str])  # those without a service, each with the reason
    assets: tuple[str, str, Mapping[str, object]] | None = None  # binding ("" for none), folder, wrangler's settings

    @property
    def classes(self) -> tuple[str, ...]:
        """The Durable Object classes, once each."""
        return tuple(dict.fromkeys(self.durable_objects.values()))

    @property
    def names(self) -> set[str]:
        named = (self.vars, self.secrets, self.optional_secrets, self.kv, self.d1, self.queues, self.r2)
        assets = () if self.assets is None else (self.assets[0],)
        return set[str]().union(*named, self.durable_objects, self.services, self.absent, assets)

    @property
    def keeps_state(self) -> bool:
        """True if two processes side by side would each have half of the truth."""
        stores = (self.kv, self.d1, self.r2, self.queues, self.consumers, self.durable_objects, self.crons)
        return any(stores)


@attrs.frozen
class Cluster:
    """The settings that make a process one of several: the bucket of their state with its options, the secret that they
    share, the address at which the others reach it, and how long stopping may take.
    """

    bucket: str
    key: str = attrs.field(repr=False)
    address: str
    options: Sequence[str] = ()
    stop_timeout_ms: int = 8000

    def of_process(self, index: int) -> Cluster:
        """The settings of one of several processes on this machine, which take one port after the other."""
        host, _, port = self.address.rpartition(":")
        return self if int(port) == 0 else attrs.evolve(self, address=f"{host}:{int(port) + index}")


@attrs.frozen
class Socket:
    """An address of workerd, and the service behind it: the application, an entrypoint of it, or another service.

    `proto_header` has the scheme of a request's URL, unchecked, and does not reach the application.
    """

    address: str
    entrypoint: str = ""
    service: str = ""
    proto_header: str | None = None


@attrs.frozen
class External:
    """The address of a service outside of workerd, and the token that it is shown."""

    address: str
    token: str
