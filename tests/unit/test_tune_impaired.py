"""Tuning over an impaired link: what reaches the engine, which code wins, seeds, kept work, refusals."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import tuning
from tests.conftest import program_of_docs

pytest.importorskip("pydantic")

from farlink.channels import coding
from farlink.channels.trace import Trace
from farlink.channels.trace_file import write
from farlink.errors import TuneError
from farlink.tune import files
from farlink.tune import study as studies
from farlink.tune import table as tables
from farlink.tune.basis import basis
from farlink.tune.bit_errors import Independent
from farlink.tune.candidate_points import candidate_points
from farlink.tune.codes.erasure import ErasureOfSegments
from farlink.tune.codes.reed_solomon import ReedSolomon
from farlink.tune.describe import report
from farlink.tune.evaluate import rated
from farlink.tune.impaired import goodput as impaired_goodput
from farlink.tune.impaired.impairment import impairment
from farlink.tune.impaired.inner_decoder import trellis_of
from farlink.tune.impaired.play import play
from farlink.tune.impaired.viterbi import USUAL
from farlink.tune.impaired.wrong_bits import Chain
from farlink.tune.inner import Inner
from farlink.tune.offered import Offered, Path
from farlink.tune.packet_goodput import link, ran
from farlink.tune.points import points
from farlink.tune.reader import LookUp
from farlink.tune.row import NO_TRANSMISSION
from farlink.tune.study import Study

BURSTS: dict[str, Any] = {"kind": "gilbert-elliott", "per": "bit", "ber_bad": 0.5, "p_good_to_bad": 1e-6, "p_bad_to_good": 1e-3}
OUTAGES: dict[str, Any] = {"kind": "outage", "rate_per_s": 0.1, "down_s": 0.02}
CODES: dict[str, Any] = {
    "none": {"kind": "uncoded"},
    "RS": {"kind": "reed-solomon", "n": 255, "k": 223, "data_bytes": [184]},
    "RS-group": {"kind": "reed-solomon", "n": 255, "k": 223, "data_bytes": [184], "segments": 20},
    "ER23": {"kind": "erasure", "block_bytes": 23, "check": "crc-16", "parity_blocks": [2]},
    "ER-group": {"kind": "erasure", "segments": 20, "check": "crc-16", "parity_blocks": [3]},
}
# 45 segments per second over 0.1 s: milliseconds for the packet engine.
SLOW: dict[str, Any] = {"symbol_rates_hz": [1e5], "modulations": ["qpsk"], "code": CODES}
FEW: dict[str, Any] = {"cn0_from_dbhz": 75, "cn0_to_dbhz": 75, "shares": [1.0], "flows": [1], "round_trip_s": 0.1}


@pytest.fixture(autouse=True)
def _own_kept_goodput(monkeypatch, tmp_path):
    """Nothing is taken from another test."""
    monkeypatch.setenv("FARLINK_CACHE", str(tmp_path / "cache"))


def made(channel=BURSTS, *, modem=SLOW, **changes):
    return tables.tune(tuning.study(**{**FEW, "impairment": channel, **changes}), tuning.modem(**modem))


def judged(channel, *, families=None, cn0_dbhz=75.0, seed=1, modem=SLOW, path=None):
    """Each setting over an impairment, by the name of its code."""
    (row,) = points(tuning.modem(**modem), [cn0_dbhz], families=families)
    over = impairment(channel, seed=seed)
    each = rated(row, name="packet", flows=1, path=path or Path(0.1), impairment=over)
    return {one.point.setting.code_name: one for one in each}


# The link of docs/validation/erasure-bursts.md, which has its cells by a program of its own: mean and half-width in b/s.
PAGE_MODEM = {"symbol_rates_hz": [2e6], "modulations": ["qpsk"], "code": CODES}
PAGE_BURSTS = {**BURSTS, "p_good_to_bad": 1 / (200 * 8 * 552), "p_bad_to_good": 1 / 4096}
PAGE_OUTAGES = {"kind": "outage", "rate_per_s": 0.1, "down_s": 0.005}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("channel", "erasure", "reed_solomon"),
    [(PAGE_BURSTS, (207e3, 16e3), (147e3, 12e3)), (PAGE_OUTAGES, (677e3, 47e3), (299e3, 16e3))],
    ids=["bursts of 4096 bits", "outages of 5 ms"],
)
def test_over_groups_of_segments_erasure_codes_win_as_on_the_page(channel, erasure, reed_solomon):
    # 512 and 40 bytes, half of the carrier, delayed acknowledgements.
    asked = tuning.study(
        cn0_from_dbhz=90, cn0_to_dbhz=90, shares=[0.5], flows=[1], segments_per_ack=2, impairment=channel, tolerance=0.0
    )
    modem = tuning.modem(**PAGE_MODEM)

    (row,) = tables.tune(asked, modem).rows
    every = {one["code"]: one for one in candidate_points(asked, modem)}

    best, other = every["ER(23,20) of segments"], every["RS(216,184) over 20 segments"]
    assert row.code == "ER(23,20) of segments"
    assert all(best["goodput_bps"] > 1.2 * one["goodput_bps"] for name, one in every.items() if name != row.code)
    for found, (mean, half_width) in ((best, erasure), (other, reed_solomon)):
        # Intervals of 99 % here and of 95 % there.
        assert found["goodput_bps"] == pytest.approx(mean, abs=found["goodput_half_width_bps"] + half_width)


def test_the_impairment_decides_the_code():
    # Over noise the code within a segment is the best that carries as much; bursts of 1000 bits need the group.
    over_noise = tables.tune(tuning.study(**{**FEW, "families": ["RS", "RS-group"]}), tuning.modem(**SLOW))
    over_bursts = made(families=["RS", "RS-group"])

    assert [row.code for row in over_noise.rows] == ["RS(216,184)"]
    assert [row.code for row in over_bursts.rows] == ["RS(216,184) over 20 segments"]


@pytest.mark.parametrize("key", ["p_good_to_bad", "p_bad_to_good"])
def test_goodput_falls_with_heavier_bursts(key):
    reached, losses = [], []
    for factor in (1, 10, 100):
        value = BURSTS[key] * factor if key == "p_good_to_bad" else BURSTS[key] / factor
        one = judged({**BURSTS, key: value}, families=["none"])["uncoded"]
        reached.append(one.goodput_bps)
        losses.append(one.point.loss)

    assert losses == sorted(losses)
    assert reached == sorted(reached, reverse=True)
    assert reached[-1] < 0.5 * reached[0]


WHOLE = {"symbol_rates_hz": [1e5], "modulations": ["qpsk"], "segment_bytes": [960], "code": {"none": {"kind": "uncoded"}}}


@pytest.mark.parametrize(
    "channel",
    [
        {**BURSTS, "p_good_to_bad": 1e-5},
        {**BURSTS, "ber_good": 1e-6},
        {"kind": "gilbert-elliott", "p_good_to_bad": 0.005, "p_bad_to_good": 0.4, "loss_bad": 0.9, "loss_good": 0.001},
        {"kind": "outage", "rate_per_s": 0.05, "down_s": 0.05},
        {"kind": "outage", "period_s": 7.31, "down_s": 0.21, "offset_s": 1.0},
        {"kind": "outage", "schedule": [[20, 40], [60, 60.5]]},
    ],
    ids=str,
)
def test_without_a_code_the_engine_finds_what_it_does_over_the_channel_itself(channel):
    # Segments of as many bits as those of the engine, and no noise.
    one = judged(channel, modem=WHOLE, cn0_dbhz=90.0)["uncoded"]

    offered = Offered(np.array([one.point.rate_segments_per_s]), np.zeros(1), 1, Path(0.1))
    share, half_width = ran(link(offered, 0, channel, runs=16, seed=3))
    found = one.goodput_bps / one.point.payload_bps
    # Intervals of 99 % and of 95 %; 2 % more, as an outage on the edge of a segment loses one or two.
    assert found == pytest.approx(share, abs=one.half_width_bps / one.point.payload_bps + 1.4 * half_width + 0.02 * share)
    assert share < 0.97


def test_without_a_code_a_recorded_bit_error_rate_is_the_channels_own(tmp_path):
    ber = np.where(np.arange(400) % 40 < 4, 3e-5, 1e-8)
    path = write(Trace("ber", {"ber": ber}, {"title": "fades", "duration_s": 80.0}), tmp_path / "fades.npz")
    channel = {"kind": "ber-trace", "file": str(path)}
    one = judged(channel, modem=WHOLE, cn0_dbhz=90.0)["uncoded"]

    offered = Offered(np.array([one.point.rate_segments_per_s]), np.zeros(1), 1, Path(0.1))
    share, half_width = ran(link(offered, 0, channel, runs=16, seed=3))
    assert one.point.loss == pytest.approx(float(np.mean(-np.expm1(8000 * np.log1p(-ber)))), rel=1e-3)
    assert one.goodput_bps / one.point.payload_bps == pytest.approx(
        share, abs=one.half_width_bps / one.point.payload_bps + 1.4 * half_width
    )


def test_a_code_over_a_group_averages_fades_that_are_shorter(tmp_path):
    # A tenth of the time a fifth of the bytes are wrong: codewords of a segment fail, those of 20 segments hardly ever.
    ber = np.where(np.arange(4000) % 40 < 4, 0.03, 1e-9)
    path = write(Trace("ber", {"ber": ber}, {"title": "fades", "duration_s": 4000 * 0.004}), tmp_path / "fades.npz")
    found = judged({"kind": "ber-trace", "file": str(path), "lost_above_ber": 0.49}, families=["RS", "RS-group", "ER-group"])

    within, rs, er = (
        found[name].point.loss for name in ("RS(216,184)", "RS(216,184) over 20 segments", "ER(23,20) of segments")
    )
    assert within > 0.05
    assert rs < 0.02
    assert er < within


def test_fading_of_received_light(tmp_path):
    power = np.full(1000, 40e-9)
    power[::10] = 20e-9
    path = write(Trace("power", {"power_w": power}, {"title": "light", "duration_s": 100.0}), tmp_path / "light.npz")
    named, calibrated = (
        judged({"kind": "fading", "file": str(path), **keys}, families=["none", "RS"]) for keys in ({}, {"ber": 1e-3})
    )

    assert 0 < named["uncoded"].point.loss < calibrated["uncoded"].point.loss < 1
    assert calibrated["RS(216,184)"].point.loss < calibrated["uncoded"].point.loss


def test_noise_and_bursts_are_in_the_same_codeword():
    # Bursts of 100 bits alone are corrected, and so is the noise.
    channel = {**BURSTS, "p_good_to_bad": 1e-5, "p_bad_to_good": 1 / 100}
    lost = [judged(channel, families=["RS"], cn0_dbhz=cn0)["RS(216,184)"].point.loss for cn0 in (75.0, 57.5)]
    alone = {one.setting.code_name: one.loss for one in points(tuning.modem(**SLOW), [57.5], families=["RS"])[0]}

    assert lost[1] > lost[0] + alone["RS(216,184)"] + 1e-4


def test_the_same_seed_gives_the_same_table(monkeypatch, tmp_path):
    texts = []
    for number, seed in enumerate((3, 3, 4)):
        monkeypatch.setenv("FARLINK_CACHE", str(tmp_path / f"cache{number}"))
        texts.append(files.text(made(seed=seed, families=["ER23", "ER-group"]), ".json"))

    assert texts[0] == texts[1]
    goodput = [[row["goodput_bps"] for row in json.loads(text)["rows"]] for text in texts]
    assert goodput[0] != goodput[2]
    assert json.loads(texts[0])["study"]["seed"] == 3


def test_what_was_simulated_before_an_interrupt_is_kept(monkeypatch):
    simulate, calls = impaired_goodput.ran, []

    def counted(scenario):
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(scenario)
        return simulate(scenario)

    monkeypatch.setattr(impaired_goodput, "ran", counted)
    asked = {"families": ["none", "RS", "ER23"], "tolerance": 1.0}
    with pytest.raises(KeyboardInterrupt):
        made(**asked)
    calls.clear()
    resumed = made(**asked)

    assert len(calls) == 1
    calls.clear()
    assert files.text(made(**asked), ".json") == files.text(resumed, ".json")
    assert calls == []


def test_a_damaged_kept_goodput_is_simulated_again(tmp_path):
    first = made(families=["none"])
    (kept,) = (tmp_path / "cache" / "goodput").glob("*.json")
    kept.write_text(kept.read_text().replace('"share": 0.', '"share": 0.9'))

    assert made(families=["none"]).rows == first.rows
    assert kept.with_suffix(".damaged").exists()


def test_settings_that_cannot_be_the_best_are_not_simulated(monkeypatch):
    simulate, names = impaired_goodput.ran, []
    monkeypatch.setattr(
        impaired_goodput, "ran", lambda scenario: (names.append(scenario["link"]["rate_bps"]), simulate(scenario))[1]
    )
    # Nothing is lost behind the group, and no code within a segment of half of its rate can reach as much.
    halves = {**CODES, "slow": {"kind": "reed-solomon", "n": 255, "k": 223, "data_bytes": [23]}}
    found = made(modem={**SLOW, "code": halves}, families=["ER-group", "slow"])

    assert [row.family for row in found.rows] == ["ER-group"]
    assert len(names) == 1


def test_the_table_says_what_impairs_the_link(tmp_path):
    table = made(families=["none", "ER-group"])
    content = json.loads(files.text(table, ".json"))

    assert content["format"] == 1
    assert content["study"]["impairment"] == BURSTS
    assert content["study"]["goodput"] == "packet"
    assert "impaired by gilbert-elliott, per bit" in report(table)
    plain = json.loads(files.text(tables.tune(tuning.study(), tuning.modem()), ".json"))
    assert not {"impairment", "seed"} & plain["study"].keys()
    for suffix in (".csv", ".json", ".toml"):
        pytest.importorskip("tomli_w")
        files.write(table, tmp_path / f"t{suffix}")
        assert LookUp.load(tmp_path / f"t{suffix}").pick(75).row == table.rows[0]


def test_a_series_is_not_played_by_such_a_table(tmp_path):
    files.write(made(families=["none"]), tmp_path / "t.json")

    with pytest.raises(TuneError, match=r"an impairment \(gilbert-elliott\), which a series of C/N0 does not have"):
        basis(tmp_path / "t.json")


def test_where_the_impairment_loses_too_much_nothing_is_sent():
    found = made({**BURSTS, "p_good_to_bad": 1e-3}, families=["none", "RS"])

    assert [row.status for row in found.rows] == [NO_TRANSMISSION]
    assert "every setting loses more than 0.3 of the segments; at best" in found.rows[0].reason


@pytest.mark.parametrize(
    ("channel", "goodput", "message", "remedy"),
    [
        ({"kind": "gilbert-eliott"}, None, 'impairment.kind: "gilbert-eliott" is not known', 'did you mean "gilbert-elliott"?'),
        ({"kind": "gilbert-elliott", "per": "bit"}, None, 'impairment: "p_good_to_bad" is missing', ""),
        ({**BURSTS, "loss_bad": 1.0}, None, "impairment: loss_good and loss_bad do not belong", "give ber_good and ber_bad"),
        ({"kind": "outage", "down_s": 1.0}, None, "impairment: an outage needs exactly one of", "keep the keys"),
        ({"kind": "ber", "ber": 1e-6}, None, "impairment.kind: 'ber' is none: its errors are independent", "gilbert-elliott"),
        ({"kind": "chain", "stages": []}, None, "impairment.kind: 'chain' is none", "give one of"),
        ({"kind": "fading", "file": "none.npz"}, None, "impairment.file", "check the name"),
        (BURSTS, "relation", "'relation' takes losses to be independent of each other", 'goodput = "packet"'),
        (BURSTS, "fluid", "those of the impairment 'gilbert-elliott' are not", "leave goodput out"),
        (BURSTS, "relatoin", "there is no model or engine 'relatoin'", "did you mean 'relation'?"),
    ],
)
def test_impossible_impairments_are_refused(tmp_path, channel, goodput, message, remedy):
    path = tuning.write(tmp_path, study={"impairment": channel, **({"goodput": goodput} if goodput else {})})

    with pytest.raises(TuneError) as refused:
        studies.load(path)
    assert message in refused.value.message
    assert remedy in refused.value.remedy
    assert str(path) in refused.value.message


def test_a_seed_without_an_impairment_is_refused():
    with pytest.raises(ValueError, match="seed is of an impairment, and there is none"):
        tuning.study(seed=1)


def test_files_are_beside_the_study(tmp_path, monkeypatch):
    write(Trace("ber", {"ber": np.full(10, 1e-5)}, {"title": "x", "duration_s": 10.0}), tmp_path / "x.npz")
    path = tuning.write(tmp_path, study={"impairment": {"kind": "ber-trace", "file": "x.npz"}})
    monkeypatch.chdir(tmp_path.parent)

    study, _ = studies.load(path)
    assert study.over is not None
    assert json.loads(study.over.text)["file"].endswith("x.npz")
    assert study.impairment == {"kind": "ber-trace", "file": "x.npz"}


def test_decoders_that_cannot_be_run_are_refused():
    measured = {"kind": "measured", "points": [{"cn0_dbhz": 60.0, "rate_bps": 5e4, "ber": 1e-6}]}
    with pytest.raises(TuneError, match="was measured over noise, which does not say what it does under an impairment"):
        made(modem={**SLOW, "modulations": ["bpsk"], "code": {"lab": measured}})
    with pytest.raises(TuneError, match=r"K = 12 has 2,048 states, and under bursts decoders of up to K = 9 are run"):
        trellis_of(Inner.convolutional({"generators": "4335,5723"}, "CV 1/2", "soft"))


@pytest.mark.parametrize(
    ("family", "message"),
    [
        ({"kind": "erasure", "parity_blocks": [1]}, "neither block_bytes nor segments is given"),
        ({"kind": "erasure", "block_bytes": 46, "segments": 20, "parity_blocks": [1]}, "block_bytes = 46 and segments = 20"),
        ({**CODES["RS-group"], "interleaved": False}, "segments = 20 without interleaving does nothing"),
        ({**CODES["RS-group"], "segments": 300}, "segments = 300 are more than 256"),
    ],
)
def test_impossible_groups_are_refused(family, message):
    with pytest.raises(ValueError, match=message):
        tuning.modem(code={"X": family})


def test_too_many_blocks_of_a_group_are_refused():
    with pytest.raises(TuneError, match="250 segments and 10 of parity are more than 256"):
        tuning.modem(code={"X": {"kind": "erasure", "segments": 250, "parity_blocks": [10]}}).settings()


@pytest.fixture(scope="module")
def page_codes():
    return program_of_docs("impaired_codes")


SPANS = st.lists(st.tuples(st.integers(0, 26 * 8 * 650), st.integers(1, 30_000), st.integers(1, 40)), max_size=4)


@given(SPANS)
@settings(max_examples=60)
def test_codes_lose_what_those_of_the_page_lose(page_codes, spans):
    wrong = np.array(sorted({begin + at for begin, length, step in spans for at in range(0, length, step)}), dtype=np.int64)
    pairs = [
        ("uncoded", page_codes.uncoded()),
        ("RS(216,184)", page_codes.reed_solomon()),
        ("RS(216,184) over 20 segments", page_codes.reed_solomon(20)),
        ("ER23(26,24)", page_codes.erasure(23, 2)),
        ("ER(23,20) of segments", page_codes.erasure_across()),
    ]
    by_name = {one.code_name: one.code for one in tuning.modem(**SLOW).settings()}
    for name, other in pairs:
        # No check is right by chance.
        found = by_name[name].lost(wrong, 552, _NeverRight())
        assert found.tolist() == other.lost(wrong, 1).tolist()
        assert by_name[name].rate(552) == pytest.approx(other.rate)


class _NeverRight:
    def random(self, count):
        return np.ones(count)


def test_a_check_that_is_right_by_chance_loses_the_segment():
    code = ErasureOfSegments("ER", 20, 3, "crc-8")
    wrong = np.arange(0, 8 * 553 * 23 * 20_000, 8 * 553 * 23, dtype=np.int64)

    lost = code.lost(wrong, 552, np.random.default_rng(1))
    # One bad segment in each of 20,000 groups; a standard deviation is 8.8.
    assert lost.size == pytest.approx(20_000 / 256, abs=35)


def test_losses_of_groups_over_noise_are_those_of_patterns():
    ber = 1.2e-5
    packet_bytes, rng = 552, np.random.default_rng(1)
    for code in (ErasureOfSegments("ER", 20, 1, "crc-16"), ReedSolomon("RS", 4, 3, True, 5)):
        scale = 1.0 if isinstance(code, ErasureOfSegments) else 40.0
        group_bits = round(8 * code.sent_bytes(packet_bytes) * code.segments)
        groups = 20_000 if isinstance(code, ErasureOfSegments) else 4000
        wrong = Independent(scale * ber).draw(group_bits * groups, rng)
        played = code.lost(wrong, packet_bytes, rng).size / (groups * code.segments)
        _, computed = code.residue(Independent(scale * ber), packet_bytes)
        assert played > 1e-3
        assert computed == pytest.approx(played, rel=0.1)


def test_a_group_waits_for_its_segments():
    modem = tuning.modem(**SLOW)
    (row,) = points(modem, [75.0], families=["RS", "RS-group"])
    within, group = sorted(row, key=lambda point: point.wait_segments)

    assert (within.wait_segments, group.wait_segments) == (0, 19)
    # As many losses, and a longer round trip.
    lossy = [type(one)(one.setting, one.cn0_dbhz, 1.0, one.esn0_db, one.ber, 0.05) for one in (within, group)]
    near, far = (rated([one], name="mathis", flows=1, path=Path(0.5))[0] for one in lossy)
    rtt = [0.5 + (1 + wait) / within.rate_segments_per_s for wait in (0, 19)]
    assert far.goodput_bps / near.goodput_bps == pytest.approx(rtt[0] / rtt[1])


@pytest.mark.parametrize("rate", USUAL)
def test_usual_patterns_are_those_of_the_core(rate):
    by_rate, by_pattern = (
        coding.spectrum({"code": {"kind": "convolutional", "generators": "171,133", **keys}}, 4)
        for keys in ({"rate": rate}, {"puncture": USUAL[rate]})
    )
    assert by_rate == by_pattern
    assert trellis_of(Inner.convolutional({"generators": "171,133", "rate": rate}, "CV", "hard")).rate == by_rate["rate"]


def test_a_chain_has_its_shares_and_lengths():
    rng = np.random.default_rng(1)
    found = Chain(1e-4, 1e-2, 1e-5, 0.3).draw(50_000_000, rng)
    expected = 0.3 / 101 + 1e-5 * 100 / 101
    # Of 5,000 bursts a standard deviation is 2 %.
    assert found.size / 50_000_000 == pytest.approx(expected, rel=0.08)
    assert np.all(np.diff(found) > 0)
    assert Chain(0.0, 0.5, 0.0, 1.0).draw(1000, rng).size == 0
    assert Chain(1e-3, 0.0, 0.0, 1.0).draw(1000, rng).size == 1000


def test_bursts_that_are_drawn_have_the_rate_of_the_decoder():
    inner = Inner.convolutional({"generators": "171,133", "rate": "3/4"}, "CV 3/4", "soft")
    stream = inner.stream("qpsk", 3.9, "bursts")
    drawn = stream.draw(20_000_000, np.random.default_rng(1))

    assert stream.ber == pytest.approx(inner.ber("qpsk", 3.9, "bursts"), rel=0.02)
    bursts = drawn.size / (stream.ber * 20_000_000)
    assert bursts == pytest.approx(1, abs=0.2)
    assert np.all(np.diff(drawn) > 0)
    hit = np.unique(drawn // 4416).size / (20_000_000 // 4416)
    assert hit == pytest.approx(stream.hit(4416), rel=0.2)


def test_every_usable_setting_is_among_the_points():
    asked = tuning.study(**{**FEW, "impairment": OUTAGES})
    rows = candidate_points(asked, tuning.modem(**SLOW))

    assert {row["family"] for row in rows} == set(CODES)
    assert sum(row["is_best"] for row in rows) == 1
    assert all(math.isfinite(row["goodput_bps"]) and row["goodput_half_width_bps"] >= 0 for row in rows)


def test_paths_have_the_candidates_that_a_reader_needs():
    found = made({**OUTAGES, "rate_per_s": 0.5}, families=["none", "ER-group"], round_trip_s=[0.05, 0.4], tolerance=0.0)
    content = json.loads(files.text(found, ".json"))

    assert content["format"] == 2
    assert {row.round_trip_s for row in found.rows} == {0.05, 0.4}
    assert all(row.goodput_bps > 0 for row in found.rows)


def test_a_study_made_in_python_implies_packets():
    study = Study(modem="m.toml", cn0_from_dbhz=70, cn0_to_dbhz=70, impairment=BURSTS)

    assert study.goodput == "packet"
    assert Study(modem="m.toml", cn0_from_dbhz=70, cn0_to_dbhz=70).goodput == "relation"
    with pytest.raises(TuneError, match="takes losses to be independent"):
        study.model_of("padhye")


def test_bits_are_those_of_the_channel_and_frames_those_of_a_segment():
    channel = {"kind": "gilbert-elliott", "p_good_to_bad": 0.002, "p_bad_to_good": 1.0, "loss_bad": 1.0}
    (row,) = points(tuning.modem(**SLOW), [75.0])
    lost = {one.setting.code_name: play(one, impairment(channel), duration_s=100, runs=2).loss for one in row}

    # A frame is lost whole: codes within one are of no use, groups are.
    assert lost["uncoded"] == pytest.approx(0.002, rel=0.1)
    assert lost["RS(216,184)"] == lost["ER23(26,24)"] == lost["uncoded"]
    assert lost["ER(23,20) of segments"] < 0.01 * lost["uncoded"]
    # A lost frame is a twentieth of the bytes of each codeword, two are too many.
    assert lost["RS(216,184) over 20 segments"] < 0.3 * lost["uncoded"]
