"""Synthetic fading: refusals, names of cached traces, and labels."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farlink.channels import cache
from farlink.channels.cache import resolve
from farlink.channels.synthesis import PARAMETERS, PRESETS, settle, synthesize, synthetic_file
from farlink.channels.synthesis.summary import summary_lines
from farlink.channels.synthesis.text import parse
from farlink.channels.trace_file import read
from farlink.errors import TraceError


@pytest.mark.parametrize(
    ("name", "given", "said", "remedy"),
    [
        ("kidoo", {}, "'kidoo' is no preset", "did you mean 'kiodo'?"),
        ("zzz", {}, "'zzz' is no preset", "give one of fasolt, kiodo"),
        ("kiodo", {"alfa": 3}, "'alfa' is no parameter", "did you mean 'alpha'?"),
        ("kiodo", {"alpha": "three"}, "alpha: 'three' is not a number from 0.2 to 10000", "for example 4.5"),
        ("kiodo", {"alpha": True}, "alpha: True is not a number", "shape of the slow factor"),
        ("kiodo", {"order": 1}, "order: 1 is a first-order process", "order=2 or more"),
        ("kiodo", {"alpha": math.nan}, "alpha: nan is not a number from 0.2", "shape of the slow factor"),
        ("kiodo", {"transmitters": 1.5}, "transmitters: 1.5 is not a whole number from 1 to 64", "beams"),
        ("kiodo", {"marginal": "weibul"}, "marginal: 'weibul' is not one of lognormal", "'weibull'?"),
        ("kiodo", {"start_elevation_deg": 3}, "start_elevation_deg: 3 is not a number from 5 to 90", "elevation at the start"),
        ("kiodo", {"max_elevation_deg": 5, "start_elevation_deg": 9}, "9 is above max_elevation_deg = 5", "at most max"),
        ("kiodo", {"orbit": "none"}, "scintillation_index: 0 means by elevation", "orbit=circular"),
        ("kiodo", {"direction": "falling"}, "comes down to 5 degrees after 0.0 s", "start_elevation_deg=14.5"),
        ("kiodo", {"duration_s": 1000}, "duration_s: 1000 s is longer than the pass", "at most 6"),
        ("testbed", {"duration_s": -1}, "duration_s: -1 is not above 0", "for example 100"),
        ("testbed", {"duration_s": math.inf}, "duration_s: inf is not above 0", "for example 100"),
        ("testbed", {"duration_s": 1e6}, "10,000,000,000 samples", "sample_rate_hz"),
        ("testbed", {"seed": -1}, "seed: -1 is not a whole number", "seed=1"),
        ("testbed", {"tau_s": 1e-4}, "tau_s: 0.0001 is below 5 samples", "sample faster"),
        ("testbed", {"sway_high_hz": 500, "sample_rate_hz": 4000}, "sway_high_hz: 500 is above a tenth", "sample faster"),
        ("atenaa", {"short_min_s": 1}, "short_min_s: 1 is above short_max_s = 0.2", "at most short_max_s"),
    ],
)  # fmt: skip
def test_refusals_name_value_rule_and_remedy(name, given, said, remedy):
    with pytest.raises(TraceError) as refused:
        synthesize(name, **given)

    assert said in refused.value.message
    assert remedy in refused.value.remedy


@given(
    name=st.sampled_from(sorted(PRESETS)),
    key=st.sampled_from(sorted(PARAMETERS)),
    value=st.one_of(st.floats(), st.text(max_size=8)),
)
@settings(max_examples=200)
def test_any_value_is_accepted_or_refused(name, key, value):
    try:
        wanted = settle(name, {key: value}, duration_s=1)
    except TraceError:
        return
    known = PARAMETERS[key]
    if isinstance(known.default, str):
        assert not known.choices or wanted.values[key] in known.choices
    else:
        assert known.low <= wanted.values[key] <= known.high


# Names of traces.


def test_a_synthetic_trace_is_generated_once_and_cached():
    path = resolve("synthetic:testbed?seed=7&duration_s=2&sway=0", kinds=("power",))
    first = path.stat().st_mtime_ns
    trace = read(path)

    np.testing.assert_array_equal(trace["power_w"], synthesize("testbed", seed=7, duration_s=2, sway=0)["power_w"])
    assert trace.meta["parameters"]["sway"] == 0
    assert resolve("synthetic:testbed?seed=7&duration_s=2&sway=0").stat().st_mtime_ns == first
    assert resolve("synthetic:testbed?seed=8&duration_s=2&sway=0") != path
    assert path.parent == cache.directory()
    assert cache.import_file(Path("synthetic:testbed?seed=7&duration_s=2&sway=0")).title == trace.title


def test_a_damaged_cache_file_is_generated_again():
    path = synthetic_file("synthetic:testbed?duration_s=1")
    whole = path.read_bytes()
    path.write_bytes(whole[:100])

    assert synthetic_file("synthetic:testbed?duration_s=1").read_bytes() == whole


@pytest.mark.parametrize(
    ("text", "said", "remedy"),
    [
        ("synthetic:kidoo", "'kidoo' is no preset", "did you mean 'kiodo'?"),
        ("synthetic:", "'' is no preset", "give one of"),
        ("synthetic:kiodo?sed=7", "'sed' is no parameter", "give one of"),
        ("synthetic:kiodo?seed=x", "seed: 'x' is not a whole number", "seed=1"),
        ("synthetic:kiodo?duration_s=long", "duration_s: 'long' is not a number of seconds", "duration_s=100"),
        ("synthetic:kiodo?seed", "'seed' is not key=value", "key=value"),
    ],
)
def test_refused_names(text, said, remedy):
    with pytest.raises(TraceError) as refused:
        resolve(text)

    assert said in refused.value.message
    assert remedy in refused.value.remedy


def test_a_power_trace_is_refused_as_a_delay_trace():
    with pytest.raises(TraceError, match=r"a power trace, where delay is wanted"):
        resolve("synthetic:kiodo", kinds=("delay",))


def test_summary_says_that_it_is_synthetic():
    wanted = parse("synthetic:atenaa?duration_s=20&seed=2")
    lines = dict(summary_lines(wanted, wanted.power()))

    assert lines["Title"] == "ATENAA, seed 2 (synthetic)"
    assert lines["Stands for"].endswith("not measured")
    assert "Blocked" in lines


def test_summary_names_what_the_transmitter_compensates():
    wanted = settle("kiodo", {"transmit_power": "elevation"}, duration_s=20)
    ends_m = wanted.geometry.range_m(np.array([0.0, 20.0]))

    line = dict(summary_lines(wanted, wanted.power()))["Path"]
    assert line == f"{20 * math.log10(ends_m[0] / ends_m[1]):.1f} dB, made up for by the transmitter"


def test_meta_is_plain_json():
    json.dumps(synthesize("kiodo", duration_s=1).meta, allow_nan=False)
