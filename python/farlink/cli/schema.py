"""`farlink schema`."""

from __future__ import annotations

from farlink.cli.messages import data, user_errors


def schema() -> None:
    """Print the JSON Schema of scenarios: every key, its type, range and default."""
    with user_errors():
        from farlink import _core

        data(f"{_core.schema()}\n")
