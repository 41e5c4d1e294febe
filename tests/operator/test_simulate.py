"""Simulated days of a bundle."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from farlink.cli import bundle as command
from farlink.errors import OperatorError
from farlink.operator.config.bundle import Budget, Bundle, BundleBudget, Limits, Line
from farlink.operator.simulate import Calls, simulate

LINES = tuple(Line(f"line{n}", f"/dev/ttyUSB{n}", "iridium-9522b", number="00881600005123") for n in range(8))
CAMP = Bundle("camp", LINES, 8)


def test_all_lines_are_up_as_independent_ones_are():
    found = simulate(CAMP, 60.0)

    share = sum(line.up_s for line in found.lines) / 8 / (60 * 86_400)
    # A cycle: 3000 s up, T_d of 5 s, dials of 30 s of which one in ten fails and costs 20 s more, 5 s of set-up.
    assert share == pytest.approx(3000 / (3000 + 5 + 30 / 0.9 + 20 / 9 + 5), abs=0.003)
    assert found.all_up_s / (60 * 86_400) == pytest.approx(share**8, abs=0.02)
    assert found.any_up_s <= 60 * 86_400


def test_budgets_are_kept_day_by_day():
    found = simulate(replace(CAMP, budget=Budget(airtime_s_per_day=20_000, money_per_min=1.2)), 10.0)

    for line in found.lines:
        assert line.airtime_s == pytest.approx(200_000, abs=10)
        assert line.money == pytest.approx(200_000 / 60 * 1.2, abs=1)


def test_all_lines_share_a_budget_and_dear_ones_stop_first():
    lines = tuple(replace(one, budget=Budget(money_per_min=6.0)) if at < 2 else one for at, one in enumerate(LINES))
    shared = BundleBudget(airtime_s_per_day=100_000, money_per_day=1000)
    found = simulate(replace(CAMP, lines=lines, bundle_budget=shared), 10.0)

    # What is less than a minute for each is left over.
    assert 0.99 * 1_000_000 < sum(line.airtime_s for line in found.lines) < 1_000_010
    assert 0.98 * 10_000 < sum(line.money for line in found.lines) < 10_001
    assert all(line.airtime_s < 60_000 for line in found.lines[:2])
    assert all(line.airtime_s > 120_000 for line in found.lines[2:])


def test_nothing_is_given_up_for_good():
    found = simulate(CAMP, 10.0, Calls(fail=1.0))

    # Rounds of five attempts and an hour: pauses of 20, 40, 80 and 160 s, and dials of 30 s.
    round_s = 3600 + 20 + 40 + 80 + 160 + 5 * 30
    for line in found.lines:
        assert line.ups == 0
        assert line.attempts == pytest.approx(5 * 864_000 / round_s, rel=0.05)
        assert line.blocks == pytest.approx(864_000 / round_s, rel=0.05)


def test_lines_that_flap_are_damped():
    found = simulate(replace(CAMP, limits=Limits(flaps=3, flap_window_s=600)), 5.0, Calls(mean_up_s=10, fail=0, dial_s=1))

    assert all(line.drops <= 3 * 5 * 86_400 / 600 + 3 for line in found.lines)
    assert all(line.drops > 1000 for line in found.lines)


def test_only_so_many_lines_as_wanted_are_in_use():
    found = simulate(replace(CAMP, use=2), 5.0, Calls(mean_up_s=1e8, fail=0.0))

    assert sum(line.up_s > 0 for line in found.lines) == 2


def test_lines_that_answer_wait_for_nobody():
    with pytest.raises(OperatorError, match="no line of bundle camp dials"):
        simulate(replace(CAMP, lines=(replace(LINES[0], role="answer", number=""),)), 1.0)


def test_the_same_seed_gives_the_same_days():
    assert simulate(CAMP, 3.0, seed=7) == simulate(CAMP, 3.0, seed=7) != simulate(CAMP, 3.0, seed=8)


def test_the_command_prints_a_table_and_json(tmp_path: Path):
    rows = "".join(
        f'[[line]]\nname = "{line.name}"\nport = "{port}"\nprofile = "iridium-9522b"\nnumber = "00881600005123"\n'
        for line, port in zip(LINES, ("/dev/null", "/dev/zero"), strict=False)
    )
    path = tmp_path / "bundle.toml"
    path.write_text(f'name = "camp"\n{rows}')

    shown = CliRunner().invoke(command.app, ["simulate", str(path), "--days", "2"])
    assert shown.exit_code == 0, shown.output
    assert "line1" in shown.output
    assert "at least one" in shown.output
    found = json.loads(CliRunner().invoke(command.app, ["simulate", str(path), "--days", "2", "--json"]).output)
    assert [line["name"] for line in found["lines"]] == ["line0", "line1"]
    assert 0.9 < found["any_up"] <= 1

    path.write_text(f'name = "camp"\nuse = 3\n{rows}')
    assert CliRunner().invoke(command.app, ["simulate", str(path)]).exit_code == 2
