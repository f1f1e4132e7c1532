"""`python -m tests.config.platform_schema FILE`: get the schema of the platform's own tool,
and write `keys.txt` with `--write`.

The tool is one npm package of which a single file is wanted, so it is unpacked and not installed: the package and its
checksum stand in `tool.json`. `make schema` keeps the file; `make keys` writes the table after a new version was named.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import subprocess
import tarfile
import tempfile
from pathlib import Path

from tests.config.platform_schema.schema import TABLE, TOOL, table


def fetch(target: Path) -> None:
    """Write the schema of the pinned package to `target`."""
    pinned = json.loads(TOOL.read_text())
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", "--pack-destination", folder, pinned["package"]]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        (archive,) = Path(folder).iterdir()
        digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        if f"sha512-{digest}" != pinned["integrity"]:
            raise SystemExit(f"{pinned['package']} is not what {TOOL.name} names: sha512-{digest}")
        with tarfile.open(archive) as unpacked:
            file = unpacked.extractfile("package/config-schema.json")
            assert file is not None
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.read())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.config.platform_schema")
    parser.add_argument("file", type=Path)
    parser.add_argument("--write", action="store_true", help="write keys.txt from it")
    args = parser.parse_args()
    fetch(args.file)
    if args.write:
        TABLE.write_text(table(json.loads(args.file.read_text())))


if __name__ == "__main__":
    main()
