"""Writing a backup into a cluster, before the first of its nodes starts.

A process of workerd that joins the cluster writes the objects, since the form of the bucket is its own. It runs a
script of ours instead of the application, has the application's namespaces, and answers this process alone. An object
is written in one piece, or in parts that begin anew when the command is run again: what is there and whole stays. R2's
objects, whose form in the bucket is ours, are written without it, after all others.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import secrets
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from core.errors import DeveloperError
from core.runtime.bundle import Bundle, worker_file
from core.runtime.capnp import cluster_config
from core.runtime.cluster_key import prove_key
from core.runtime.moving.buckets import find_buckets
from core.runtime.moving.objects import Contents, Source, find_objects, left_behind, namespaces_of
from core.runtime.plan import Cluster
from core.runtime.process import Workerd, exchange
from core.runtime.r2 import reach_bucket
from core.runtime.toolchain import Toolchain

# The objects that are written at a time. A process that cannot keep up loses its lease, and the next one has less to
# do.
_SIDE_BY_SIDE: Final = (8, 4, 2, 1)
_LEASE: Final = 20.0
# The bytes of an object's parts.
_PART: Final = 1024 * 1024
_SECONDS: Final = 300.0
STOP: Final = 30.0
"""Seconds in which the objects are handed over."""


async def move_into_cluster(
    toolchain: Toolchain,
    bundle: Bundle,
    cluster: Cluster,
    state: Path,
    *,
    skip: Sequence[str],
    say: Callable[[str], None],
) -> None:
    """Write what the unpacked backup `state` has into a cluster that has none of it, and compare the counts.

    Raises DeveloperError where one is there already with something else in it, or cannot be written; all others that
    were begun are finished, and counted.
    """
    plan = bundle.plan
    objects, buckets = find_objects(state, plan, skip), find_buckets(state, plan, skip)
    for line in (*left_behind(state, plan), *(line for bucket in buckets for line in bucket.left())):
        say(f"note: {line}")
    # Now, so that nothing is written where R2 lacks its extra or its rights.
    shared = await reach_bucket(cluster, say) if buckets else None
    if await prove_key(toolchain, cluster):
        say(f"CORE_CLUSTER_KEY is the key of {cluster.bucket} from now on")
    moved = _Import(toolchain, cluster, namespaces_of(plan), objects)
    try:
        for side_by_side in _SIDE_BY_SIDE:
            if moved.problems:
                say(f"{moved.problems[-1]}. Going on in {_LEASE:g} s, with {side_by_side} objects at a time")
                # Until then the objects are still the other process's.
                await asyncio.sleep(_LEASE)
                moved.problems.clear()
            if not await moved.attempt(side_by_side):
                break
    except asyncio.CancelledError:
        say(f"interrupted: {moved.progress}")
        raise
    for line in moved.lines():
        say(line)
    if moved.problems:
        shown = moved.problems[:10]
        more = len(moved.problems) - len(shown)
        raise DeveloperError("\n".join([*shown, *([f"and {more} more"] if more else []), moved.progress]))
    for bucket in buckets:
        assert shared is not None
        await bucket.move(shared, say)


class _Import:
    """Objects on their way into a cluster: what was written, and what was not."""

    def __init__(
        self, toolchain: Toolchain, cluster: Cluster, namespaces: Sequence[str], objects: Sequence[Source]
    ) -> None:
        self._toolchain = toolchain
        self._cluster = cluster
        self._namespaces = namespaces
        self._token = secrets.token_hex(32)
        self._all = len(objects)
        self._left = {(source.namespace, source.id): source for source in objects}
        self._counts: dict[str, Counter[str]] = {source.binding: Counter() for source in objects}
        self.problems: list[str] = []

    @property
    def progress(self) -> str:
        return (
            f"{self._all - len(self._left)} of {self._all} objects of the backup are in the cluster. Run the command "
            "again to go on: those stay as they are"
        )

    def lines(self) -> Iterator[str]:
        for binding, counts in self._counts.items():
            yield f"{binding}: {', '.join(f'{number:,} {unit}' for unit, number in counts.items()) or 'nothing'}"

    async def attempt(self, side_by_side: int) -> bool:
        """Write what is not done yet. Returns True if the process that writes has ended by itself."""
        script = worker_file("import.mjs").decode()
        script += "".join(f"export class Objects{at} extends Imported {{}}\n" for at in range(len(self._namespaces)))
        said: list[str] = []
        with tempfile.TemporaryDirectory(prefix="core-import-") as folder:
            disk = Path(folder) / "disk"
            disk.mkdir()
            text = cluster_config(
                self._cluster, script, folder="kv-blobs", objects=self._namespaces, disk=disk, token=self._token
            )
            workerd = await Workerd.start(
                self._toolchain.workerd, Path(folder) / "import.capnp", text, env=os.environ, on_line=said.append
            )
            self._port = workerd.ports["http"]
            try:
                sources = iter([*self._left.values()])
                await asyncio.gather(*(self._move(sources) for _ in range(side_by_side)))
                if self.problems:
                    await asyncio.wait({workerd.ended}, timeout=2)
                ended = workerd.returncode is not None
            finally:
                # The objects are handed over, so that the first node need not wait for a lease to end.
                await workerd.stop(seconds=STOP)
        if ended:
            self.problems.append(f"the process that writes ended: {said[-1] if said else 'it said nothing'}")
        return ended

    async def _move(self, sources: Iterator[Source]) -> None:
        """Write objects of `sources`, which others take from as well, until there are none or one cannot be written."""
        for source in sources:
            if self.problems:
                return  # one that cannot be written is seldom alone
            name = f"{source.binding} ({source.name or source.id})"
            try:
                with source.contents() as contents:
                    await self._write(source, contents)
                    self._counts[source.binding].update(source.counts(contents))
                    del self._left[source.namespace, source.id]
            except OSError as error:  # TimeoutError is one
                reason = f"{type(error).__name__} {error}"
                self.problems.append(f"{name}: the process that writes it did not answer: {reason}")
            except Exception as error:
                self.problems.append(f"{name}: {error}")

    async def _write(self, source: Source, contents: Contents) -> None:
        """Write an object, in as many parts as it takes. Raises DeveloperError where it is not as it should be."""
        for path, file in contents.files:
            await self._ask("PUT", f"/file?path={path}", file.read_bytes())
        expected = {"tables": dict(contents.tables), "values": contents.count}
        for part in _parts(contents):
            asked = {"namespace": source.namespace, "name": source.name, "id": source.id, **attrs.asdict(part)}
            answer: Mapping[str, Any] = json.loads(await self._ask("POST", "/", json.dumps(asked).encode()))
            if "not found" in answer.get("error", ""):
                raise DeveloperError(
                    "a node of the cluster has it. Stop all nodes, and begin again with the first one after"
                )
            if "error" in answer:
                raise DeveloperError(answer["error"])
            there = answer.get("there")
            if there == expected:
                return
            if there is not None:
                raise DeveloperError(
                    f"the cluster has something else there already: {_shown(there)}, where the backup has "
                    f"{_shown(expected)}. Move a backup before the first node starts, or into another prefix of the bucket"
                )
            written = answer.get("written")
            if written is not None and written != expected:
                raise DeveloperError(f"{_shown(written)} were written, and the backup has {_shown(expected)}")

    async def _ask(self, method: str, path: str, body: bytes) -> bytes:
        """Ask the process that writes, which answers those who have its token."""
        status, answer = await exchange(self._port, method, path, body, _SECONDS, token=self._token)
        if status == 0:
            raise ConnectionError("it closed the connection")
        if not 200 <= status <= 299:
            raise DeveloperError(f"{status} {answer.decode('utf-8', 'replace')}")
        return answer


def _shown(counts: Mapping[str, Any]) -> str:
    return f"{sum(counts['tables'].values())} rows in {len(counts['tables'])} tables and {counts['values']} values"


@attrs.define
class _Part:
    values: list[tuple[str, str]] = attrs.field(factory=list[Any])
    statements: list[tuple[str, object]] = attrs.field(factory=list[Any])
    first: bool = False
    last: bool = False
    alarm: int | None = None


def _parts(contents: Contents) -> Iterator[_Part]:
    part, size = _Part(first=True), 0
    for key, value in contents.values:
        if size > _PART:
            yield part
            part, size = _Part(), 0
        part.values.append((key, base64.b64encode(value).decode()))
        size += len(value)
    for statement in contents.statements:
        part.statements.append((statement.sql, statement.rows))
        size += statement.size
        if size > _PART:
            yield part
            part, size = _Part(), 0
    part.last, part.alarm = True, contents.alarm
    yield part
