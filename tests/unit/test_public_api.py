"""The API in a notebook: short reprs, packages as attributes, and FarlinkError for every bad value."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import farlink
from farlink.errors import FarlinkError
from farlink.shown import short_table

SCENARIO = {
    "duration_s": 2,
    "runs": 2,
    "link": {"rate_bps": 1e6, "delay_s": 0.05, "channel": {"kind": "ber", "ber": 1e-6}},
    "transport": {"sack": {"kind": "tcp"}},
    "flow": {"bulk": {"transport": "sack", "traffic": {"kind": "bulk"}}},
    "grid": {"link.channel.ber": [1e-7, 1e-6]},
}


@pytest.fixture(scope="module")
def result():
    return farlink.run(SCENARIO)


@pytest.fixture(scope="module")
def series():
    return farlink.trace_run(SCENARIO)


@pytest.mark.parametrize("package", ["channels", "models", "tune"])
def test_packages_are_attributes_and_listed(package):
    code = f"import sys, farlink; m = farlink.{package}; assert '{package}' in dir(farlink)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

    assert getattr(farlink, package).__name__ == f"farlink.{package}"


def test_modules_of_packages_are_attributes():
    assert farlink.models.arq.__name__ == "farlink.models.arq"
    assert {"arq", "aerotp", "tcp_latency"} <= set(dir(farlink.models))
    with pytest.raises(AttributeError, match="no attribute 'arqq'"):
        farlink.models.arqq  # noqa: B018


def test_importing_farlink_imports_nothing_heavy():
    code = "import sys, farlink; dir(farlink); print([m for m in ('numpy', 'farlink._core', 'typer') if m in sys.modules])"

    done = subprocess.run([sys.executable, "-c", code], check=True, timeout=60, capture_output=True, text=True)

    assert done.stdout == "[]\n"


def test_reprs_are_short(result, series):
    assert repr(result).startswith("Result Scenario: 2 points, 1 flow, 4 runs")
    assert "1e-7" in repr(result)
    assert "cwnd" in repr(series)
    assert "cwnd" in series._repr_html_()
    assert max(len(repr(one)) for one in (result, series, result.scenario)) < 2000


@given(
    title=st.text(max_size=5000),
    table=st.integers(1, 30).flatmap(
        lambda columns: st.lists(st.lists(st.text(max_size=100), min_size=columns, max_size=columns), min_size=1, max_size=50)
    ),
)
def test_a_shortened_table_is_short_whatever_it_holds(title, table):
    text = short_table(title, table[0], table[1:], "rows has all")

    assert len(text) < 2000
    assert len(text.splitlines()) <= 11
    assert ("more row" in text.splitlines()[-1]) is (len(table) > 9) or len(table) <= 9


def test_numpy_values_are_accepted(result):
    arrays = {**SCENARIO, "runs": np.int64(2), "grid": {"link.channel.ber": np.array([1e-7, 1e-6])}}

    assert farlink.run(arrays).summary() == result.summary()
    fixed = farlink.run(SCENARIO, set={"link.channel.ber": np.float64(1e-7)}, runs=np.int64(2))
    assert fixed.summary()[0]["goodput_bps"] == result.summary()[0]["goodput_bps"]


BAD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, -1),
    st.integers(1000, 10**400),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=5),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.integers(), st.integers(), max_size=2),
    st.builds(object),
    st.just(np.array([1.0, 2.0])),
    st.just(np.array([object()])),
    st.just(np.float32("nan")),
    st.complex_numbers(),
)

CALLS = {
    "run": lambda value, *_: farlink.run(value),
    "run set": lambda value, *_: farlink.run(SCENARIO, runs=1, set=value),
    "run set of a key": lambda value, *_: farlink.run(SCENARIO, runs=1, set={"link.rate_bps": value}),
    "run grid": lambda value, *_: farlink.run({**SCENARIO, "grid": {"link.delay_s": value}}),
    "run engine": lambda value, *_: farlink.run(SCENARIO, engine=value),
    "run seed": lambda value, *_: farlink.run(SCENARIO, runs=1, seed=value),
    "run threads": lambda value, *_: farlink.run(SCENARIO, runs=1, threads=value),
    "load": lambda value, *_: farlink.load(value),
    "trace point": lambda value, *_: farlink.trace_run(SCENARIO, point=value),
    "trace run": lambda value, *_: farlink.trace_run(SCENARIO, run=value),
    "trace quantities": lambda value, *_: farlink.trace_run(SCENARIO, quantities=value),
    "plot": lambda value, result, _: result.plot(value),
    "table": lambda value, result, _: result.table(value),
    "series plot": lambda value, _, series: series.plot(value),
    "series flow": lambda value, _, series: series.plot("window", value),
    "select flow": lambda value, _, series: series.select("cwnd", value),
}


@pytest.mark.parametrize("call", CALLS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=BAD)
def test_a_bad_value_is_accepted_or_raises_a_farlink_error(call, value, result, series):
    with suppress(FarlinkError):
        CALLS[call](value, result, series)


def test_a_nonexistent_run_is_refused():
    with pytest.raises(FarlinkError, match="run 99 does not exist") as caught:
        farlink.trace_run(SCENARIO, run=99)

    assert caught.value.remedy == "the scenario has runs 0 to 1"


def test_unknown_names_also_raise_value_error(result, series):
    for wrong in (lambda: result.plot("nope"), lambda: series.plot("nope"), lambda: result.table("nope")):
        with pytest.raises(FarlinkError, match="'nope'") as caught:
            wrong()
        assert isinstance(caught.value, ValueError)
