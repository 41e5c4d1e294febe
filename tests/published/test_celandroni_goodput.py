"""Celandroni, Ferro and Potortì: printed values and ours."""

from __future__ import annotations

import importlib

import pytest
from tests.conftest import ROOT

from farlink import papers
from farlink.models.tcp_goodput import celandroni
from farlink.papers.celandroni.setting import CN0
from farlink.papers.check import Verdict
from farlink.papers.item import Workbench

# Five connections over 455 segments per second; T in s is what makes the first cell agree, see `farlink.papers.celandroni`.
FLOWS = 5
LINK = {"rate_segments_per_s": 455.0, "rtt_s": 0.50634}
TABLE_1 = [
    (2.0, 1e-4, "2.656"),
    (2.0, 1e-3, "0.8345"),
    (2.0, 1e-2, "0.2478"),
    (2.0, 1e-1, "0.0429"),
    (1.0, 1e-4, "2.657"),
    (1.0, 1e-3, "0.8375"),
    (1.0, 1e-2, "0.2565"),
    (1.0, 1e-1, "0.0568"),
]


@pytest.mark.published("Celandroni, table I, columns of relation (1)")
@pytest.mark.parametrize(("timeout_s", "loss", "printed"), TABLE_1)
def test_relation_1_gives_table_1(timeout_s, loss, printed):
    total = FLOWS * float(celandroni.relation_1(loss, timeout_s=timeout_s, **LINK))

    unit = 10.0 ** -len(printed.partition(".")[2])
    assert total == pytest.approx(float(printed), abs=1.01 * unit / 2)


@pytest.mark.published("Celandroni, table I")
def test_table_1_is_met_but_for_two_misprints():
    paper = papers.load("celandroni")
    (outcome,) = Workbench().outcomes([paper.item("table-1")])

    assert [check.verdict for check in outcome.checks] == [Verdict.FITTED] * 8 + [Verdict.MISPRINT] * 2
    assert [check.printed for check in outcome.checks[:8]] == [float(printed) for *_, printed in TABLE_1]


@pytest.mark.published("Celandroni, table I, 40 goodputs of connections and eight totals")
def test_every_connection_of_table_1_is_compared_with_its_own_interval():
    (outcome,) = Workbench(runs=6).outcomes([papers.load("celandroni").item("table-1-simulated")])

    connections = [check for check in outcome.checks if "connection" in check.cell]
    assert len(connections) == 40
    # With few runs some verdicts stay open; the others must be those of the page.
    misprints = [check.cell for check in connections if check.verdict is Verdict.MISPRINT]
    assert misprints == ["ns-2, loss 0.01: connection 3 (± 1.5 %)"]
    assert {check.cell.split(":")[0] for check in connections if check.verdict is Verdict.DIFFERS} <= {
        "TGEP, loss 0.1",
        "ns-2, loss 0.1",
    }
    assert not [check for check in connections if check.engine == "fluid" and check.verdict is Verdict.AGREES]
    assert sum(check.verdict is Verdict.FITTED for check in connections) == 15


@pytest.mark.slow
@pytest.mark.published("Celandroni, section IV")
@pytest.mark.parametrize("step", [6, pytest.param(1, marks=pytest.mark.nightly)])
def test_a_dedicated_carrier_needs_3_db_less(monkeypatch, step):
    pytest.importorskip("pydantic")
    # Each C/N0 has decoders of its own to simulate: `make papers` and the nightly tests have all of them.
    monkeypatch.setattr(importlib.import_module("farlink.papers.celandroni.section_4"), "CN0", CN0[::step])
    paper = papers.load("celandroni")
    (outcome,) = Workbench().outcomes([paper.item("section-4")])

    # One for each family of codes.
    assert [check.verdict for check in outcome.checks] == [Verdict.AGREES] * 7


def test_the_shipped_modem_is_that_of_the_paper():
    own = ROOT / "python" / "farlink" / "papers" / "celandroni" / "modem.toml"

    assert (ROOT / "studies" / "celandroni" / "modem.toml").read_text() == own.read_text()
