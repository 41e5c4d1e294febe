"""Scenarios: TOML in, a checked description of link, transports and traffic out.

The keys, their types and ranges are those of the Rust types that run (`farlink schema` prints them); this module only
reads the file, applies overrides and finds the trace files that it names.
"""

from __future__ import annotations

import copy
import json
import math
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from farlink.errors import ScenarioError, TraceError, core_errors
from farlink.untrusted import printable, read_text, toml_tables

_FORMS = "give the path of a TOML file, a mapping of its tables, or what farlink.load gives"

Table = dict[str, Any]
Point = dict[str, Any]

# Kind of a table that names a trace -> kinds of trace that it can use.
_TRACES = {
    "rate-trace": ("delivery", "rate"),
    "delay-trace": ("delay",),
    "packet-trace": ("packet-loss",),
    "bit-trace": ("bit-errors",),
    "fading": ("power",),
    "ber-trace": ("ber",),
}


class Expanded(NamedTuple):
    """A scenario that was checked at points of its grid."""

    points: list[Point]
    """Values of what varies at each of them."""
    normalised: Table
    """The scenario with every default filled in."""
    approximations: list[tuple[str, str]]
    """Keys that an engine runs without, as ``unsupported = "approximate"`` allows: engine and dotted path of each."""

    @property
    def seed(self) -> int:
        """Seed of every random stream."""
        return int(self.normalised.get("seed", 1))


@dataclass(frozen=True)
class Scenario:
    """A scenario as its author wrote it, overrides applied.

    Attributes
    ----------
    data
        The tables and values of the TOML file.
    base
        Directory that relative trace files refer to.
    source
        Text of the file, or None for a scenario made in Python.
    path
        The file, or None.
    overrides
        What was set on top of the file, as ``path=value``.
    """

    data: Table
    base: Path = field(default_factory=Path.cwd)
    source: str | None = None
    path: Path | None = None
    overrides: tuple[str, ...] = ()
    # Trace files that the engine reads, and their names in the scenario.
    _called: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __repr__(self) -> str:
        """Its title, file and tables: the data may be long."""
        where = f" of {self.path}" if self.path else ""
        changed = f", {len(self.overrides)} settings on top" if self.overrides else ""
        return printable(f"Scenario {self.title!r}{where}: {', '.join(map(str, self.data))}{changed}; data has all", 500)

    @property
    def title(self) -> str:
        """Its title, else the name of its file."""
        return str(self.data.get("title") or (self.path.stem if self.path else "Scenario"))

    @property
    def grid_paths(self) -> list[str]:
        """Dotted paths that vary, in the order of the grid columns."""
        paths = list(self.data.get("grid", {}))
        for group in self.data.get("grid_zip", []):
            paths.extend(path for path in group if path not in paths)
        return paths

    def points(self) -> list[Point]:
        """Expand the grid: the values of every point, in the order in which they run.

        Raises
        ------
        ScenarioError
            If the scenario is refused, with the path of the key, its value and what is allowed.
        """
        return self.expanded().points

    def normalised(self) -> Table:
        """The scenario with every default filled in."""
        return self.expanded().normalised

    def approximations(self) -> list[tuple[str, str]]:
        """Keys that an engine runs without, as ``unsupported = "approximate"`` allows: engine and dotted path of each."""
        return self.expanded().approximations

    def expanded(self, points: Sequence[int] | None = None) -> Expanded:
        """Check the scenario at every point of its grid, or at some.

        Parameters
        ----------
        points
            Their numbers, from 0. Others are neither made nor checked, so that a grid may have up to ten million points.

        Raises
        ------
        ScenarioError
            If the scenario is refused at one of them, or there is no such point.
        """
        from farlink import _core

        with core_errors(self.in_its_words):
            text = _core.expand(self.to_json(), None if points is None else list(points))
        for path, name in self._called.items():
            text = text.replace(json.dumps(path, ensure_ascii=False), json.dumps(name, ensure_ascii=False))
        found = json.loads(text)
        left_out = [(one["engine"], one["path"]) for one in found["approximations"]]
        return Expanded(found["points"], found["scenario"], left_out)

    def with_overrides(self, overrides: Iterable[str]) -> Scenario:
        """A copy with ``path=value`` settings applied, in order.

        A setting of a key that the grid varies takes it out of the grid.

        Examples
        --------
        >>> scenario = Scenario({"link": {"rate_bps": 1e6}, "grid": {"link.delay_s": [0.1, 0.2]}})
        >>> changed = scenario.with_overrides(["link.rate_bps=2e6", "link.channel.kind=none", "link.delay_s=0.25"])
        >>> changed.data
        {'link': {'rate_bps': 2000000.0, 'channel': {'kind': 'none'}, 'delay_s': 0.25}}
        """
        data = copy.deepcopy(self.data)
        applied = tuple(overrides)
        for override in applied:
            keys, value = parse_override(override)
            _assign(data, keys, value)
        return Scenario(data, self.base, self.source, self.path, self.overrides + applied)

    def to_json(self) -> str:
        """Input of the extension: the same data, with every trace file resolved to farlink's own format."""
        return json.dumps(_with_trace_files(self.data, self._trace_file), allow_nan=False)

    def to_toml(self) -> str:
        """The scenario as TOML: the file's own text with the overrides below, or written from the data."""
        if self.source is not None:
            notes = "".join(f"\n# --set {override}" for override in self.overrides)
            return self.source.rstrip() + ("\n\n# Changed for this run:" + notes if notes else "") + "\n"
        from farlink.extras import require

        text: str = require("tomli_w", "writing TOML").dumps(self.data)
        return text

    def files(self) -> list[str]:
        """Names of the trace files, as in the scenario, once `to_json` has found them."""
        return sorted(set(self._called.values()))

    def in_its_words(self, text: str) -> str:
        """A text of the engine with the names of trace files as in the scenario, not those in the cache."""
        for path, name in self._called.items():
            text = text.replace(path, name)
        return text

    def _trace_file(self, key: str, name: str, kind: object) -> str:
        from farlink.channels import cache

        path = name if name.startswith("synthetic:") else find_data_file(name, base=self.base)
        try:
            found = str(cache.resolve(path, kinds=_TRACES.get(str(kind))))
        except TraceError as error:
            is_unset = "FARLINK_DATA" in name and not find_data_file("$FARLINK_DATA", base=self.base).is_dir()
            remedy = "set FARLINK_DATA to the directory of the measured data" if is_unset else error.remedy
            raise TraceError(f"{key}: {error.message}", remedy) from error
        self._called[found] = name
        return found


def load(path: str | Path) -> Scenario:
    """Read a scenario file.

    Parameters
    ----------
    path
        TOML file.

    Raises
    ------
    ScenarioError
        If the file cannot be read or is not TOML. Its keys are checked when it is expanded or run.
    """
    if not isinstance(path, str | os.PathLike):
        raise ScenarioError(f"{printable(repr(path), 60)} is no scenario", _FORMS)
    path = Path(path)
    try:
        source = read_text(path, ScenarioError)
    except IsADirectoryError as error:
        raise ScenarioError(f"{path} is a directory", "give the name of a scenario file in it") from error
    except OSError as error:
        raise ScenarioError(
            f"cannot read scenario {path}: {error.strerror}", "give the path of a TOML file; farlink scenarios copy gets some"
        ) from error
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{path} is not a text file in UTF-8", "a scenario is a TOML file; save it as UTF-8") from error
    except ValueError as error:  # a zero byte
        raise ScenarioError(f"{str(path)!r} is not a name of a file", _FORMS) from error
    try:
        data = toml_tables(source)
    except ValueError as error:
        raise ScenarioError(
            f"{path} is not valid TOML: {error}", "correct that line; strings need quotes, keys need '='"
        ) from error
    return from_data(data, base=path.absolute().parent, source=source, path=path)


def from_data(
    data: Mapping[str, Any], *, base: Path | None = None, source: str | None = None, path: Path | None = None
) -> Scenario:
    """A scenario from tables and values, as `tomllib` returns them."""
    if not isinstance(data, Mapping):
        raise ScenarioError(f"{printable(repr(data), 60)} is no scenario", _FORMS)
    try:
        copied = _plain(dict(data))
    except RecursionError as error:
        raise ScenarioError("tables and lists are nested too deeply", "a scenario needs a few levels at most") from error
    _check_values(copied, "")
    if isinstance(copied.get("grid"), dict):
        copied["grid"] = _dotted(copied["grid"])
    return Scenario(copied, base or Path.cwd(), source, path)


def _plain(node: Any) -> Any:
    """A copy with NumPy arrays and numbers, paths and tuples converted to TOML's types."""
    if isinstance(node, Mapping):
        return {str(key): _plain(value) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [_plain(value) for value in node]
    if type(node).__module__ == "numpy" and hasattr(node, "tolist"):
        return node.tolist()
    return str(node) if isinstance(node, os.PathLike) else copy.deepcopy(node)


def parse_override(text: str) -> tuple[list[str], Any]:
    """Split ``path=value`` into keys and value.

    The value is TOML; a bare word is a string.

    Raises
    ------
    ScenarioError
        If there is no ``=``, or path or value cannot be parsed.

    Examples
    --------
    >>> parse_override("link.channel.ber=1e-7")
    (['link', 'channel', 'ber'], 1e-07)
    >>> parse_override("transport.sack.variant=newreno")
    (['transport', 'sack', 'variant'], 'newreno')
    >>> parse_override("grid.link.channel.ber=[1e-7, 1e-6]")
    (['grid', 'link.channel.ber'], [1e-07, 1e-06])
    """
    path, equals, value = text.partition("=")
    if not equals or not path.strip():
        raise ScenarioError(f"--set {text}: not of the form path=value", "for example: --set link.channel.ber=1e-7")
    try:
        keys = _keys(tomllib.loads(f"{path} = 0"))
    except (ValueError, RecursionError) as error:
        raise ScenarioError(
            f"--set {text}: {path.strip()!r} is not a dotted path", "for example: --set link.channel.ber=1e-7"
        ) from error
    if keys[0] == "grid" and len(keys) > 2:
        keys = ["grid", ".".join(keys[1:])]
    parsed = _parse_value(text, value.strip())
    _check_values({".".join(keys): parsed}, "")
    return keys, parsed


def find_data_file(name: str, *, base: Path) -> Path:
    """Path of a data file that a scenario names.

    ``$FARLINK_DATA`` and other variables are expanded; what is left relative is relative to `base`. Without that variable,
    ``$FARLINK_DATA`` is the directory ``shared/data`` beside the checkout that `base` lies in.
    """
    variables = {"FARLINK_DATA": _default_data_directory(base), **os.environ}

    def value(match: re.Match[str]) -> str:
        return variables.get(match[1] or match[2]) or match[0]

    expanded = re.sub(r"\$(?:(\w+)|\{(\w+)\})", value, name)
    return base / Path(expanded).expanduser()


def _default_data_directory(base: Path) -> str:
    for directory in (base, *base.parents):
        beside = directory.parent / "shared" / "data"
        if (directory / "pyproject.toml").is_file() and beside.is_dir():
            return str(beside)
    return ""


def _parse_value(override: str, value: str) -> Any:
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError) as error:
        is_word = isinstance(error, tomllib.TOMLDecodeError)
        if is_word and value and value[0] not in "[{\"'" and "\n" not in value:
            return value
        raise ScenarioError(
            f"--set {override}: {value or 'nothing'} is not a TOML value",
            "quote it for the shell, for example: --set 'runs=20'",
        ) from error


def _keys(table: Table) -> list[str]:
    keys: list[str] = []
    node: Any = table
    while isinstance(node, dict):
        ((key, node),) = node.items()
        keys.append(key)
    return keys


def _assign(data: Table, keys: list[str], value: Any) -> None:
    node = data
    for depth, key in enumerate(keys[:-1], start=1):
        child = node.setdefault(key, {})
        if not isinstance(child, dict):
            where = ".".join(keys[:depth])
            raise ScenarioError(f"--set {'.'.join(keys)}: {where} is {child!r}, not a table", f"set {where} as a whole")
        node = child
    node[keys[-1]] = value
    _fix(data, ".".join(keys))


def _fix(data: Table, path: str) -> None:
    """Remove `path`, and all paths below it, from the grid, because it now has one value."""
    tables = [data.get("grid"), *(data.get("grid_zip") or [])]
    for table in tables:
        if isinstance(table, dict):
            for varied in [key for key in table if key == path or key.startswith(f"{path}.")]:
                del table[varied]
    if data.get("grid") == {}:
        del data["grid"]
    if "grid_zip" in data and not any(data["grid_zip"]):
        del data["grid_zip"]


def _dotted(grid: Table, prefix: str = "") -> Table:
    """Write ``link.channel.ber = [...]``, which TOML reads as nested tables, as one dotted path."""
    flat: Table = {}
    for key, value in grid.items():
        path = f"{prefix}{key}"
        if isinstance(value, dict):
            flat.update(_dotted(value, f"{path}."))
        else:
            flat[path] = value
    return flat


def _check_values(node: Any, path: str) -> None:
    """Refuse values that TOML allows but scenarios do not: dates, and numbers that are not finite."""
    if isinstance(node, dict):
        for key, value in node.items():
            _check_values(value, f"{path}.{key}" if path else str(key))
    elif isinstance(node, list | tuple):
        for value in node:
            _check_values(value, path)
    elif isinstance(node, float) and not math.isfinite(node):
        raise ScenarioError(f"{path}: {node} is not a finite number", "give a finite number, or leave the key out")
    elif not isinstance(node, str | int | float | bool):
        raise ScenarioError(
            f"{path}: {node!r} is not a number, string, boolean, list or table", "times are plain numbers of seconds"
        )


def _with_trace_files(node: Any, resolve: Callable[[str, str, object], str], path: str = "") -> Any:
    """Copy `node` with the value of every ``file`` key resolved, in the grid too."""
    if isinstance(node, list):
        return [_with_trace_files(value, resolve, path) for value in node]
    if not isinstance(node, dict):
        return node
    copied: Table = {}
    for key, value in node.items():
        where = f"{path}.{key}" if path else key
        if key == "file" and isinstance(value, str):
            copied[key] = resolve(where, value, node.get("kind"))
        elif key.endswith(".file") and isinstance(value, list):
            copied[key] = [resolve(where, item, None) if isinstance(item, str) else item for item in value]
        else:
            copied[key] = _with_trace_files(value, resolve, where)
    return copied
