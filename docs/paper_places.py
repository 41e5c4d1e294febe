"""Places in farlink that a row of `docs/coverage` names: each is looked up where it is defined, so that none can be outdated.

| kind | written as | looked up in |
|---|---|---|
| key | `transport.tcp.variant = "tahoe"`: without names of tables, with kinds of tables as parts | JSON Schema of scenarios |
| command | `farlink trace show --drops` | parser of the command line |
| python | `farlink.models.arq.round_trip_s` | import |
| paper-item | `epple table-1-theory` | items of `farlink papers` |
| page | `docs/validation/epple.md#blocks` | files and their headings |
"""

from __future__ import annotations

import json
import os.path
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from farlink import _core, papers
from farlink.channels.synthesis.presets import PRESETS
from farlink.channels.synthesis.text import SERIES, settled
from farlink.errors import FarlinkError
from farlink.near_names import instead

ROOT = Path(__file__).resolve().parent.parent
VALIDATION = ROOT / "docs" / "validation"

Schema = dict[str, Any]


class PlaceError(FarlinkError):
    """A place is not there, or not written as its kind is."""


def found(kind: str, place: str, headings: Mapping[str, str]) -> str:
    """The place in Markdown, for a page in `docs/validation`; `headings` are those of the scenario reference by type.

    Raises
    ------
    PlaceError
        If there is no such place; it names the place and the nearest that there is.
    """
    return KINDS[kind](place, headings)


def anchor(heading: str) -> str:
    """Anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _key(place: str, headings: Mapping[str, str]) -> str:
    path, _, value = place.partition(" = ")
    schema = _schema()
    walk = _Walk(schema, place, headings)
    walk.to(schema, path.split("."))
    if value:
        _check_value(schema, walk.node, value, place)
    return f"[`{place}`](../reference/scenario/{walk.page}.md{walk.anchor})"


@cache
def _schema() -> Schema:
    schema: Schema = json.loads(_core.schema())
    return schema


class _Walk:
    """The way through the schema along the parts of a key, and the page of the reference where it ends."""

    def __init__(self, schema: Schema, place: str, headings: Mapping[str, str]) -> None:
        self.schema = schema
        self.place = place
        self.headings = headings
        self.page, self.anchor = anchor(headings.get("", "")), ""
        self.node = schema

    def to(self, node: Schema, parts: list[str]) -> None:
        """Go to the end of `parts`."""
        self.node = node
        node = self._table(node)
        if not parts:
            return
        kinds = _kinds(node)
        if kinds:
            self._check(parts[0], kinds, "kind")
            tag, chosen = kinds[parts[0]]
            self.anchor = "#" + anchor(f'`{tag} = "{parts[0]}"`')
            self._below(chosen, parts[1:])
        else:
            self._below(node, parts)

    def _below(self, table: Schema, parts: list[str]) -> None:
        if not parts:
            return
        keys = {key: value for key, value in table.get("properties", {}).items() if "const" not in value}
        self._check(parts[0], keys, "key")
        self.to(keys[parts[0]], parts[1:])

    def _table(self, node: Schema) -> Schema:
        """The node behind references, choices, lists and tables of names, all of which a path passes through."""
        while True:
            if "$ref" in node:
                name = node["$ref"].rsplit("/", 1)[-1]
                if name in self.headings:
                    self.page, self.anchor = anchor(self.headings[name]), ""
                node = self.schema["$defs"][name]
            elif "anyOf" in node:
                tables = [one for one in node["anyOf"] if one.get("type") != "null" and _is_table(self.schema, one)]
                if not tables:
                    return node
                node = tables[0]
            elif "properties" not in node and isinstance(node.get("additionalProperties"), dict):
                node = node["additionalProperties"]
            elif isinstance(node.get("items"), dict) and _is_table(self.schema, node["items"]):
                node = node["items"]
            else:
                return node

    def _check(self, part: str, known: Collection[str], what: str) -> None:
        if part not in known:
            msg = f"key {self.place!r}: no {what} {part!r} there"
            raise PlaceError(msg, instead(part, known) if known else "the key before it holds no table")


def _kinds(node: Schema) -> dict[str, tuple[str, Schema]]:
    """Tables that a key such as `kind` selects, by its value."""
    chosen = {}
    for one in node.get("oneOf", []):
        for key, value in one.get("properties", {}).items():
            if "const" in value:
                chosen[value["const"]] = (key, one)
    return chosen


def _is_table(schema: Schema, node: Schema) -> bool:
    if "$ref" in node:
        return _is_table(schema, schema["$defs"][node["$ref"].rsplit("/", 1)[-1]])
    options = node.get("anyOf", [])
    return "properties" in node or bool(_kinds(node)) or any(_is_table(schema, one) for one in options)


def _check_value(schema: Schema, node: Schema, text: str, place: str) -> None:
    """Refuse a value that is not among those that a key has by name."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        raise PlaceError(f"key {place!r}: {text} is no value", 'write text as "text", switches as true and false') from None
    allowed = list(_named_values(schema, node))
    if not any(value == one and type(value) is type(one) for one in allowed):
        names = [str(one) for one in allowed]
        hint = instead(str(value), names) if names else "leave the value out: the key has no named ones"
        raise PlaceError(f"key {place!r}: no value {text}", hint)


def _named_values(schema: Schema, node: Schema) -> Iterator[Any]:
    if "$ref" in node:
        yield from _named_values(schema, schema["$defs"][node["$ref"].rsplit("/", 1)[-1]])
    if "const" in node:
        yield node["const"]
    yield from node.get("enum", [])
    kinds = node.get("type", [])
    if "boolean" in ([kinds] if isinstance(kinds, str) else kinds):
        yield from (True, False)
    for one in [*node.get("oneOf", []), *node.get("anyOf", [])]:
        yield from _named_values(schema, one)


def _command(place: str, _headings: Mapping[str, str]) -> str:
    words = place.split()
    if words[:1] != ["farlink"]:
        raise PlaceError(f"command {place!r} does not begin with farlink", "write it as one types it")
    command = _commands()
    words = words[1:]
    while words and hasattr(command, "commands"):
        if words[0] not in command.commands:
            raise PlaceError(f"command {place!r}: no command {words[0]!r}", instead(words[0], command.commands))
        command = command.commands[words.pop(0)]
    options = {name: parameter for parameter in command.params for name in parameter.opts if name.startswith("-")}
    option, arguments = "", []
    for word in words:
        if word in options:
            option = "" if options[word].is_flag else word
        elif word.startswith("-"):
            raise PlaceError(f"command {place!r}: no option {word!r}", instead(word, options))
        else:
            arguments.append((option, word))
            option = ""
    if command.name == "synthesize":
        _check_synthesis(place, arguments)
    elif any(not option for option, _ in arguments):
        raise PlaceError(f"command {place!r} names a file or another argument", "write options only")
    return f"`{place}`"


def _check_synthesis(place: str, arguments: list[tuple[str, str]]) -> None:
    """Look up the preset and the parameters of ``farlink trace synthesize``."""
    presets = [word for option, word in arguments if not option]
    known = [*PRESETS, *SERIES]
    for name in presets:
        if name not in known:
            raise PlaceError(f"command {place!r}: no preset {name!r}", instead(name, known))
    settings = dict(word.partition("=")[::2] for option, word in arguments if option == "--set")
    if settings and presets and presets[0] in PRESETS:
        try:
            settled(presets[0], settings)
        except FarlinkError as error:
            raise PlaceError(f"command {place!r}: {error.message}", error.remedy) from None
    elif settings:
        raise PlaceError(f"command {place!r}: --set is not looked up there", "name a preset of received power before it")


@cache
def _commands() -> Any:
    from typer.main import get_command

    from farlink.cli.commands import app

    return get_command(app)


def _python(place: str, _headings: Mapping[str, str]) -> str:
    first, *parts = place.split(".")
    if first != "farlink" or not all(part.isidentifier() and not part.startswith("_") for part in parts):
        raise PlaceError(f"Python name {place!r} is no public name of farlink", "write it from farlink. on, with dots between")
    value: Any = import_module(first)
    for depth, part in enumerate(parts, 1):
        if not hasattr(value, part):
            try:
                import_module(".".join((first, *parts[:depth])))
            except ModuleNotFoundError:
                names = [name for name in dir(value) if not name.startswith("_")]
                raise PlaceError(f"Python name {place!r}: there is no {part!r}", instead(part, names)) from None
        value = getattr(value, part)
    return f"`{place}`"


def _paper_item(place: str, _headings: Mapping[str, str]) -> str:
    paper, _, item = place.partition(" ")
    if paper not in papers.PAPERS:
        raise PlaceError(f"paper item {place!r}: no paper {paper!r}", instead(paper, papers.PAPERS))
    items = [one.key for one in papers.load(paper).items]
    if item not in items:
        raise PlaceError(f"paper item {place!r}: {paper} has no item {item!r}", instead(item, items))
    return f"[item {item}]({paper}.md#{anchor(item)})"


def _page(place: str, _headings: Mapping[str, str]) -> str:
    name, _, section = place.partition("#")
    path = ROOT / name
    pages = [str(page.relative_to(ROOT)) for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))]
    if name not in pages:
        raise PlaceError(f"page {place!r} does not exist", instead(name, pages))
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    anchors = {anchor(heading): heading for heading in headings}
    if section and section not in anchors:
        raise PlaceError(f"page {place!r}: no heading {section!r}", instead(section, anchors))
    title = f"{path.stem}: {anchors[section]}" if section else headings[0]
    target = os.path.relpath(path, VALIDATION) + (f"#{section}" if section else "")
    return f"[{title}]({target})"


KINDS: dict[str, Callable[[str, Mapping[str, str]], str]] = {
    "key": _key,
    "command": _command,
    "python": _python,
    "paper-item": _paper_item,
    "page": _page,
}
