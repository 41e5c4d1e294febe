"""A group of commands of which one, `run`, goes without its name."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup


class RunByDefault(TyperGroup):
    """Takes `farlink GROUP ARGUMENT` for `farlink GROUP run ARGUMENT`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the name if the first argument is no command and no option of the group."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)
