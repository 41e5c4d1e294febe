"""Papers, their items, and how an item is computed: from scenarios to results, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from farlink import engines
from farlink.channels import coding
from farlink.channels.trace import Trace
from farlink.papers.check import Check
from farlink.result import Result
from farlink.scenario import Scenario, from_data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Told = Callable[[int, int], None]
Watch = Callable[[str], AbstractContextManager[Told]]

# Runs per grid point and share of the simulated bits with `quick`.
_QUICK_RUNS = 4
_QUICK_SHARE = 0.1


@dataclass(frozen=True)
class Drawing:
    """A figure of an item.

    Attributes
    ----------
    name
        Stem of its file.
    heading
        What it shows.
    caption
        What the reader needs to know beside it.
    draw
        Makes it.
    table
        The numbers that it shows, as texts, head first; none unless given.
    """

    name: str
    heading: str
    caption: str
    draw: Callable[[], Figure]
    table: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Outcome:
    """Outcome of an item.

    Attributes
    ----------
    item
        What was computed.
    checks
        One for each printed number or claim.
    drawings
        Its figures.
    scenarios
        What was run, by name.
    """

    item: Item
    checks: list[Check]
    drawings: list[Drawing]
    scenarios: Mapping[str, Scenario] = field(default_factory=dict)


@dataclass(frozen=True)
class Item:
    """A table, figure or equation of a paper.

    Attributes
    ----------
    key
        Its name on the command line, for example ``"figure-2"``.
    title
        What it shows.
    takes_s
        About how long it takes on two cores, in s.
    compute
        Computes checks and drawings.
    not_yet
        Why it cannot be computed; empty if it can.
    """

    key: str
    title: str
    takes_s: float
    compute: Callable[[Workbench], tuple[list[Check], list[Drawing]]] | None
    not_yet: str = ""


@dataclass(frozen=True)
class Paper:
    """A paper and what is reproduced of it.

    Attributes
    ----------
    key
        Its name on the command line.
    title
        Its title.
    authors
        Who wrote it.
    items
        In the order of the paper.
    setting
        What the paper leaves open and how it was filled in, in whole sentences.
    """

    key: str
    title: str
    authors: str
    items: tuple[Item, ...]
    setting: tuple[str, ...] = ()

    def item(self, key: str) -> Item:
        """The item of that key, which must exist."""
        return next(item for item in self.items if item.key == key)


class Interrupted(Exception):
    """The user stopped an item; it is not complete."""


@dataclass
class Workbench:
    """Where an item's scenarios are run.

    Attributes
    ----------
    runs
        Runs per grid point; the item's own by default.
    seed
        Seed of every random stream.
    quick
        Less precise, in a fraction of the time.
    threads
        Threads to run on; all cores by default.
    watch
        Given a title, a context whose value is told of the work done and planned.
    """

    runs: int | None = None
    seed: int = 1
    quick: bool = False
    threads: int | None = None
    watch: Watch = lambda _title: nullcontext(lambda _done, _total: None)
    scenarios: dict[str, Scenario] = field(default_factory=dict)
    _results: dict[str, Result] = field(default_factory=dict)

    def run(self, name: str, scenario: Mapping[str, Any], *, runs: int | None = None) -> Result:
        """Run a scenario, once, and remember it under `name`; with `runs`, so many times whatever the user asks for.

        Raises
        ------
        Interrupted
            If Ctrl-C stopped it.
        """
        settings = {**scenario, "seed": self.seed}
        settings["runs"] = runs or self.runs or (_QUICK_RUNS if self.quick else scenario["runs"])
        prepared = from_data(settings)
        key = prepared.to_json()
        if key not in self._results:
            with self.watch(prepared.title) as progress:
                result = engines.run(prepared, threads=self.threads, progress=progress)
            if result.interrupted:
                raise Interrupted
            self._results[key] = result
        self.scenarios[name] = prepared
        return self._results[key]

    def bit_errors(self, code: Mapping[str, Any], ebn0_db: float, bits: int) -> Trace:
        """Decode `bits` bits of a coding at an Eb/N0 and note where the wrong ones are.

        Raises
        ------
        Interrupted
            If Ctrl-C stopped it.
        """
        with self.watch(f"{coding.describe(code)} at {ebn0_db:g} dB") as progress:
            trace, is_interrupted = coding.error_trace(
                code, ebn0_db, bits, seed=self.seed, threads=self.threads, progress=progress
            )
        if is_interrupted:
            raise Interrupted
        return trace

    def repetitions(self, usual: int) -> int:
        """How many independent repetitions to make of what `usual` are usually made of."""
        return self.runs or (min(usual, _QUICK_RUNS) if self.quick else usual)

    def share(self, amount: float) -> float:
        """The part of `amount` that is worth simulating: all of it, unless in a hurry."""
        return amount * _QUICK_SHARE if self.quick else amount

    def outcomes(self, items: list[Item]) -> Iterator[Outcome]:
        """Compute items, one after the other.

        Raises
        ------
        Interrupted
            If Ctrl-C stopped one; those before it are complete.
        """
        for item in items:
            self.scenarios = {}
            assert item.compute is not None, f"{item.key} can be computed"
            try:
                checks, drawings = item.compute(self)
            except KeyboardInterrupt as error:
                raise Interrupted from error
            yield Outcome(item, checks, drawings, self.scenarios)
