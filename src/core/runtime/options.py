"""The options of `core serve`: those of serving, of a bundle, of a cluster, and of CPython and its processes."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Final, Literal

import attrs

from core.errors import DeveloperError, UsageError
from core.hosts.limits import Limits
from core.runtime.plan import Cluster
from core.runtime.secrets import read_secrets
from core.telemetry.logs import LogFormat

KEY_VARIABLE = "CORE_CLUSTER_KEY"
_CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


@attrs.frozen
class Front:
    """The proxy in front, as far as it is believed.

    `ip_header` has the client's address, `proto_header` says `http` or `https`; `origin` is the one that clients know,
    such as https://example.com. None: nothing is believed.
    """

    ip_header: str | None = None
    proto_header: str | None = None
    origin: str | None = None


NO_PROXY: Final = Front()


@attrs.frozen(kw_only=True)
class Serving:
    """Options of serving. `stop_timeout` is how long stopping may take, `hang_timeout` how long a process may not
    answer before it is replaced (0: for as long as it likes), `memory` how many bytes it may take (None: as many as it
    likes). With `metrics` the health address has numbers too. `secrets_dir` is a folder of secrets.
    """

    state: Path
    host: str = "127.0.0.1"
    port: int = 8787
    health: tuple[str, int] = ("127.0.0.1", 8788)
    stop_timeout: float = 8.0
    hang_timeout: float = 60.0
    memory: int | None = None
    migrate: bool = True
    front: Front = NO_PROXY
    metrics: bool = False
    log_format: LogFormat = "text"
    secrets_dir: str | None = None


def cluster_of(args: argparse.Namespace, address: str, stop_seconds: float) -> Cluster:
    """The cluster that the options of a command mean, with the key from the environment or a file. Raises
    DeveloperError for an option that is not valid. `address` is the first process's; the next ports are the others'.
    """
    bucket: str = args.cluster
    if not bucket.startswith(("s3://", "gs://")):
        raise UsageError(f"--cluster {bucket} is not a bucket. Write s3://bucket/prefix or gs://bucket/prefix")
    # workerd takes the bucket's credentials from the environment that it inherits.
    given = {name: value for name, value in os.environ.items() if value}  # its tools take an empty one for none
    os.environ.update(read_secrets((), given, args.secrets_dir, optional=(KEY_VARIABLE, *_CREDENTIALS)))
    key = os.environ.get(KEY_VARIABLE, "")
    if len(key) < 32:
        raise DeveloperError(
            f"a cluster needs a secret that its nodes share, at least 32 characters long. Set {KEY_VARIABLE} to the "
            "same on every node, for example to the output of `openssl rand -hex 32`"
        )
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"--cluster-address {address} is not HOST:PORT, for example 10.0.0.1:7000")
    if bucket.startswith("s3://") and not (
        os.environ.get("AWS_ACCESS_KEY_ID") or os.environ.get("AWS_CREDENTIALS_FILE")
    ):
        raise DeveloperError(
            f"{bucket} needs credentials. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_CREDENTIALS_FILE"
        )
    endpoint = args.cluster_endpoint
    named = {"aws_endpoint": endpoint, "aws_region": args.cluster_region or ("auto" if endpoint else None)}
    return Cluster(
        bucket=bucket,
        address=address,
        key=key,
        options=[f"{name}={value}" for name, value in named.items() if value],
        # A tenth is for the supervisor, so that the sum is the time allowed.
        stop_timeout_ms=round(stop_seconds * 900),
    )


@attrs.frozen(kw_only=True)
class ServeOptions(Serving):
    """Options of serving a bundle with so many `processes`, which are those of a `cluster` or have no state.

    With `new_cluster_key` the key becomes the cluster's, whatever it was before.
    """

    processes: int = 1
    private_network: bool = False
    cluster: Cluster | None = None
    new_cluster_key: bool = False


@attrs.frozen(kw_only=True)
class PythonOptions(Serving):
    """Options of serving with so many processes, `workers`, that answer requests. `limits` are those of each."""

    config: Path
    environment: str | None
    workers: int = 1
    limits: Limits = attrs.field(factory=Limits)


@attrs.frozen
class Job:
    """The job of one process, by the `options` of the service. `name` is the supervisor's for it; the others are
    descriptors and paths that it inherits.

    `listener` is the socket to serve at: TCP for `web`, Unix for `state`. `objects_at` is where the Durable Objects
    are, for `web`. `control` is the socket to the supervisor, whose process id is `parent`; at `reports` it asks where
    the process is, and reads the answer. `records` takes log records as lines of JSON, None for lines of text.
    """

    name: str
    role: Literal["web", "state"]
    options: PythonOptions
    control: int
    listener: int
    parent: int
    reports: int = -1
    records: int | None = None
    objects_at: str | None = None
