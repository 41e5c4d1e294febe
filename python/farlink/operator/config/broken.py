"""A rule of a ``bundle.toml`` that is broken."""

from __future__ import annotations

from dataclasses import dataclass

from farlink.operator.config.toml_places import Path as KeyPath


@dataclass(frozen=True)
class Broken:
    """A rule that is broken, and the key that breaks it; if that has its default, `other` does."""

    path: KeyPath
    message: str
    remedy: str
    other: KeyPath = ()
