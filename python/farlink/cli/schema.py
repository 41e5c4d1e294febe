"""`farlink schema`."""

from __future__ import annotations

import typer


def schema() -> None:
    """Print the JSON Schema of scenarios: every key, its type, range and default."""
    from farlink import _core

    typer.echo(_core.schema())
