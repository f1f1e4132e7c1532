"""The format of a bundle: a folder that workerd can run by itself, and a manifest of its contents.

    config.capnp    start it with: workerd serve --experimental config.capnp
    migrations.json the SQL migrations of its D1 databases
    assets/         static files
    manifest.json   name, main module, Durable Object classes, sizes
    modules/        the worker: JavaScript, pyodide, glue, Python files in one piece, the memory snapshot

Writes and reads the folder, and says how large it is. How its parts are found or made is decided elsewhere.
"""

from __future__ import annotations

import gzip
import itertools
import json
import shutil
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import attrs

from core.errors import DeveloperError
from core.http.json import JsonObject
from core.runtime.plan import Module, Plan
from core.runtime.toolchain import PINNED, Toolchain

FORMAT = 2
# The parts of `core` that a worker never loads. Left out, it cannot be imported by mistake, and the bundle is smaller.
DEVELOPMENT = (
    "core/.agents",
    "core/program",
    "core/assembly",
    "core/backends/embedded",
    "core/backends/remote",
    "core/cli",
    "core/config",
    "core/dev",
    "core/hosts/asgi.py",
    "core/hosts/asgi_websocket.py",
    "core/hosts/connection.py",
    "core/hosts/exchange.py",
    "core/hosts/limits.py",
    "core/hosts/output.py",
    "core/hosts/server.py",
    "core/mypy_plugin",
    "core/openapi",
    "core/runtime",
    "core/sql",
    "core/testing",
)
MARK = "modules/entry.mjs"
"""A file by which a bundle is told from other folders: a `manifest.json` may be a page's."""

# The Python module that answers the worker's events.
HOST = "core.hosts.workers.isolate"

_PAGE = 65536  # of WebAssembly's memory

PYODIDE = (("pyodide.mjs", "esModule"), ("pyodide.asm.mjs", "esModule"), ("pyodide.asm.wasm", "wasm"))
LIBRARY = "python_stdlib.zip"


@attrs.frozen
class PackageSize:
    """The share of one package in a bundle, in bytes: as stored, and compressed with gzip."""

    name: str
    version: str
    files: int
    size: int
    compressed: int


@attrs.frozen
class Migrations:
    """The migrations of a database: each file's name and statements, the table that records them, and their hashes."""

    table: str
    files: Sequence[tuple[str, Sequence[str]]]
    hashes: Mapping[str, str] = attrs.field(factory=dict[str, str])


@attrs.frozen
class Bundle:
    folder: Path
    manifest: Mapping[str, Any]

    @property
    def modules(self) -> Sequence[Module]:
        return [Module(**module) for module in self.manifest["modules"]]

    @property
    def packages(self) -> Sequence[PackageSize]:
        return [PackageSize(**package) for package in self.manifest["packages"]]

    @property
    def root(self) -> Path:
        """The root of the application's files when the bundle was made."""
        return Path(self.manifest["root"])

    @property
    def plan(self) -> Plan:
        """The configuration's requirements when the bundle was made."""
        plan = Plan(**self.manifest["plan"])
        if plan.assets is None:
            return plan
        binding, folder, settings = plan.assets
        return attrs.evolve(plan, assets=(binding, str(self.folder.resolve() / folder), settings))

    @property
    def migrations(self) -> Mapping[str, Migrations]:
        try:
            data = json.loads((self.folder / "migrations.json").read_bytes())
        except OSError:
            return {}
        return {binding: Migrations(**found) for binding, found in data.items()}

    @classmethod
    def read(cls, folder: Path) -> Bundle:
        """The bundle in `folder`. Raises DeveloperError if there is none, or one made by another version."""
        try:
            manifest = json.loads((folder / "manifest.json").read_bytes())
            if manifest["format"] != FORMAT or manifest["pyodide"] != PINNED["pyodide"]:
                raise DeveloperError(f"{folder} was made by another version of core. Run `core build` again.")
        except (OSError, ValueError, KeyError) as error:
            raise DeveloperError(f"{folder} is not a bundle. Run `core build` first.") from error
        return cls(folder, manifest)


def write_bundle(
    folder: Path,
    toolchain: Toolchain,
    *,
    plan: Plan,
    main: str,
    files: Mapping[str, bytes],
    methods: Mapping[str, Sequence[str]] = {},
    packages: Sequence[PackageSize] = (),
    snapshot: bytes | None = None,
    host: str = HOST,
    build_worker: bool = False,
    migrations: Mapping[str, Migrations] | None = None,
    root: str = ".",
) -> Bundle:
    """Write the modules and the manifest into `folder`, which is emptied first.

    `files` are the Python files by their path below the bundle's own `sys.path` entry, and `methods` those of each
    Durable Object class. With `build_worker` the worker is one that `core build` asks about the application.
    """
    classes = {cls: methods.get(cls, ()) for cls in plan.classes}
    shutil.rmtree(folder, ignore_errors=True)
    place = folder / "modules"
    place.mkdir(parents=True)
    modules: list[Module] = []

    def add(module: str, kind: str, content: bytes | Path) -> None:
        _put(place / module, content)
        modules.append(Module(name=module, kind=kind, path=f"modules/{module}"))

    if build_worker:
        add("build_worker.mjs", "esModule", worker_file("build_worker.mjs"))
        for look in ("compiled.py", "inspection.py"):
            add(look, "text", worker_file(look))
    add("entry.mjs", "esModule", _entry(classes))
    for script in ("worker.mjs", "boot.mjs", "shim.mjs"):
        add(script, "esModule", worker_file(script))
    for file, kind in PYODIDE:
        add(file, kind, toolchain.pyodide / file)
    compiled = toolchain.compiled_library
    add(LIBRARY, "data", compiled if compiled.exists() else toolchain.pyodide / LIBRARY)
    adapters = {code: f"glue-{index:02}.wasm" for index, code in enumerate(toolchain.adapters)}
    for code, file in adapters.items():
        add(file, "wasm", bytes.fromhex(code))
    site, index, folders = _packed(files)
    add("site.bin", "data", site)
    image, pieces = without_zeros(snapshot or b"")
    if snapshot is not None:
        add("snapshot.bin", "data", image)
    lock = json.loads((toolchain.pyodide / "pyodide-lock.json").read_bytes())["info"]
    described: JsonObject = {
        "host": host,
        "main": main,
        "folders": folders,
        "files": index,
        "lock": {"info": lock, "packages": {}},
        "image": {"size": len(snapshot or b""), "pieces": pieces},
    }
    add("bundle.mjs", "esModule", _bundle_module(described, adapters, snapshot is not None))
    manifest = {
        "format": FORMAT,
        "name": plan.name,
        "main": main,
        "root": root,
        "plan": attrs.asdict(plan),
        "classes": classes,
        "snapshot": snapshot is not None,
        "pyodide": PINNED["pyodide"],
        "workerd": PINNED["workerd"],
        "packages": [attrs.asdict(package) for package in packages],
        "modules": [attrs.asdict(module) for module in modules],
    }
    if migrations:
        listed = {binding: attrs.asdict(found) for binding, found in migrations.items()}
        (folder / "migrations.json").write_text(json.dumps(listed, indent=1), "utf-8")
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", "utf-8")
    return Bundle.read(folder)


def _put(path: Path, content: bytes | Path) -> None:
    """Write a file, or make it a second name of another where the file system has that: 20 MB that never change."""
    if not isinstance(content, Path):
        path.write_bytes(content)
        return
    try:
        path.hardlink_to(content)
    except OSError:
        shutil.copyfile(content, path)


def compressed_size(content: bytes) -> int:
    """The size of `content` after gzip, as a platform that limits the size of a worker counts it."""
    return len(gzip.compress(content, 6))


def _packed(files: Mapping[str, bytes]) -> tuple[bytes, list[tuple[str, int, int]], list[str]]:
    """All files end to end, where each begins and how long it is, and the folders they are in, parents first."""
    index: list[tuple[str, int, int]] = []
    folders: dict[str, None] = {}
    whole = bytearray()
    for path, content in sorted(files.items()):
        folders |= dict.fromkeys(itertools.accumulate(path.split("/")[:-1], "{}/{}".format))
        index.append((path, len(whole), len(content)))
        whole += content
    return bytes(whole), index, list(folders)


def without_zeros(image: bytes) -> tuple[bytes, list[tuple[int, int, int]]]:
    """A memory image without its zeros, and its pieces, in bytes: where each was, where it is now, its length."""
    zero = bytes(_PAGE)
    left = bytearray()
    pieces: list[tuple[int, int, int]] = []
    pages = [image[start : start + _PAGE] for start in range(0, len(image), _PAGE)]
    at = 0
    for empty, run in itertools.groupby(pages, key=lambda page: page == zero[: len(page)]):
        piece = b"".join(run)
        if not empty:
            pieces.append((at, len(left), len(piece)))
            left += piece
        at += len(piece)
    return bytes(left), pieces


def _entry(classes: Mapping[str, Sequence[str]]) -> bytes:
    lines = [
        "// Generated by `core build`: the worker's exports. Durable Object classes have the methods that Python's have.",
        "export { default, Health } from './worker.mjs';",
        "import { durableObject } from './worker.mjs';",
    ]
    lines += [
        f"export const {cls} = durableObject({json.dumps(cls)}, {json.dumps(list(methods))});"
        for cls, methods in classes.items()
    ]
    return ("\n".join(lines) + "\n").encode()


def _bundle_module(described: Mapping[str, object], adapters: Mapping[str, str], has_snapshot: bool) -> bytes:
    lines = ["// Generated by `core build`: the facts of this bundle for boot.mjs."]
    lines += [f"import glue{number} from './{file}';" for number, file in enumerate(adapters.values())]
    lines.append("import snapshot from './snapshot.bin';" if has_snapshot else "const snapshot = null;")
    pairs = ", ".join(f"{json.dumps(code)}: glue{number}" for number, code in enumerate(adapters))
    lines += [
        f"export const glue = {{ {pairs} }};",
        "export { snapshot };",
        f"export const bundle = {json.dumps(described, ensure_ascii=False)};",
    ]
    return ("\n".join(lines) + "\n").encode()


def worker_file(name: str) -> bytes:
    """A file of those that every worker, or a build's, is made of."""
    return (resources.files("core.runtime") / "worker" / name).read_bytes()
