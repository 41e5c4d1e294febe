"""Finds dependency cycles between the files of a Rust crate, by their `use` lines and paths."""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

Module = tuple[str, ...]
Uses = dict[Module, set[Module]]

# Comments, strings and characters contain no dependencies.
SILENT = re.compile(r"""//[^\n]*|/\*.*?\*/|b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^'\\])'""", re.DOTALL)
TEST = re.compile(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*")
TEST_FILE = re.compile(TEST.pattern + r"(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;")
USE = re.compile(r"\buse\s+([^;]+);")
PATH = re.compile(r"(?<![\w:])\w+(?:::\w+)+")


class File(NamedTuple):
    """The dependencies of a file. All paths begin at the crate."""

    paths: list[Module]
    # What a name stands for that a `use` brings in, and the modules of which it brings in everything.
    names: dict[str, Module]
    globs: list[Module]


def cycles(source: Path) -> list[list[str]]:
    """Groups of files below a crate's `src` in which each depends on all others, directly or indirectly.

    Test code does not count, nor do dependencies between a file and the files below it (`link/mod.rs` and `link/*.rs`), which
    form one module. A name re-exported with `pub use` counts for the file that defines it.
    """
    files = read(source)
    uses = {module: used_by(module, files) for module in files}
    groups = []
    while True:
        try:
            TopologicalSorter(uses).prepare()
        except CycleError as error:
            start = error.args[1][0]
            group = reached(start, uses) & reached(start, turned(uses))
            groups.append(sorted("::".join(module) for module in group))
            uses = {module: used - group for module, used in uses.items() if module not in group}
        else:
            return sorted(groups)


def read(source: Path) -> dict[Module, File]:
    """The files of a crate, by module, except those only for tests."""
    texts = {}
    tests: set[Module] = set()
    for path in source.rglob("*.rs"):
        parts = path.relative_to(source).with_suffix("").parts
        module = parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts
        text = SILENT.sub(" ", path.read_text(encoding="utf-8"))
        tests |= {(*module, name) for name in TEST_FILE.findall(text)}
        texts[module] = without_tests(text)
    kept = (module for module in texts if not any(module[:length] in tests for length in range(1, len(module) + 1)))
    return {module: read_file(module, texts[module]) for module in kept}


def without_tests(text: str) -> str:
    """Leave out each item behind `#[cfg(test)]`, up to its semicolon or the brace that ends it."""
    while match := TEST.search(text):
        depth = 0
        end = match.end()
        while end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
            if depth < 0 or (depth == 0 and text[end - 1] in ";}"):
                break
        # A brace that was not opened here ends the block around the item.
        text = text[: match.start()] + text[end - (depth < 0) :]
    return text


def read_file(module: Module, text: str) -> File:
    """The dependencies of one file."""
    file = File([], {}, [])
    for tree in USE.findall(text):
        for path, name in branches(" ".join(tree.split())):
            whole = from_crate(path, module, {})
            file.paths.append(whole)
            if name == "*":
                file.globs.append(whole)
            else:
                file.names[name] = whole
    for found in PATH.findall(USE.sub(" ", text)):
        file.paths.append(from_crate(tuple(found.split("::")), module, file.names))
    return file


def branches(tree: str) -> list[tuple[Module, str]]:
    """Each path of a `use`, and the name that it imports; `*` for all names."""
    head, brace, rest = tree.partition("{")
    if not brace:
        path, _, alias = tree.partition(" as ")
        parts = tuple(path.strip().split("::"))
        if parts[-1] == "*":
            return [(parts[:-1], "*")]
        parts = parts[:-1] if parts[-1] == "self" else parts
        return [(parts, alias.strip() or parts[-1])]
    found = []
    depth = begin = 0
    rest = rest.rstrip().removesuffix("}") + ","
    for at, sign in enumerate(rest):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if sign == "," and depth == 0:
            if branch := rest[begin:at].strip():
                found += branches(head + branch)
            begin = at + 1
    return found


def from_crate(path: Module, module: Module, names: dict[str, Module]) -> Module:
    """A path from the crate's root. If no `use` imports its first name, that name may be a submodule."""
    if path[0] == "crate":
        return path[1:]
    if path[0] not in ("self", "super"):
        return names.get(path[0], (*module, path[0])) + path[1:]
    while path and path[0] in ("self", "super"):
        module = module[:-1] if path[0] == "super" else module
        path = path[1:]
    return module + path


def used_by(module: Module, files: dict[Module, File]) -> set[Module]:
    """The files that a file uses, except those above and below it."""
    used = {home(path, files) for path in files[module].paths}
    return {other for other in used if other != module[: len(other)] and module != other[: len(module)]}


def home(path: Module, files: dict[Module, File], seen: frozenset[Module] = frozenset()) -> Module:
    """The file that defines a path's target, through any re-exports."""
    module = next(path[:length] for length in range(len(path), -1, -1) if path[:length] in files or length == 0)
    name, rest = path[len(module) : len(module) + 1], path[len(module) + 1 :]
    if not name or path in seen or module not in files:
        return module
    seen |= {path}
    if name[0] in files[module].names:
        return home(files[module].names[name[0]] + rest, files, seen)
    for glob in files[module].globs:
        found = home(glob + name, files, seen)
        if len(found) >= len(glob) and found != glob:
            return home(glob + name + rest, files, seen)
    return module


def turned(uses: Uses) -> Uses:
    """The users of each file."""
    users: Uses = {module: set() for module in uses}
    for module, used in uses.items():
        for other in used:
            users[other].add(module)
    return users


def reached(start: Module, uses: Uses) -> set[Module]:
    """Every file reachable from one, and itself."""
    found, left = {start}, [start]
    while left:
        new = uses[left.pop()] - found
        found |= new
        left += new
    return found
