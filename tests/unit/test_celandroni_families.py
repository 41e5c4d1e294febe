"""Figure 4 and section IV of Celandroni and others cover every family of codes of the modem."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("pydantic")

from farlink.papers.celandroni import setting
from farlink.papers.celandroni.figure_4 import figure_4
from farlink.papers.celandroni.section_4 import section_4
from farlink.papers.check import Verdict
from farlink.papers.item import Workbench

FAMILIES = [name for name, family in setting.modem().code.items() if family.kind != "uncoded"]


# Each C/N0 has decoders of its own to simulate: `make papers` and the nightly tests have all thirteen.
@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.nightly)])
def test_figure_4_has_every_family(monkeypatch, step):
    monkeypatch.setattr(setting.all_points, "__defaults__", (setting.CN0[::step],))
    checks, drawings = figure_4(Workbench())
    many, every = checks[:2]

    assert len(FAMILIES) == 7
    for name in FAMILIES:
        assert f" with {name}" in many.note
        assert f" with {name}" in every.note
    assert [drawing.name for drawing in drawings] == ["figure-4", "figure-4-concatenated"]
    # With concatenated codes the paper's difference is not found.
    assert every.verdict is Verdict.DIFFERS
    if step == 1:  # a share of all C/N0
        assert many.verdict is Verdict.DIFFERS
    assert 1.0 < every.value.mean < 1.1


def test_section_4_has_every_family():
    checks, _ = section_4(Workbench())

    assert [check.cell.partition(":")[0] for check in checks] == FAMILIES
    assert all(0 < check.value.mean < 0.1 for check in checks)
    assert all(check.verdict is Verdict.AGREES for check in checks)
    # At the same Es/N0 every family has the same goodput.
    left = [float(re.search(r"; (\S+) with 3\.0103 dB", check.note)[1]) for check in checks]
    assert max(left) < 1e-6
