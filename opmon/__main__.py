"""``python -m opmon`` is ``opmon``."""

from __future__ import annotations

from opmon.cli import main

if __name__ == "__main__":
    main()
