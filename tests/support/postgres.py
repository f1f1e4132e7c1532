"""A PostgreSQL of one's own: in a temporary folder, by a user without privileges, on a port of this machine."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["postgres"]


def programs() -> Path | None:
    """The folder with `initdb`, where Debian's package has it, or where PATH does."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else None if on_path is None else Path(on_path).resolve().parent


@contextmanager
def postgres() -> Generator[str]:
    """Start a server, and yield the connection string of an empty database.

    Skips the test where there is no PostgreSQL.
    """
    where = programs()
    if where is None:
        if os.environ.get("CI") == "true":
            raise RuntimeError("PostgreSQL is missing: apt install postgresql")
        pytest.skip("PostgreSQL is missing: apt install postgresql")
    # It refuses to run as root.
    root = os.getuid() == 0
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        Path(folder).chmod(0o755)
        data = Path(folder, "data")
        data.mkdir()
        if root:
            shutil.chown(data, "nobody", "nogroup")
        secret = data.with_name("password")
        secret.write_text("secret")
        secret.chmod(0o644)  # whatever the umask that another test has left

        def run(program: str, *arguments: str) -> None:
            command = [str(where / program), "-D", str(data), *arguments]
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                cwd=folder,
                timeout=60,
                user="nobody" if root else None,
                group="nogroup" if root else None,
                extra_groups=[] if root else None,
            )
            assert done.returncode == 0, done.stdout + done.stderr

        run(
            "initdb", "-U", "ada", f"--pwfile={secret}", "--auth=scram-sha-256", "--no-sync", "--locale=C", "-E", "UTF8"
        )
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        run("pg_ctl", "-w", "-l", str(data / "log"), "-o", options, "start")
        try:
            yield f"postgres://ada:secret@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "-m", "immediate", "stop")
