"""`python -m core.cli` is `core`."""

from __future__ import annotations

import sys

from core.cli import ended, main

if __name__ == "__main__":
    sys.exit(ended(main()))
