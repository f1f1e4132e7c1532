"""The `core` command: the handler of Ctrl-C is set before anything is imported, so that there is no traceback."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line. Returns the exit code."""
    try:
        from core.cli import ended
        from core.cli import main as run

        ended(run())
    except KeyboardInterrupt:  # while something was imported; once a command runs, it ends in an order of its own
        return 130


if __name__ == "__main__":
    sys.exit(main())
