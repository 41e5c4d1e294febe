"""Results: one tidy table, a row per engine x grid point x flow x run, and its summary."""

from __future__ import annotations

import csv
import html
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

# NumPy is imported by what needs arrays (`farlink.columns`), so modules that import it are imported in functions.
from farlink import units
from farlink.build import build_name
from farlink.columns import plain
from farlink.errors import ArgumentError, FarlinkError
from farlink.extras import require
from farlink.intervals import UNLESS_NAMED, half_width, interval_words, levels_of
from farlink.near_names import instead
from farlink.output import whole_file
from farlink.scenario import Point, Scenario
from farlink.student import widened

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray
    from rich.table import Table

Column: TypeAlias = "Sequence[Any] | NDArray[Any]"

_KEYS = ("engine", "flow", "transport", "runs")

# Columns of the rows other than the grid and the quantities.
_ROW_KEYS = ("point", "engine", "flow", "transport", "run", "seed", "status", "reason")

# Batches from which the fluid engine finds an interval, less one, at least and at most: the summary does not have their number.
_FLUID_DEGREES = (31, 63)

# Rows that a notebook shows.
_MOST_HTML_ROWS = 60

# Columns of the table for each flow, after those of the grid: (quantity, heading). Columns without information are omitted.
_SHOWN = (
    ("goodput_bps", "goodput"),
    ("goodput_fraction", "of the link"),
    ("delay_mean_s", "mean delay"),
    ("delay_p99_s", "99 % delay"),
    ("loss_fraction", "lost"),
    ("timeouts", "timeouts"),
    ("transfer_time_mean_s", "transfer time"),
)


@dataclass(frozen=True)
class Result:
    """Results of the flows of a scenario.

    Attributes
    ----------
    scenario
        What was run.
    version
        Version of farlink that ran it.
    seed
        Seed of every random stream.
    points
        Values of the grid at each point.
    columns
        The rows: column name -> values, with ``point`` an index into `points`. Empty if they were not kept.
    summary_columns
        The summary: each quantity's mean over the runs under its own name, the 95 % half-width under ``NAME_ci95``; how many
        runs stalled or were unfinished, and the reason of the first.
    interrupted
        Whether the run was stopped before all runs were done; those that are here are complete.
    approximations
        Keys of the scenario that an engine ran without: engine and dotted path of each.
    notes
        Remarks, one sentence each, such as cached files that could not be used or inaccurate error rates.
    failure
        Why the runs ended early, if nobody has stopped them.
    numbers
        Numbers of the points in the grid of the scenario; None if all are here.
    """

    scenario: Scenario
    version: str
    seed: int
    points: list[Point]
    columns: Mapping[str, Column]
    summary_columns: Mapping[str, Column]
    interrupted: bool = False
    approximations: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()
    failure: FarlinkError | None = None
    numbers: Sequence[int] | None = None
    _build: str | None = field(default=None, repr=False)

    @property
    def build(self) -> str:
        """Name of the build that ran it (`farlink.build.build_name`): equal ones give equal rows."""
        # To hash all sources takes a fifth of the start of a run that prints a table only.
        return build_name() if self._build is None else self._build

    def __getstate__(self) -> dict[str, Any]:
        """For another process: rows in few bytes."""
        from farlink.packed import pack

        state = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return state | {name: pack(state[name]) for name in ("columns", "summary_columns")} | {"_build": self.build}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        from farlink.packed import unpack

        for name, value in state.items():
            unpacked = unpack(value) if name in ("columns", "summary_columns") else value
            object.__setattr__(self, name, unpacked)

    @staticmethod
    def concat(results: Iterable[Result]) -> Result:
        """One result from those of pieces: other points, other runs, other engines.

        Points are numbered anew: in the order of the grid if all pieces have the same one, else in the order in which they
        come. Means and intervals are made from the rows of all, in the order of their runs. The pieces of a study give, bit
        for bit, the result of the whole.

        Parameters
        ----------
        results
            Of the same build, and of scenarios that differ in their grid, title, engines and number of runs at most.

        Returns
        -------
        Result
            Its scenario is that of the pieces; of several scenarios, the first, with all points as one ``[[grid_zip]]``.

        Raises
        ------
        ArgumentError
            If there is no piece, one has no rows or is of another build or scenario, or a run of a point occurs twice.

        Examples
        --------
        >>> import farlink
        >>> scenario = {
        ...     "duration_s": 20,
        ...     "runs": 4,
        ...     "link": {"rate_bps": 1e6, "delay_s": 0.25, "channel": {"kind": "ber", "ber": 1e-6}},
        ...     "transport": {"sack": {"kind": "tcp", "variant": "sack"}},
        ...     "flow": {"bulk": {"transport": "sack", "traffic": {"kind": "bulk"}}},
        ... }
        >>> late = farlink.run(scenario, first_run=1, runs=3)
        >>> early = farlink.run(scenario, first_run=0, runs=1)
        >>> Result.concat([late, early]).rows == farlink.run(scenario).rows
        True
        """
        from farlink.joined import concatenated

        pieces = list(results)
        for number, piece in enumerate(pieces):
            if not isinstance(piece, Result):
                raise ArgumentError(f"results: entry {number} is no Result", "give what farlink.run returns")
        joined = concatenated(pieces)
        return replace(pieces[0], **joined)

    def __repr__(self) -> str:
        """Its title, its size, and the first lines of its table."""
        from farlink.shown import counted, short_table

        named = zip(*(plain(self.summary_columns, name) for name in ("flow", "transport")), strict=True)
        flows = len({flow for flow, transport in named if flow != "all" and transport != "path"})
        counts = ((len(self.points), "point"), (flows, "flow"), (self.finished_runs, "run"))
        size = ", ".join(counted(count, name) for count, name in counts)
        headings, body = self.cells()
        return short_table(
            f"Result {self.scenario.title}: {size}; seed {self.seed}, farlink {self.version}",
            [name.replace("\n", ", ") for name, _ in headings],
            body,
            "summary() has all",
        )

    @property
    def rows(self) -> dict[str, list[Any]]:
        """The tidy table: column name -> values; None for unknown values.

        Raises
        ------
        FarlinkError
            If the rows were not kept.
        """
        if not self.columns:
            raise FarlinkError("the rows of single runs were not kept", "run the scenario with rows=True")
        columns = {name: plain(self.columns, name) for name in self.columns}
        index = columns.pop("point")
        table: dict[str, list[Any]] = {}
        for name, values in columns.items():
            if name == "status":
                for path in self.grid_paths:
                    table[path] = [self.grid[i].get(path) for i in index]
            table[name] = values
        return table

    @cached_property
    def grid_paths(self) -> list[str]:
        """Columns of the grid: the dotted paths that vary; ``grid.duration_s`` if a column already has that name."""
        return list(dict.fromkeys(path for point in self.grid for path in point))

    @cached_property
    def grid(self) -> list[Point]:
        """Values of the grid at each point, by column."""
        taken = {*_ROW_KEYS, *self.columns, *self.summary_columns}
        return [{f"grid.{path}" if path in taken else path: v for path, v in point.items()} for point in self.points]

    @property
    def quantities(self) -> list[str]:
        """Names of the measured quantities."""
        return [name.removesuffix("_ci95") for name in self.summary_columns if name.endswith("_ci95")]

    @cached_property
    def levels(self) -> list[float]:
        """Confidence level of the intervals shown at each point: ``precision.level`` of the scenario, 0.95 if it names none."""
        return levels_of(self.scenario.data, self.grid)

    @property
    def intervals(self) -> str:
        """The intervals in words: ``"95 % interval"``; or that levels differ, with ``precision.level`` in the grid."""
        return interval_words(self.levels)

    @property
    def finished_runs(self) -> int:
        """How many runs there are, over all grid points."""
        flows, runs = (plain(self.summary_columns, name) for name in ("flow", "runs"))
        return sum(count for flow, count in zip(flows, runs, strict=True) if flow == "all")

    def stalls(self) -> list[str]:
        """Flows of which nothing came any more before their end, a sentence each: in how many runs, where in the grid, and why.

        Returns
        -------
        list of str
            Empty if none stalled; the reason is that of the first run, and the row over all flows is left out.
        """
        return self._missed("stalled")

    def unfinished(self) -> list[str]:
        """Flows that were still on their way to their end when the run was over, a sentence each, as `stalls` has them."""
        return self._missed("unfinished")

    def _missed(self, status: str) -> list[str]:
        names = ("point", "flow", "runs", f"{status}_runs", f"{status}_reason")
        sentences = []
        for point, flow, runs, missed, reason in zip(*(plain(self.summary_columns, name) for name in names), strict=True):
            if not missed or flow == "all":
                continue
            place = ", ".join(f"{path} = {value}" for path, value in self.grid[point].items())
            share = "" if runs == 1 else f" in {missed} of {runs} runs"
            sentences.append(f"{flow}{share}{f' at {place}' if place else ''}: {reason}")
        return sentences

    def bundles(self) -> list[str]:
        """Statistics of the lines of a bundle, a sentence for each point of the grid.

        Returns
        -------
        list of str
            Means over the runs; empty if no hop is a bundle.
        """
        sentences = []
        for entry in self.summary():
            every, some = (entry.get(f"{which}_up_fraction", {}).get("mean") for which in ("all_lines", "any_line"))
            if entry["flow"] != "all" or every is None or some is None:
                continue
            place = ", ".join(f"{path} = {entry[path]}" for path in self.grid_paths if entry[path] is not None)
            drops = entry["call_drops"]["mean"]
            sentences.append(
                f"all lines up {100 * every:.4g} % of the time, at least one {100 * some:.4g} %; {drops:.4g} drops a run"
                f"{f' at {place}' if place else ''}"
            )
        return sentences

    def summary(self) -> list[dict[str, Any]]:
        """Means over the runs, one entry per engine x grid point x flow.

        Returns
        -------
        list of dict
            The keys of `rows` less those of a single run; each quantity is ``{"mean": x, "ci95": half_width}``. Where the
            scenario has another level than 0.95, ``half_width`` is that of the interval at that level. What is unknown is
            None, and so is the half-width of a single run.

        Notes
        -----
        The half-width at another level follows from `ci95` by Student's t, with the number of runs in which the quantity is
        known. Without rows that number is taken to be that of all runs. The fluid engine has one run, whose 32 to 64 batches
        count; their number is taken such that the interval is rather too wide, at a level of 99 % by up to 1.2 %.
        """
        columns = {name: plain(self.summary_columns, name) for name in self.summary_columns}
        quantities, paths, grid, levels = self.quantities, self.grid_paths, self.grid, self.levels
        counts = {} if all(level == UNLESS_NAMED for level in levels) else self._known_values()
        entries = []
        for i, point in enumerate(columns["point"]):
            entry: dict[str, Any] = {name: columns[name][i] for name in _KEYS}
            entry.update({path: grid[point].get(path) for path in paths})
            entry.update({q: {"mean": columns[q][i], "ci95": columns[f"{q}_ci95"][i]} for q in quantities})
            if levels[point] != UNLESS_NAMED:
                known = counts.get((point, entry["engine"], entry["flow"], entry["transport"]), {})
                for q in quantities:
                    of_engine = (entry["engine"], known.get(q, entry["runs"]))
                    entry[q]["half_width"] = _at_level(entry[q]["ci95"], *of_engine, levels[point])
            entries.append(entry)
        return entries

    def _known_values(self) -> dict[tuple[Any, ...], dict[str, int]]:
        """In how many runs each quantity of an entry of the summary is known; empty without rows."""
        if not self.columns:
            return {}
        columns = {name: plain(self.columns, name) for name in self.columns}
        found: dict[tuple[Any, ...], dict[str, int]] = {}
        for at, key in enumerate(zip(*(columns[name] for name in ("point", "engine", "flow", "transport")), strict=True)):
            counts = found.setdefault(key, dict.fromkeys(self.quantities, 0))
            for quantity in counts:
                counts[quantity] += columns[quantity][at] is not None
        return found

    def table(self, flow: str | None = None, *, width: int | None = None) -> Table:
        """The summary as a Rich table, in units for people.

        Parameters
        ----------
        flow
            Show this flow only. By default every flow that differs from the aggregate is shown.
        width
            Leave out columns until the table is this narrow, and name them below it. Where not even goodput fits beside what
            varies, each row is a list of all its values. Without it, the width of the console that the table is printed on.
        """
        from farlink.shown_table import fitted

        headings, body = self.cells(flow)
        names = [heading.partition("\n")[0] for heading, _ in headings]
        return fitted(headings, body, keep=names.index("goodput") + 1, width=width)

    def cells(self, flow: str | None = None) -> tuple[list[tuple[str, bool]], list[list[str]]]:
        """The table's text: headings, each with whether its column is of numbers, and rows of cells."""
        entries = shown_entries(self.summary(), flow)
        names = units.labels(self.grid_paths)
        columns: list[tuple[str, bool, list[str]]] = []
        for path in self.grid_paths:
            values = [entry[path] for entry in entries]
            if _is_number(values):
                scale = units.scale_for(path, values)
                columns.append((_heading(names[path], scale), True, [scale.exact(value) for value in values]))
            else:
                columns.append((names[path], False, [units.show(value, path) for value in values]))
        for key in ("engine", "flow", "transport"):
            values = [entry[key] for entry in entries]
            is_told_by_grid = key == "transport" and any(path.endswith(".transport") for path in self.grid_paths)
            if not is_told_by_grid and ((key == "transport" and not self.grid_paths) or len(set(values)) > 1):
                columns.append((key, False, [str(value) for value in values]))
        columns.append(("runs", True, [str(entry["runs"]) for entry in entries]))
        for quantity, heading in _SHOWN:
            pairs = [(_float(entry[quantity]["mean"]), _float(half_width(entry[quantity]))) for entry in entries]
            means = [mean for mean, _ in pairs]
            if all(math.isnan(mean) for mean in means) or (quantity != "goodput_bps" and not any(means)):
                continue
            scale = units.scale_for(quantity, means)
            if quantity == "loss_fraction":
                scale = units.Scale(100.0, "%")
            columns.append((_heading(heading, scale), True, [scale.interval(mean, ci) for mean, ci in pairs]))
        headings = [(title, is_number) for title, is_number, _ in columns]
        return headings, [list(row) for row in zip(*(cells for _, _, cells in columns), strict=True)]

    def plot(self, quantity: str = "goodput_bps") -> Figure:
        """A figure of a quantity against the grid, with its intervals, at 95 % unless ``precision.level`` is another.

        Parameters
        ----------
        quantity
            Any of `quantities`.
        """
        from farlink.plot.against_grid import against_grid

        if not isinstance(quantity, str) or quantity not in self.quantities:
            raise ArgumentError(f"there is no quantity {quantity!r}", instead(str(quantity), self.quantities))
        return against_grid(self.summary(), self.grid_paths, quantity, title=self.scenario.title)

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON knows it: version, build, scenario, rows, summary; unknown values are None."""
        rows = self.rows
        content: dict[str, Any] = {
            "farlink": self.version,
            "build": self.build,
            "scenario": {**self.scenario.data, "seed": self.seed},
            "rows": [dict(zip(rows, values, strict=True)) for values in zip(*rows.values(), strict=True)],
            "summary": self.summary(),
        }
        if self.approximations:
            content["approximations"] = [{"engine": engine, "path": path} for engine, path in self.approximations]
        if self.notes:
            content["notes"] = list(self.notes)
        if self.failure is not None:
            content["failure"] = f"{self.failure.message}; {self.failure.remedy}"
        return content | {"interrupted": True} if self.interrupted else content

    def to_json(self, path: str | Path | None = None) -> str:
        """The result as JSON text, also written to `path` if given."""
        text = json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False) + "\n"
        if path is not None:
            with whole_file(path) as temporary:
                temporary.write_text(text, encoding="utf-8")
        return text

    def to_csv(self, path: str | Path | TextIO) -> None:
        """Write the rows as CSV; unknown values are empty."""
        if not isinstance(path, str | Path):
            self._write_csv(path)
            return
        with whole_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
            self._write_csv(file)

    def to_arrow(self) -> Any:
        """The rows as a ``pyarrow.Table``, with version, build, scenario and seed in its metadata; unknown values are null."""
        pyarrow = require("pyarrow", "to_arrow()")
        rows = {name: _flat(values) for name, values in self.rows.items()}
        scenario = json.dumps(self.scenario.data)
        metadata = {"farlink": self.version, "build": self.build, "scenario": scenario, "seed": str(self.seed)}
        return pyarrow.table(rows).replace_schema_metadata(metadata)

    def to_parquet(self, path: str | Path) -> None:
        """Write the rows as Parquet, with version, build, scenario and seed in the file's metadata."""
        parquet = require("pyarrow.parquet", "Parquet")
        with whole_file(path) as temporary:
            parquet.write_table(self.to_arrow(), temporary)

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame."""
        return require("pandas", "to_pandas()").DataFrame(self.rows)

    def to_polars(self) -> Any:
        """The rows as a Polars DataFrame."""
        rows = {name: _flat(values) for name, values in self.rows.items()}
        return require("polars", "to_polars()").DataFrame(rows, strict=False)

    def _repr_html_(self) -> str:
        headings, body = self.cells()
        more = len(body) - _MOST_HTML_ROWS
        body = body[:_MOST_HTML_ROWS]
        align = ["right" if is_number else "left" for _, is_number in headings]
        head = "".join(f'<th style="text-align:{a}">{_html(h)}</th>' for a, (h, _) in zip(align, headings, strict=True))
        lines = (
            "<tr>" + "".join(f'<td style="text-align:{a}">{_html(c)}</td>' for a, c in zip(align, row, strict=True)) + "</tr>"
            for row in body
        )
        caption = f"{_html(self.scenario.title)} (farlink {self.version}, seed {self.seed})"
        if more > 0:
            caption += f"; {more} more rows: summary() has all"
        return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"

    def _write_csv(self, file: TextIO) -> None:
        rows = self.rows
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(rows)
        writer.writerows(zip(*(_flat(values) for values in rows.values()), strict=True))


def together(results: Sequence[Result]) -> Result:
    """One result from those of several engines for the same scenario, in their order."""
    from farlink.joined import stacked

    return replace(
        results[0],
        columns=stacked([result.columns for result in results]),
        summary_columns=stacked([result.summary_columns for result in results]),
        interrupted=any(result.interrupted for result in results),
        notes=list(dict.fromkeys(note for result in results for note in result.notes)),
        failure=results[-1].failure,
    )


def shown_entries(summary: list[dict[str, Any]], flow: str | None = None) -> list[dict[str, Any]]:
    """The entries to show: `flow`, or the aggregate, and single flows if there are at most eight."""
    if flow is not None:
        chosen = [entry for entry in summary if isinstance(flow, str) and entry["flow"] == flow]
        if summary and not chosen:
            known = ", ".join(dict.fromkeys(str(entry["flow"]) for entry in summary))
            raise ArgumentError(f"there is no flow {flow!r}", f"there are {known}")
        return chosen
    flows = list(dict.fromkeys(entry["flow"] for entry in summary if entry["flow"] != "all"))
    if 1 < len(flows) <= 8:
        return summary
    return [entry for entry in summary if entry["flow"] == "all"] or summary


def _at_level(ci95: float | None, engine: str, values: int, level: float) -> float | None:
    """The half-width at a level of an interval at 95 % over so many runs."""
    if ci95 is None:
        return None
    degrees = _FLUID_DEGREES if engine == "fluid" else (values - 1,)
    return max(widened(ci95, one, level) for one in degrees)


def _flat(values: list[Any]) -> list[Any]:
    """A column that a flat file can hold: tables and lists as JSON, and everything as text if kinds are mixed."""
    flat = [json.dumps(value) if isinstance(value, dict | list) else value for value in values]
    kinds = {type(value) for value in flat if value is not None}
    if len(kinds) > 1 and not kinds <= {int, float}:
        return [None if value is None else str(value) for value in flat]
    return [float(value) if kinds == {int, float} and value is not None else value for value in flat]


def _heading(name: str, scale: units.Scale) -> str:
    return f"{name}\n{scale.unit}" if scale.unit else name


def _is_number(values: list[Any]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _float(value: float | None) -> float:
    return math.nan if value is None else value


def _html(text: str) -> str:
    return html.escape(text).replace("\n", " ")
