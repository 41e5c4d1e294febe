"""Modems, their settings and operating points."""

from __future__ import annotations

import copy
import json
import math
import tomllib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import tuning
from tests.conftest import ROOT

pytest.importorskip("pydantic")

from farlink.channels import coding
from farlink.errors import TuneError
from farlink.tune import modem as modems
from farlink.tune.description import validated
from farlink.tune.points import Point, points
from farlink.tune.staircase import candidates, staircase
from farlink.tune.study import Study

ES_N0_DB = 10.0
OVER = 60.0  # 1 Msymbol/s, in dB


def by_name(found: list[Point]) -> dict[tuple[str, str], Point]:
    return {(point.setting.modulation, point.setting.code_name): point for point in found}


def test_uncoded_points_match_closed_forms():
    (row,) = points(tuning.modem(), [ES_N0_DB + OVER])
    bpsk, qpsk = (by_name(row)[modulation, "uncoded"] for modulation in ("bpsk", "qpsk"))

    half = math.erfc(math.sqrt(10.0)) / 2
    assert bpsk.ber == pytest.approx(half)
    assert qpsk.ber == pytest.approx(math.erfc(math.sqrt(5.0)) / 2)
    assert bpsk.loss == pytest.approx(-math.expm1(552 * 8 * math.log1p(-half)))
    assert (bpsk.information_bps, qpsk.information_bps) == (1e6, 2e6)
    assert bpsk.payload_bps == pytest.approx(1e6 * 512 / 552)
    assert (bpsk.ebn0_db, qpsk.ebn0_db) == (pytest.approx(10.0), pytest.approx(10.0 - 10 * math.log10(2)))


@pytest.mark.parametrize(("modulation", "bits", "esn0_db"), [("8psk", 3, 11.0), ("16qam", 4, 14.0)])
def test_error_rates_of_higher_modulations_match_simulation(modulation, bits, esn0_db):
    uncoded = tuning.modem(modulations=[modulation], code={"none": {"kind": "uncoded"}})
    ((point,),) = points(uncoded, [esn0_db + OVER])

    table = {"modulation": modulation, "decision": "hard", "code": {"kind": "uncoded"}}
    simulated = coding.error_rate(table, point.ebn0_db, events=100_000, max_bits=10**8)
    assert point.information_bps == bits * 1e6
    # Three standard errors.
    assert point.ber == pytest.approx(simulated.ber.value, abs=1.5 * simulated.ber.half_width)


def test_a_code_without_observed_errors_gets_the_upper_end_of_its_interval():
    code = {"CV": {"kind": "convolutional", "generators": "171,133", "rates": ["1/2"]}}
    ((point,),) = points(tuning.modem(modulations=["8psk"], code=code), [16.0 + OVER])

    assert point.ber == pytest.approx(1e-7)


def test_outer_codes_have_their_stated_rate():
    (row,) = points(tuning.modem(), [ES_N0_DB + OVER])
    rate = {name: point.information_bps for (modulation, name), point in by_name(row).items() if modulation == "bpsk"}

    assert rate["RS(216,184)"] == pytest.approx(1e6 * 184 / 216)
    assert rate["RS(78,46)"] == pytest.approx(1e6 * 46 / 78)
    # 12 blocks of 46 bytes and 2 of parity, each with a CRC of 4 bytes.
    assert rate["ER46(14,12)"] == pytest.approx(1e6 * 552 / (14 * 50))


def test_reed_solomon_failures_are_the_binomial_tail():
    (row,) = points(tuning.modem(), [6.0 + OVER])
    point = by_name(row)["bpsk", "RS(216,184)"]

    wrong = -math.expm1(8 * math.log1p(-math.erfc(math.sqrt(10**0.6)) / 2))
    word = 1 - math.fsum(math.comb(216, k) * wrong**k * (1 - wrong) ** (216 - k) for k in range(17))
    assert point.loss == pytest.approx(1 - (1 - word) ** 3, rel=1e-6)


def test_reed_solomon_points_match_the_core():
    (row,) = points(tuning.modem(), [6.0 + OVER])
    point = by_name(row)["bpsk", "RS(216,184)"]

    table = {"decision": "hard", "code": {"kind": "reed-solomon", "n": 216, "k": 184}}
    simulated = coding.error_rate(table, point.ebn0_db, events=200, max_bits=10**8)
    assert simulated.ber.low < point.ber < simulated.ber.high


@pytest.mark.parametrize("interleaving", [1, 3])
def test_concatenated_points_match_the_core(interleaving):
    inner = {"kind": "convolutional", "generators": "171,133", "rates": ["3/4"]}
    outer = {**tuning.MODEM["code"]["RS"], "data_bytes": [184], "interleaved": interleaving == 3}
    both = {"kind": "concatenated", "outer": "RS", "inner": "CV"}
    described = tuning.modem(modulations=["bpsk"], code={"CV": inner, "RS": outer, "RS+CV": both})
    # The inner code at 2.5 dB, a point of the grid.
    (row,) = points(described, [2.5 + 10 * math.log10(0.75) + OVER], families=["RS+CV"])

    convolutional = {"kind": "convolutional", "generators": "171,133", "rate": "3/4"}
    outer = {"kind": "reed-solomon", "n": 216, "k": 184, "interleaving": interleaving}
    table = {"code": {"kind": "concatenated", "outer": outer, "inner": convolutional}}
    simulated = coding.error_rate(table, row[0].ebn0_db, events=400, max_bits=3 * 10**7)
    assert row[0].setting.code_name == "RS(216,184)+CV 3/4"
    # Both are simulated: here from error events, there as the whole chain.
    assert row[0].ber == pytest.approx(simulated.ber.value, rel=0.35)


def test_convolutional_code_loses_fewer_segments_by_bursts():
    code = {"CV": {"kind": "convolutional", "generators": "171,133", "rates": ["1/2"]}}
    conditions = [OVER + 1.0, OVER + 1.1]
    by_bursts, by_bits = (
        points(tuning.modem(modulations=["bpsk"], code=code, errors=errors), conditions) for errors in ("bursts", "independent")
    )

    for bursts, bits in zip(by_bursts, by_bits, strict=True):
        assert bursts[0].ber == bits[0].ber
        assert bursts[0].loss < 0.5 * bits[0].loss
    # 1.1 dB lies between two points of the grid of Eb/N0.
    assert by_bursts[1][0].ber < by_bursts[0][0].ber


def test_qpsk_is_bpsk_with_twice_the_rate_and_half_the_energy():
    modem = tuning.modem(code={"CV": {"kind": "convolutional", "generators": "171,133", "rates": ["3/4"]}})
    three_db = 10 * math.log10(2)
    low, high = points(modem, [OVER + 4.0, OVER + 4.0 + three_db])

    bpsk = by_name(low)["bpsk", "CV 3/4"]
    qpsk = by_name(high)["qpsk", "CV 3/4"]
    assert qpsk.ber == pytest.approx(bpsk.ber, rel=1e-6)
    assert qpsk.loss == pytest.approx(bpsk.loss, rel=1e-6)
    assert qpsk.information_bps == 2 * bpsk.information_bps


def test_a_dedicated_carrier_spreads_its_energy_over_fewer_symbols():
    half = {"share": 0.5}
    (tdma,) = points(tuning.modem(), [70.0], **half)
    (scpc,) = points(tuning.modem(access="scpc"), [70.0 - 10 * math.log10(2)], **half)

    # Celandroni, section IV: the results hold with C/N0 less by 3 dB.
    assert [point.loss for point in scpc] == pytest.approx([point.loss for point in tdma])
    assert [point.information_bps for point in scpc] == [point.information_bps for point in tdma]


def test_implementation_loss_is_subtracted_and_the_demodulator_has_a_limit():
    (ideal,) = points(tuning.modem(), [68.0])
    (real,) = points(tuning.modem(implementation_loss_db=2.0), [70.0])

    assert [point.ber for point in real] == [point.ber for point in ideal]
    assert points(tuning.modem(lowest_esn0_db=9.0), [68.9, 69.0])[0] == []


def test_staircase_never_falls_and_nothing_lies_below_it():
    for row in points(tuning.modem(), [64.0, 68.0, 72.0]):
        steps = staircase(row)
        assert [point.information_bps for point in steps] == sorted(point.information_bps for point in steps)
        assert [point.ber for point in steps] == sorted(point.ber for point in steps)
        for point in row:
            assert any(step.information_bps >= point.information_bps and step.ber <= point.ber for step in steps)
        worth = candidates(row)
        for point in row:
            assert any(one.payload_bps >= point.payload_bps and one.loss <= point.loss for one in worth)


@pytest.mark.parametrize(
    ("changes", "words", "remedy"),
    [
        ({"symbol_rate_hz": 1e6}, "symbol_rate_hz: there is no such key", "did you mean 'symbol_rates_hz'?"),
        ({"modulations": ["qspk"]}, "modulations[0]: 'qspk' is none of bpsk, qpsk, 8psk, 16qam", "did you mean 'qpsk'?"),
        ({"symbol_rates_hz": [0]}, "symbol_rates_hz[0]: 0", "allowed"),
        ({"symbol_rates_hz": ["1e6"]}, "symbol_rates_hz[0]: '1e6'", "allowed"),
        ({"segment_bytes": []}, "segment_bytes", ""),
        ({"code": {"X": {"kind": "turbo"}}}, "code.X.kind: 'turbo' is none", "give one of"),
        ({"code": {"X": {"generators": "171,133"}}}, "code.X.kind", "kind"),
        ({"code": {"X": {"kind": "uncoded", "rate": 1}}}, "code.X.rate: there is no such key", "kind"),
        (
            {"code": {"RS": {"kind": "reed-solomon", "n": 255, "k": 255, "data_bytes": [3]}}},
            "n = 255 and k = 255",
            "give k below n",
        ),
        ({"code": {"CV": {"kind": "convolutional", "generators": "171,133"}}}, "no rate and no pattern", 'rates = ["1/2"'),
        (
            {"code": {"RS": {"kind": "reed-solomon", "n": 255, "k": 223, "data_bytes": [230]}}},
            "code.RS: data_bytes of 230 are more than k = 223",
            "shortened",
        ),
        ({"code": {"CV": {"kind": "convolutional", "generators": "6,5", "rates": ["1/2"]}}}, "code.CV:", "171,133"),
        ({"code": {"A": {"kind": "concatenated", "outer": "RS", "inner": "CV"}}}, "code.A: there is no family 'RS'", ""),
        ({"code": {"ER": {"kind": "erasure", "block_bytes": 4, "parity_blocks": [120]}}}, "more than 256", "larger"),
        ({"header_bytes": -1}, "header_bytes: -1", ""),
        ({"access": "fdma"}, "access: 'fdma' is none of tdma, scpc", ""),
    ],
)
def test_bad_modems_are_refused(tmp_path, changes, words, remedy):
    tuning.write(tmp_path, modem=changes)

    with pytest.raises(TuneError) as refused:
        modems.load(tmp_path / "modem.toml")
    assert words in refused.value.message
    assert str(tmp_path / "modem.toml") in refused.value.message
    assert remedy in refused.value.remedy


# Values that a user may write for any key.
NUMBERS = [-1, 0, 1, 3, 10**12, 10**40, -1.5, 1e-300, 1e300, math.inf, -math.inf, math.nan, True]
TABLES = [[], [[]], {}, ["x"], [0], [1e9], ["1/2", "9/8"], {"kind": "x"}, {"kind": "uncoded"}]
STRANGE = st.sampled_from(["", "x", "171,133", *NUMBERS, *TABLES])


def places(table: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every key and of every element."""
    found = []
    for key, value in table.items() if isinstance(table, dict) else enumerate(table):
        found.append((*before, key))
        if isinstance(value, dict | list):
            found += places(value, (*before, key))
    return found


def refusal(call: Callable[[], object]) -> TuneError | None:
    """The refusal of a call, or nothing; any other exception is a defect of farlink."""
    try:
        call()
    except TuneError as error:
        return error
    return None


def with_value(table: Any, place: tuple[Any, ...], value: Any) -> Any:
    """A copy with another value at a path."""
    copied = copy.deepcopy(table)
    at = copied
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    return copied


WHOLE_MODEM = tomllib.loads((ROOT / "studies" / "celandroni" / "modem.toml").read_text())
WHOLE_STUDY = {**tuning.STUDY, "usable": {"loss": 0.1, "goodput_bps": 1.0}, "thresholds": {"margin_db": 0, "hysteresis_db": 1}}


@settings(max_examples=200)
@given(st.sampled_from(places(WHOLE_MODEM)), STRANGE)
def test_a_modem_with_a_hostile_value_works_or_raises_a_farlink_error(place, value):
    changed = with_value(WHOLE_MODEM, place, value)
    error = refusal(lambda: validated(modems.Modem, changed, where="modem.toml").settings())
    assert error is None or (error.message and error.remedy and "\n" not in error.message)


@settings(max_examples=200)
@given(st.sampled_from(places(WHOLE_STUDY)), STRANGE)
def test_a_study_with_a_hostile_value_works_or_raises_a_farlink_error(place, value):
    changed = with_value(WHOLE_STUDY, place, value)
    error = refusal(lambda: validated(Study, changed, where="study.toml").cn0_dbhz)
    assert error is None or (error.message.startswith("study.toml: ") and error.remedy)


@pytest.mark.parametrize("cn0", [-1e300, -200.0, 0.0, 200.0, 1e300])
def test_no_signal_is_too_weak_or_too_strong(cn0):
    for point in points(tuning.modem(), [cn0])[0]:
        assert 0 <= point.loss <= 1
        assert 0 <= point.ber <= 0.5


def test_a_missing_or_broken_file_is_refused(tmp_path):
    with pytest.raises(TuneError, match="cannot read modem"):
        modems.load(tmp_path / "none.toml")
    (tmp_path / "broken.toml").write_text("title = ")
    with pytest.raises(TuneError, match="is not valid TOML"):
        modems.load(tmp_path / "broken.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TuneError, match="UTF-8"):
        modems.load(tmp_path / "binary.toml")


def test_descriptions_survive_json():
    described = tuning.modem()

    assert modems.Modem.model_validate(json.loads(json.dumps(described.model_dump(mode="json")))) == described
