"""The reference of scenarios, a page per table, from the JSON Schema of the types that run: part of `make docs`."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from typing import Any

from scenario_sections import HEADING, SECTIONS

from farlink import _core, units

Schema = dict[str, Any]

MARK = "<!-- Written by docs/generate.py (`make docs`) from `farlink schema`. -->"
FOLDER = "scenario"
_BOUNDS = {"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"}
_OF_GRID = "`[grid]` and `[[grid_zip]]`: what varies."

GRID = """`[grid]` maps dotted paths of the keys above to lists of values; every combination of them is run, the last path
varying fastest. Each `[[grid_zip]]` varies its keys together: the first values of each, then the second values of each. A grid
has at most 100,000 points.

```toml
[grid]
"link.channel.ber" = [1e-8, 1e-7, 1e-6]
"flow.bulk.transport" = ["reno", "sack"]
```
"""


def index() -> str:
    """The page that leads to all tables. It has their headings, which older links name."""
    lines = [
        MARK,
        "# Scenario reference",
        "",
        textwrap.fill(
            "Every key of a scenario file, a page for each table. `NAME` is a name of your choice. A key that is not here is "
            "refused, and so is a value outside what is allowed. Keys carry their unit; whole numbers may be written 1000, "
            "1_000 or 1e3. A default of – means that the key may be left out, with the effect that the meaning gives. What "
            "stands for `link` stands for each `hop.NAME` too. `farlink schema` prints all of it for programs.",
            128,
            break_on_hyphens=False,
        ),
        "",
    ]
    for heading, _, _, where in SECTIONS:
        lines += [f"## {heading}", "", f"{where.replace('](../../', '](../')} [Keys]({FOLDER}/{slug(heading)}.md).", ""]
    lines += ["## The grid", "", f"{_OF_GRID} [How it is written]({FOLDER}/the-grid.md).", ""]
    return "\n".join(lines)


def tables() -> dict[str, str]:
    """The name of each table's page, and its text.

    Raises
    ------
    LookupError
        If a table of the schema has no section.
    """
    schema = json.loads(_core.schema())
    found = {}
    for heading, place, path, where in SECTIONS:
        node = schema["$defs"][place] if place else schema
        lines = [MARK, f"# {heading}", "", where, ""]
        if "oneOf" in node:
            for kind in node["oneOf"]:
                tag, name = _tag(kind)
                lines += [f'## `{tag} = "{name}"`', "", kind["description"].strip(), ""]
                lines += _keys(schema, kind, path, 3)
        else:
            lines += _keys(schema, node, path, 2)
        found[f"{slug(heading)}.md"] = "\n".join(lines).rstrip() + "\n"
    found["the-grid.md"] = f"{MARK}\n# The grid\n\n{GRID}"
    return found


def slug(heading: str) -> str:
    """Name of the page of a table."""
    return heading.lower().replace(" ", "-")


def _tag(kind: Schema) -> tuple[str, str]:
    """The key that selects one of several tables, and its value."""
    return next((key, value["const"]) for key, value in kind["properties"].items() if "const" in value)


def _keys(schema: Schema, node: Schema, path: str, depth: int) -> Iterator[str]:
    """A heading for each key, so that a search and a link find it."""
    keys = {key: value for key, value in node["properties"].items() if "const" not in value}
    if not keys:
        yield from ("No further keys.", "")
    for key, value in keys.items():
        kind, allowed, more = _type(schema, value)
        unit = "B" if key == "bytes" else units.unit_of(key)
        default = "required" if key in node.get("required", ()) else _default(value)
        if "section" in more:
            default = default if default == "required" else "–"
        yield from (f"{'#' * depth} `{f'{path}.{key}' if path else key}`", "")
        facts = [
            kind + (f" in {unit}" if unit and kind.startswith("number") else ""),
            f"allowed: {allowed}" if allowed else "",
            {"required": "**required**", "–": "may be left out"}.get(default, f"default: {default}"),
        ]
        yield from ("; ".join(fact for fact in facts if fact) + ".", "")
        meaning = " ".join(value.get("description", "").split())
        meaning += f" See [{more['section']}]({slug(more['section'])}.md)." if "section" in more else ""
        yield from (meaning.strip(), "") if meaning.strip() else ()
        if "choices" in more:
            yield from (*(f"- `{name}`: {_sentence(words)}" for name, words in more["choices"].items()), "")


def _type(schema: Schema, value: Schema) -> tuple[str, str, dict[str, Any]]:
    """Type, allowed values, and details: choices with descriptions, or the section of a table."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        node = schema["$defs"][name]
        if node.get("type") == "number":
            allowed = node["description"].removeprefix("Allowed: ").rstrip(".")
            return "number", _bounded(allowed, {**node, **value}) if _BOUNDS & value.keys() else allowed, {}
        if name in HEADING:
            return "table", "", {"section": HEADING[name]}
        if "enum" in node:
            return "text", ", ".join(f"`{one}`" for one in node["enum"]), {}
        if "oneOf" in node:
            choices = {one["const"]: one["description"] for one in node["oneOf"]}
            return "text", ", ".join(f"`{one}`" for one in choices), {"choices": choices}
        if name != "Grid":
            msg = f"{name} is a table without a section: add one to SECTIONS"
            raise LookupError(msg)
        return "table", "", {"section": "The grid"}
    if "const" in value:
        return "text", f'`"{value["const"]}"`', {}
    if "enum" in value:
        return "text", ", ".join(f"`{one}`" for one in value["enum"]), {}
    if "anyOf" in value:
        bounds = {name: value[name] for name in _BOUNDS & value.keys()}
        return _any_of(schema, [{**one, **bounds} for one in value["anyOf"] if one.get("type") != "null"])
    if "additionalProperties" in value:
        kind, allowed, more = _type(schema, value["additionalProperties"])
        return f"a {kind} per name", allowed, more
    words = {"string": "text", "boolean": "switch", "array": "list", "number": "number"}
    types = value["type"] if isinstance(value["type"], list) else [value["type"]]
    kind = words[next(one for one in types if one != "null")]
    if kind == "switch":
        return kind, "`true`, `false`", {}
    if kind == "list":
        inner, allowed, more = _type(schema, value["items"])
        return f"list of {inner}s" if inner in ("number", "table", "list") else f"list ({inner})", allowed, more
    return kind, "", {}


def _bounded(allowed: str, node: Schema) -> str:
    """Allowed range of a number whose key has its own bounds, in the words of its type."""
    noun = re.split(r" (?:from|above|between) ", allowed)[0]
    least, most = (node.get(f"exclusive{name}", node.get(name.lower())) for name in ("Minimum", "Maximum"))
    below, above = "exclusiveMinimum" in node, "exclusiveMaximum" in node
    if above:
        return f"{noun} {'above' if below else 'from'} {least:g} {'and' if below else 'to'} {most:g}, {most:g} excluded"
    return f"{noun} {'above' if below else 'from'} {least:g} {'and at most' if below else 'to'} {_number(most)}"


def _number(value: float) -> str:
    """A bound as one writes it: 65,535, 1e6, 0.9999."""
    short = f"{value:g}".replace("e+0", "e")
    return short if float(short) == value else f"{value:,}"


def _any_of(schema: Schema, options: list[Schema]) -> tuple[str, str, dict[str, Any]]:
    found = [_type(schema, option) for option in options]
    found.sort(key=lambda one: one[0] != "number")
    kinds = " or ".join(dict.fromkeys(kind for kind, _, _ in found))
    allowed = " or ".join(allowed for _, allowed, _ in found if allowed)
    return kinds, allowed, {key: value for _, _, more in found for key, value in more.items()}


def _default(value: Schema) -> str:
    default = value.get("default")
    if default is None or isinstance(default, dict):
        return "–"
    if isinstance(default, bool | str):
        return f"`{json.dumps(default)}`" if default != "" else "–"
    if isinstance(default, list):
        return f"`{json.dumps(default)}`"
    return f"{default:g}".replace("e+0", "e")


def _sentence(words: str) -> str:
    words = " ".join(words.split()).rstrip(".")
    return words[:1].lower() + words[1:] if words[1:2] in " abcdefghijklmnopqrstuvwxyz" else words
