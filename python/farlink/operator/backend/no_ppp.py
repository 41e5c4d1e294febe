"""The back end of a bundle none of whose lines needs one: each line brings a link of its own."""

from __future__ import annotations

from farlink.operator.backend.link import Link, Listener


class NoPpp:
    """Carries nothing."""

    name = "none"

    def missing(self) -> str | None:
        """Nothing."""
        return None

    def prepare(self) -> list[str]:
        """Nothing is needed, and nothing was left behind."""
        return []

    def delay_s(self, line: str) -> float:  # noqa: ARG002
        """None."""
        return 0.0

    async def start(self, line: str, tty: int, tell: Listener) -> Link:  # noqa: ARG002
        """Never: no line asks for it.

        Raises
        ------
        OSError
            Always.
        """
        raise OSError(f"{line} brings its own link")

    def is_bundle_lost(self) -> bool:
        """Never: there is no common interface."""
        return False

    async def tear_down(self) -> None:
        """Nothing is left."""
