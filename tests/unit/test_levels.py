"""Intervals are shown at the confidence level that was asked for."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from tests import tuning

import farlink
from farlink.errors import TuneError
from farlink.intervals import percent
from farlink.result import Result
from farlink.student import t_quantile, widened
from farlink.tune import candidate_points, goodput
from farlink.tune import study as studies
from farlink.tune import table as tables
from farlink.tune.describe import report
from farlink.tune.offered import Offered, Path, Precision

SCENARIO = {
    "title": "Random losses",
    "duration_s": 20,
    "link": {"rate_bps": 1e6, "delay_s": 0.05, "queue_packets": 20, "channel": {"kind": "loss", "loss": 0.01}},
    "transport": {"reno": {"kind": "tcp"}},
    "flow": {"bulk": {"transport": "reno", "traffic": {"kind": "bulk"}}},
}


def at_level(level: float | None, *, rows: bool = True, **changes: object) -> Result:
    """Six runs of a link, with intervals at a level."""
    rule = {"quantity": "goodput_bps", "ci": 0.9, "min_runs": 6, "max_runs": 6}
    precision = rule if level is None else {**rule, "level": level}
    return farlink.run({**SCENARIO, "precision": precision, **changes}, rows=rows)


@pytest.mark.parametrize("level", [0.01, 0.5, 0.9, 0.95, 0.99, 0.9999])
def test_quantiles_are_those_of_scipy(level):
    stats = pytest.importorskip("scipy.stats")

    for degrees in (*range(1, 120), 399, 400, 401, 1000, 10**6):
        assert t_quantile(degrees, level) == pytest.approx(stats.t.ppf(0.5 + level / 2, degrees), rel=1e-6)


def test_quantiles_of_nothing_are_refused():
    with pytest.raises(ValueError, match="at least 1, not 0"):
        t_quantile(0, 0.95)
    with pytest.raises(ValueError, match="above 0 and below 1, not 1"):
        t_quantile(3, 1.0)


@pytest.mark.parametrize("level", [0.8, 0.99, 0.999])
@pytest.mark.parametrize("rows", [True, False])
def test_a_summary_has_the_interval_of_the_level(level, rows):
    stats = pytest.importorskip("scipy.stats")
    found = at_level(level, rows=rows).summary()[-1]["goodput_bps"]
    values = [
        value
        for value, flow in zip(*(at_level(None).rows[name] for name in ("goodput_bps", "flow")), strict=True)
        if flow == "all"
    ]

    assert len(values) == 6
    low, high = stats.t.interval(level, 5, np.mean(values), stats.sem(values))
    assert found["half_width"] == pytest.approx((high - low) / 2, rel=1e-9)
    assert found["ci95"] == at_level(None).summary()[-1]["goodput_bps"]["ci95"]


def test_a_quantity_unknown_in_some_runs_counts_those_where_it_is_known():
    """A transfer that does not end within the run has no transfer time."""
    stats = pytest.importorskip("scipy.stats")
    transfer = {"bulk": {**SCENARIO["flow"]["bulk"], "traffic": {"kind": "file", "bytes": 1.6e6}}}
    found = at_level(0.99, flow=transfer)
    columns = (found.rows["transfer_time_mean_s"], found.rows["flow"])
    times = [value for value, flow in zip(*columns, strict=True) if flow == "all" and value is not None]

    assert 2 <= len(times) < 6
    low, high = stats.t.interval(0.99, len(times) - 1, np.mean(times), stats.sem(times))
    assert found.summary()[-1]["transfer_time_mean_s"]["half_width"] == pytest.approx((high - low) / 2, rel=1e-9)


def test_without_a_level_nothing_is_added():
    assert set(at_level(None).summary()[-1]["goodput_bps"]) == {"mean", "ci95"}
    assert at_level(None).intervals == "95 % interval"


def test_the_table_of_a_result_shows_it():
    """The ± of goodput is wider at 99 % by the ratio of the quantiles of five degrees of freedom."""
    cells = {level: at_level(level).cells()[1][-1] for level in (0.95, 0.99)}
    wide, narrow = (next(float(cell.split("±")[1]) for cell in cells[level] if "±" in cell) for level in (0.99, 0.95))

    assert at_level(0.99).intervals == "99 % interval"
    assert wide / narrow == pytest.approx(t_quantile(5, 0.99) / t_quantile(5, 0.95), rel=0.1)


def test_levels_of_a_grid():
    result = at_level(0.99, grid={"precision.level": [0.9, 0.999]})
    narrow, wide = (entry["goodput_bps"]["half_width"] for entry in result.summary() if entry["flow"] == "all")

    assert result.levels == [0.9, 0.999]
    assert result.intervals == "interval at the level of each"
    assert wide / narrow == pytest.approx(t_quantile(5, 0.999) / t_quantile(5, 0.9), rel=1e-9)


def test_the_fluid_engine_is_shown_at_its_level():
    """The interval at 99 % is that of the engine itself, to the number of batches, which the summary does not have."""
    fluid = {"engines": ["fluid"], "transport": {"reno": {"kind": "tcp", "variant": "reno", "delayed_ack": False}}}
    result = at_level(0.99, **fluid)
    entry = result.summary()[-1]["goodput_bps"]

    assert result.intervals == "99 % interval"
    assert 1.31 < entry["half_width"] / entry["ci95"] < 1.35


def test_report_and_figure(tmp_path):
    pytest.importorskip("matplotlib")
    from farlink.report import write_report

    result = at_level(0.99, grid={"link.channel.loss": [0.01, 0.03]})
    write_report(result, tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    half = {level: _error_bar(at_level(level, grid={"link.channel.loss": [0.01, 0.03]})) for level in (0.95, 0.99)}

    assert "half-width of the 99 % interval" in text
    assert "with 99 % intervals" in text
    assert "95 %" not in re.sub(r"<(svg|style).*?</\1>", "", text, flags=re.DOTALL)
    assert half[0.99] / half[0.95] == pytest.approx(t_quantile(5, 0.99) / t_quantile(5, 0.95), rel=1e-6)


def _error_bar(result: Result) -> float:
    """Length of the first error bar of a figure."""
    (bars, *_) = result.plot().axes[0].containers
    ((_, low), (_, high)) = bars[2][0].get_segments()[0]
    return float(high - low)


def test_a_run_names_the_level(farlink, tmp_path):
    import tomli_w

    rule = {"quantity": "goodput_bps", "ci": 0.9, "min_runs": 3, "max_runs": 3, "level": 0.99}
    (tmp_path / "s.toml").write_text(tomli_w.dumps({**SCENARIO, "precision": rule}))
    done = farlink("run", "s.toml")

    assert done.returncode == 0, done.stderr
    assert "half-width of the 99 % interval" in done.stdout
    assert "95 %" not in done.stdout


# Of tuning.

SIMULATED = {"shares": [1.0], "flows": [1], "cn0_from_dbhz": 66, "cn0_to_dbhz": 68, "goodput": "fluid"}


@pytest.mark.parametrize("level", [0.8, 0.99, 0.999])
def test_a_table_names_the_level_that_was_asked_for(level):
    made = tables.tune(tuning.study(**SIMULATED, precision={"level": level}), tuning.modem())

    assert f"half-width of the {percent(level)} interval" in report(made)
    assert made.to_dict()["study"]["precision"]["level"] == level
    assert " ± " in report(made)


def test_a_table_by_a_closed_form_has_no_intervals():
    made = tables.tune(tuning.study(**{**SIMULATED, "goodput": "relation"}), tuning.modem())

    assert "±" not in report(made)


def test_the_picture_of_a_table_names_the_level():
    pytest.importorskip("matplotlib")
    from farlink.tune.figures import Tuned, draw

    study = tuning.study(**SIMULATED, precision={"level": 0.9})
    modem = tuning.modem()
    figure = draw("goodput", Tuned(study, modem, tables.tune(study, modem), 66.0))

    assert "90 % intervals" in figure.axes[0].get_ylabel()


def test_points_have_the_level():
    rows = candidate_points.candidate_points(tuning.study(**SIMULATED, precision={"level": 0.9}), tuning.modem())

    assert {row["goodput_level"] for row in rows} == {0.9}
    assert "goodput_half_width_bps,goodput_level," in candidate_points.to_csv(rows)


@pytest.mark.parametrize("name", ["fluid", "selection"])
def test_engines_simulate_to_the_precision_that_was_asked_for(name):
    links = Offered(np.array([455.0]), np.array([5e-4]), 5, Path())
    for precision in (Precision(0.05, 0.9), Precision(0.005, 0.99)):
        share, half_width = goodput.goodput(name, Offered(links.rate_segments_per_s, links.loss, 5, Path(), precision))
        assert 0 < half_width[0] <= precision.ci * share[0]


def test_four_runs_of_the_packet_engine_at_a_level():
    links = [Offered(np.array([20.0]), np.array([1e-2]), 1, Path(), Precision(level=level)) for level in (0.95, 0.99)]
    (_, narrow), (_, wide) = (goodput.goodput("packet", one) for one in links)

    assert wide[0] / narrow[0] == pytest.approx(5.841 / 3.182, rel=1e-3)
    assert widened(1.0, 3, 0.99) == pytest.approx(5.841 / 3.182, rel=1e-3)


@pytest.mark.parametrize("level", [0, 1, 95, "0.9"])
def test_a_level_that_is_none_is_refused(tmp_path, level):
    path = tuning.write(tmp_path, study={"precision": {"level": level}})
    with pytest.raises(TuneError, match=r"precision\.level") as refused:
        studies.load(path)

    assert str(level) in str(refused.value)


def test_a_tuning_names_the_level(farlink, tmp_path):
    tuning.write(tmp_path, study={**SIMULATED, "precision": {"level": 0.999}})
    done = farlink("tune", "study.toml", "-o", "t.json")

    assert done.returncode == 0, done.stderr
    assert "half-width of the 99.9 % interval" in done.stdout
    assert json.loads((tmp_path / "t.json").read_text())["study"]["precision"] == {"ci": 0.01, "level": 0.999}
