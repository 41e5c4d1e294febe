"""The reference of the Python interface, from the docstrings by griffe; a part of the site, and not of the repository."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

HEAD = """# Python

What `import farlink` has. Times are in seconds, rates in bit/s, sizes in bytes, as the names say. Every module loads at its
first use.
"""

# Modules of the reference: what each page section is of.
MODULES = ("farlink", "farlink.study", "farlink.models", "farlink.channels", "farlink.tune", "farlink.net")
_KINDS = {"parameters": "Parameters", "returns": "Returns", "raises": "Raises", "attributes": "Attributes", "yields": "Yields"}


def page() -> str:
    """The page as Markdown."""
    import griffe

    loader = griffe.GriffeLoader(docstring_parser=griffe.Parser("numpy"), docstring_options={"warnings": False})
    root = loader.load("farlink")
    lines = [HEAD]
    for module in MODULES:
        lines += _module(root, module)
    return "\n".join(lines)


def _module(root: Any, path: str) -> Iterator[str]:
    import importlib

    module = importlib.import_module(path)
    node = root if path == "farlink" else root[path.removeprefix("farlink.")]
    yield from (f"## {path}", "", _first(module.__doc__), "")
    for name in getattr(module, "__all__", []):
        value = getattr(module, name)
        if inspect.ismodule(value) or name.startswith("__"):
            continue
        home = getattr(value, "__module__", path)
        try:
            member = root[f"{home.removeprefix('farlink.')}.{name}"] if home != "farlink" else root[name]
        except KeyError:
            member = node.members.get(name)
        if member is not None and member.has_docstring:
            yield from _member(member, f"{path}.{name}", 3)


def _member(member: Any, name: str, depth: int) -> Iterator[str]:
    short = name.rpartition(".")[2] if depth > 3 else name
    yield from (f"{'#' * depth} {short}", "")
    if member.is_function or member.is_class:
        yield from ("```python", _signature(member), "```", "")
    for section in member.docstring.parsed:
        yield from _section(section)
    if member.is_class:
        for inner in member.members.values():
            is_shown = not inner.name.startswith("_") and not inner.is_alias and inner.has_docstring
            if is_shown and (inner.is_function or "property" in inner.labels):
                yield from _member(inner, f"{name}.{inner.name}", depth + 1)


def _signature(member: Any) -> str:
    parameters = []
    starred = False
    for one in member.parameters:
        if one.name in ("self", "cls"):
            continue
        if one.kind is not None and one.kind.name == "keyword_only" and not starred:
            parameters.append("*")
            starred = True
        mark = {"var_positional": "*", "var_keyword": "**"}.get(one.kind.name if one.kind else "", "")
        starred = starred or mark == "*"
        default = "" if mark or one.default is None else f"={one.default}"
        parameters.append(f"{mark}{one.name}{default}")
    text = f"{member.name}({', '.join(parameters)})"
    if len(text) <= 88:
        return text
    return "\n".join([f"{member.name}(", *(f"    {one}," for one in parameters), ")"])


def _section(section: Any) -> Iterator[str]:
    kind = section.kind.value
    if kind == "text":
        yield from (_markdown(section.value), "")
    elif kind == "examples":
        yield from ("**Examples**", "", "```pycon")
        yield from (text for _, text in section.value)
        yield from ("```", "")
    elif kind in _KINDS:
        yield from (f"**{_KINDS[kind]}**", "")
        for one in section.value:
            name = getattr(one, "name", "") or ""
            annotation = str(getattr(one, "annotation", "") or "")
            head = f"`{name}`" if name else ""
            if not name or kind in ("returns", "raises"):
                head = f"`{name or annotation}`"
            yield f"- {head}: {' '.join(_markdown(one.description).split())}"
        yield ""
    elif kind == "admonition":
        yield from (f"**{section.title}**", "", _markdown(section.value.description), "")


def _markdown(text: str) -> str:
    """The few marks of reStructuredText that our docstrings have."""
    return text.replace("``", "`").replace("<", "&lt;")


def _first(text: str | None) -> str:
    return _markdown((text or "").strip().split("\n\n")[0])
