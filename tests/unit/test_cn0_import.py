"""C/N0 from text: columns, times, gaps, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from farlink.channels import cache
from farlink.channels.importers.recording import Hints
from farlink.channels.rain.series import fades_s, quantiles_dbhz, time_below
from farlink.channels.summary import summary
from farlink.channels.trace import Trace
from farlink.errors import TraceError


def imported(tmp_path, text, **hints):
    path = tmp_path / "modem.csv"
    path.write_text(text)
    return cache.import_file(path, hints=Hints(**hints))


@pytest.mark.parametrize(
    ("text", "hints"),
    [
        ("time_s,cn0_dbhz\n0,80\n10,79.5\n20,81\n", {}),
        ("time_s;C/N0 [dBHz]\n0;80\n10;79,5\n20;81\n", {}),
        ("# modem\n# time_s, cn0\n0, 80\n10, 79.5\n20, 81\n", {}),
        ("time,elevation,C_N0\n2026-01-01T00:00:00,30,80\n2026-01-01T00:00:10,30,79.5\n2026-01-01T00:00:20,30,81\n", {}),
        ("cn0_dbhz\n80\n79.5\n81\n", {"sample_rate_hz": 0.1}),
        ("when,cn0_dbhz\n5,80\n15,79.5\n25,81\n", {"time_column": "when"}),
        ("time_ms,up_cn0,down_cn0\n0,1,80\n10000,2,79.5\n20000,3,81\n", {"column": "down_cn0"}),
    ],
)
def test_columns_are_found(tmp_path, text, hints):
    trace = imported(tmp_path, text, **hints)

    assert trace.kind == "cn0"
    np.testing.assert_allclose(trace["time_s"], [0, 10, 20])
    np.testing.assert_array_equal(trace["cn0_dbhz"], [80, 79.5, 81])
    assert trace.duration_s == pytest.approx(30)


def test_gaps_are_recorded_in_the_trace(tmp_path):
    trace = imported(tmp_path, "time_s,cn0_dbhz\n0,80\n1,\n2,nan\n3,79\n", gaps="outage")

    assert trace["cn0_dbhz"].tolist() == [80, -np.inf, -np.inf, 79]
    assert trace.meta["gaps_s"] == [[1.0, 3.0]]
    assert trace.meta["notes"] == "missing for 2.0 s in 1 gap: 1.0 to 3.0 s; taken as outages"


def test_minus_infinity_is_no_signal(tmp_path):
    trace = imported(tmp_path, "time_s,cn0_dbhz\n0,80\n1,-inf\n2,79\n")

    assert trace["cn0_dbhz"].tolist() == [80, -np.inf, 79]


@pytest.mark.parametrize(
    ("text", "hints", "said"),
    [
        ("time_s,cn0_dbhz\n0,80\n1,nan\n2,79\n", {}, "missing for 1.0 s in 1 gap: 1.0 to 2.0 s"),
        ("time_s,cn0_dbhz\n0,80\n2,81\n1,79\n", {}, "the clock goes backwards at row 3"),
        ("time_s,cn0_dbhz\n0,80\n1,1e9\n", {}, "cn0_dbhz is 1e+09 at 1 s"),
        ("time_s,cn0_dbhz\n0,80\n1,inf\n", {}, "a value that is not finite"),
        ("time_s,cn0_dbhz\n0,-inf\n1,-inf\n", {}, "no signal throughout"),
        ("time_s,cn0_dbhz\n0,80\n1,high\n", {}, "line 3: cn0_dbhz is 'high', not a number"),
        ("cn0_dbhz,elevation\n80,30\n79,30\n", {}, "no times"),
        ("time_s,up_cn0,down_cn0\n0,1,2\n1,1,2\n", {}, "2 columns of it"),
        ("time_s,cn0_dbhz\n0,80\n1,81\n", {"unit": "dBm"}, "'dBm' is no unit of C/N0"),
        ("time_s,cn0_dbhz\n0,80\n1,81\n", {"gaps": "blocked"}, "gaps 'blocked' is not one of"),
        ("time_s,cn0_dbhz\n0,80\n1,81\n", {"sample_rate_hz": 0.0}, "a sampling rate of 0 Hz"),
    ],
)
def test_refused(tmp_path, text, hints, said):
    with pytest.raises(TraceError) as refused:
        imported(tmp_path, text, **hints)

    assert "modem.csv" in refused.value.message or "gaps" in said or "unit" in said or "rate" in said
    assert said in refused.value.message
    assert refused.value.remedy


def test_the_engine_refuses_a_cn0_trace(tmp_path):
    (tmp_path / "modem.csv").write_text("time_s,cn0_dbhz\n0,80\n1,81\n")

    with pytest.raises(TraceError, match=r"a cn0 trace, where power is wanted"):
        cache.resolve(tmp_path / "modem.csv", kinds=("power",), format=None, member=None)


# Statistics of the trace.


LADDER = Trace("cn0", {"time_s": [0.0, 10, 20, 30, 35], "cn0_dbhz": [80.0, 76, -np.inf, 76, 80]}, {"duration_s": 100.0})


def test_shares_are_weighted_by_time_not_by_entries():
    np.testing.assert_allclose(time_below(LADDER, np.array([75.0, 76.0, 77.0, 81.0])), [0.1, 0.1, 0.25, 1])
    np.testing.assert_array_equal(
        quantiles_dbhz(LADDER, np.array([0.05, 0.1, 0.11, 0.25, 0.26, 1])), [-np.inf, -np.inf, 76, 76, 80, 80]
    )


def test_fade_lengths_are_durations():
    assert fades_s(LADDER, 77).tolist() == [25.0]
    assert fades_s(LADDER, 75).tolist() == [10.0]
    assert fades_s(LADDER, 90).tolist() == [100.0]


def test_summary_has_depths_and_outages():
    found = summary(LADDER)

    assert found["cn0_max_dbhz"] == 80
    assert found["time_without_signal"] == pytest.approx(0.1)
    assert (found["fades_3_db"], found["time_in_fades_3_db"], found["fade_3_db_max_s"]) == (1, 0.25, 25)


def test_summary_has_levels_for_five_shares_of_the_time():
    # Ten thousand entries of a second each: level n is the n-th worst.
    series = {"time_s": np.arange(10_000.0), "cn0_dbhz": np.arange(10_000) / 1e3}
    ramp = Trace("cn0", series, {"duration_s": 10_000.0})
    found = summary(ramp)

    levels = {name: value for name, value in found.items() if name.startswith("cn0_p")}
    assert list(levels) == ["cn0_p0.01_dbhz", "cn0_p0.1_dbhz", "cn0_p1_dbhz", "cn0_p10_dbhz", "cn0_p50_dbhz"]
    assert list(levels.values()) == pytest.approx([0.0, 0.009, 0.099, 0.999, 4.999], abs=1.1e-3)
