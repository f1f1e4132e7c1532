"""The key of a cluster, held against the one that its nodes have shared so far.

workerd asks nobody: a node with another key joins, cannot speak to the others, and damages their objects. So the bucket
keeps a fingerprint of the key, of which nothing can be learned in reasonable time, and a node that has another key is
refused before it joins. A process of workerd reads and writes it, since it alone knows how to reach every kind of
bucket; it belongs to a cluster of its own below the prefix, which has no objects.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import tempfile
from pathlib import Path
from typing import Final

import attrs

from core.errors import DeveloperError
from core.runtime.capnp import cluster_config
from core.runtime.plan import Cluster
from core.runtime.process import Workerd, WorkerdError, exchange
from core.runtime.toolchain import Toolchain

_ROUNDS: Final = 200_000
_SECONDS: Final = 30.0


def fingerprint(key: str) -> str:
    """The text that stands for a key in the bucket."""
    return hashlib.pbkdf2_hmac("sha256", key.encode(), b"core cluster key", _ROUNDS).hex()


async def prove_key(toolchain: Toolchain, cluster: Cluster, *, replace: bool = False) -> bool:
    """Refuse a key that is not the cluster's. The first node's key becomes it, as any does with `replace`.

    Returns True where it was written. Raises DeveloperError for another key, and for a bucket that cannot be reached.
    Two first nodes with different keys, started in the same moment, are both refused but for the last to write.
    """
    ours = fingerprint(cluster.key)
    beside = attrs.evolve(
        cluster,
        bucket=f"{cluster.bucket.rstrip('/')}/key",
        key=secrets.token_hex(32),
        address="127.0.0.1:0",
        stop_timeout_ms=1000,
    )
    with tempfile.TemporaryDirectory(prefix="core-cluster-key-") as folder:
        text = cluster_config(beside, _SCRIPT, folder="fingerprint")
        try:
            workerd = await Workerd.start(toolchain.workerd, Path(folder) / "key.capnp", text, seconds=_SECONDS)
        except WorkerdError as error:
            raise _unreachable(cluster, str(error)) from None
        try:
            port = workerd.ports["http"]
            theirs = await _ask(cluster, port, "GET")
            written = theirs == "" or (replace and theirs != ours)
            if written:
                await _ask(cluster, port, "PUT", ours)
                await asyncio.sleep(_OTHERS)
                theirs = await _ask(cluster, port, "GET")
        finally:
            await workerd.stop(seconds=5)
    if theirs != ours:
        raise DeveloperError(
            f"CORE_CLUSTER_KEY is not the key of the cluster in {cluster.bucket}: a node with another key would damage the "
            "objects of the others. Set the key that they have; to change it, stop all of them and start the first one with "
            "--new-cluster-key"
        )
    return written


# Seconds in which another first node may write its own.
_OTHERS: Final = 0.5

_SCRIPT: Final = """\
export default {
  async fetch(request, env) {
    const body = request.method === 'PUT' ? await request.text() : undefined;
    const answer = await env.BUCKET.fetch('http://bucket/fingerprint', { method: request.method, body });
    return answer.status === 404 ? new Response('') : answer;
  },
};
"""


async def _ask(cluster: Cluster, port: int, method: str, body: str = "") -> str:
    try:
        status, answer = await exchange(port, method, "/", body.encode(), _SECONDS)
    except OSError as error:
        raise _unreachable(cluster, f"{type(error).__name__} {error}") from None
    if not 200 <= status <= 299:
        raise _unreachable(cluster, f"{status} {answer.decode('utf-8', 'replace')}")
    return answer.decode("utf-8", "replace")


def _unreachable(cluster: Cluster, said: str) -> DeveloperError:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return DeveloperError(
        f"the bucket {cluster.bucket} cannot be used. Check its name, --cluster-endpoint, --cluster-region and the "
        f"credentials: {lines[-1] if lines else 'no answer'}"
    )
