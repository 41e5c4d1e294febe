"""The reference of commands, from what `--help` is made of: part of `make docs`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

HEAD = """<!-- Written by docs/generate.py (`make docs`) from what `farlink COMMAND --help` is made of. -->
# Commands

Every command and every option. Data go to standard output, everything else to standard error. Exit status: 0 done, 1 a check
failed, 2 the input is wrong. `farlink COMMAND --help` prints the same.
"""


def page() -> str:
    """The text of `docs/reference/commands.md`."""
    import typer

    from farlink.cli import app

    root: Any = typer.main.get_command(app)
    context = root.context_class(root, info_name="farlink")
    lines = ["## farlink", "", *_parameters(root, context)]
    for command in root.commands.values():
        lines += _described(command, context, 2)
    return HEAD + "\n" + re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def _described(command: Any, parent: Any, depth: int) -> Iterator[str]:
    context = command.context_class(command, info_name=command.name, parent=parent)
    yield from (f"{'#' * min(depth, 3)} {context.command_path}", "", _prose(command.help or ""), "")
    parts = getattr(command, "commands", {})
    if not parts:
        yield from (
            f"`{context.command_path} {' '.join(command.collect_usage_pieces(context))}`".translate(
                {ord(c): None for c in "{}"}
            ),
            "",
        )
    yield from _parameters(command, context)
    if command.epilog:
        examples = re.sub(r"\[/?bold\]", "", command.epilog).strip().removeprefix("Examples").split("\n\n")
        yield from ("```", *(" ".join(line.split()) for line in examples if line.strip()), "```", "")
    for part in parts.values():
        yield from _described(part, context, depth + 1)


def _parameters(command: Any, context: Any) -> Iterator[str]:
    for parameter in command.params:
        if not getattr(parameter, "hidden", False):
            yield f"- {_parameter(parameter, context)}"
    yield ""


def _parameter(parameter: Any, context: Any) -> str:
    left, right = parameter.get_help_record(context)
    left = re.sub(r"\s*<(?:bool|path)>", "", left)
    # What is in brackets at the end: a default, a range, `required`.
    text, bracket, notes = right.partition("  [")
    said = re.sub(r"default: \((.*?)\)", r"default: \1", notes.removesuffix("]"))
    return f"`{left}`: {_prose(text)}" + (f" ({_prose(said)})" if bracket else "")


def _prose(text: str) -> str:
    """Text of `--help` as Markdown."""
    text = re.sub(r"\[/?(?:bold|dim|italic)\]", "", text)
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    return re.sub(r"([*<|])", r"\\\1", "\n\n".join(paragraphs))
