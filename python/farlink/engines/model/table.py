"""The columns of a result of closed forms: one run, no intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from farlink.engines.model.answer import Answer
from farlink.engines.model.point import Point, Row

_NAME = "model"

# Quantities that add up over flows.
_SUMS = ("goodput_bps", "goodput_fraction", "delivered_bytes", "sent_bytes", "delivered_packets", "transfers_done")
# Quantities of which flows together have the mean, weighted by what is beside them if it is known.
_MEANS = {"loss_fraction": "sent_bps", "arrival_delay_mean_s": "goodput_bps", "delay_mean_s": "goodput_bps"}


class Table:
    """Rows while points are added."""

    def __init__(self) -> None:
        from farlink import _core

        self._quantities = [name for name, *_ in _core.quantities()]
        self._rows: list[tuple[int, int, Row, str, dict[str, float]]] = []
        self._forms: dict[tuple[str, str, str], int] = {}

    def add(self, number: int, point: Point, answers: Mapping[str, Answer]) -> None:
        """Add a point's rows."""
        for name, answer in answers.items():
            key = (name, answer.form, answer.validity)
            self._forms[key] = self._forms.get(key, 0) + 1
        for row in point.rows:
            shown = [row.of] if row.of is not None else list(answers)
            counts = [row.flows] if row.of is not None else [flow.count for flow in point.flows]
            values = _together([answers[name].values for name in shown], counts)
            forms = " / ".join(dict.fromkeys(answers[name].form for name in shown))
            self._rows.append((number, point.seed, row, forms, values))

    def rows(self) -> dict[str, Any]:
        """The tidy table; the reason of a row is its equation."""
        return {
            "point": self._numbers(0),
            "engine": [_NAME] * len(self._rows),
            "flow": [row.flow for _, _, row, _, _ in self._rows],
            "transport": [row.transport for _, _, row, _, _ in self._rows],
            "run": np.zeros(len(self._rows), dtype=np.uint64),
            "seed": self._numbers(1),
            "status": ["ok"] * len(self._rows),
            "reason": [forms for _, _, _, forms, _ in self._rows],
            **{name: self._values(name) for name in self._quantities},
        }

    def summary(self) -> dict[str, Any]:
        """The same with unknown intervals."""
        size = len(self._rows)
        table: dict[str, Any] = {
            "point": self._numbers(0),
            "engine": [_NAME] * size,
            "flow": [row.flow for _, _, row, _, _ in self._rows],
            "transport": [row.transport for _, _, row, _, _ in self._rows],
            "runs": np.ones(size, dtype=np.uint64),
        }
        for status in ("unfinished", "stalled"):
            table[f"{status}_runs"] = np.zeros(size, dtype=np.uint64)
            table[f"{status}_reason"] = [""] * size
        for name in self._quantities:
            table[name] = self._values(name)
            table[f"{name}_ci95"] = np.full(size, np.nan)
        return table

    def notes(self, points: int) -> list[str]:
        """A sentence for each form of each flow: what it is and where it holds."""
        return [
            f"model: {flow}{'' if count == points else f' at {count} of {points} points'}: {form}; {validity}"
            for (flow, form, validity), count in self._forms.items()
        ]

    def _numbers(self, at: int) -> Any:
        return np.array([row[at] for row in self._rows], dtype=np.uint64)

    def _values(self, name: str) -> Any:
        return np.array([values.get(name, math.nan) for *_, values in self._rows], dtype=np.float64)


def _together(values: Sequence[Mapping[str, float]], counts: Sequence[int]) -> dict[str, float]:
    """Quantities of so many flows of each kind."""
    if list(counts) == [1]:
        return dict(values[0])
    found: dict[str, float] = {}
    for name in _SUMS:
        found[name] = sum(count * one.get(name, math.nan) for one, count in zip(values, counts, strict=True))
    for name, weight in _MEANS.items():
        pairs = [(count * one.get(weight, 1.0), one.get(name, math.nan)) for one, count in zip(values, counts, strict=True)]
        total = sum(share for share, _ in pairs)
        found[name] = sum(share * value for share, value in pairs) / total if total else math.nan
    return found
