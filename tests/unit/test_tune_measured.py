"""A modem's own measurements as a family of codes."""

from __future__ import annotations

import csv
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import tuning

from farlink.channels.trace import Trace
from farlink.errors import FarlinkError, TuneError
from farlink.tune import modem as modems
from farlink.tune import play as plays
from farlink.tune import table as tables
from farlink.tune.modem import Modem
from farlink.tune.points import Point, point
from farlink.tune.reader import LookUp

CONVOLUTIONAL = {"kind": "convolutional", "generators": "171,133", "rates": ["1/2", "3/4"]}
PACKET_BYTES = 552
LINES = (
    ("bpsk", "1/2", 61.5, 500e3, 2e-4, 0.09),
    ("bpsk", "1/2", 62.5, 500e3, 6e-6, 3e-3),
    ("bpsk", "1/2", 63.5, 500e3, 9e-8, 6e-5),
    ("qpsk", "3/4", 66.5, 1.5e6, 6e-4, 0.21),
    ("qpsk", "3/4", 68.5, 1.5e6, 3e-7, 1.6e-4),
)
KEYS = ("modulation", "code", "cn0_dbhz", "rate_bps", "ber", "loss")
POINTS = [dict(zip(KEYS, line, strict=True)) for line in LINES]


def measured(points=POINTS, *, loss_bytes=PACKET_BYTES, **changes) -> Modem:
    """The small modem with measured points only."""
    family = {"kind": "measured", "points": points} | ({} if loss_bytes is None else {"loss_bytes": loss_bytes})
    return tuning.modem(code={"lab": family}, **changes)


def changed(number: int, **keys) -> list[dict]:
    """The points with other keys in one of them; None leaves one out."""
    one = {**POINTS[number], **keys}
    return [*POINTS[:number], {key: value for key, value in one.items() if value is not None}, *POINTS[number + 1 :]]


def without_loss(points=POINTS) -> list[dict]:
    """The points without their loss."""
    return [{key: value for key, value in one.items() if key != "loss"} for one in points]


def at(modem: Modem, cn0_dbhz: float, *, number: int = 0, share: float = 1.0) -> Point | None:
    """A setting of a modem at a C/N0."""
    return point(modem, modem.settings()[number], cn0_dbhz, share=share)


# What a family's own points make of it, at half a dB: largest error of its bit error rate and of its loss, as factors.
FAMILIES = {
    "none": ({"kind": "uncoded"}, 1.03, 1.03),
    "CV": (CONVOLUTIONAL, 1.20, 1.20),
    "RS": ({"kind": "reed-solomon", "n": 255, "k": 223, "data_bytes": [184, 92, 46]}, 1.24, 1.24),
}


@pytest.mark.parametrize(
    ("access", "name"),
    [
        *(("tdma", name) for name in FAMILIES),
        *(pytest.param("scpc", name, marks=() if name == "none" else pytest.mark.nightly) for name in FAMILIES),
    ],
)
def test_a_family_fed_with_its_own_points_is_reproduced(name, access):
    """At its points exactly, between them to the curvature over half a dB, rates above 1e-9; with its losses in it."""
    family, most_ber, most_loss = FAMILIES[name]
    own = tuning.modem(code={name: family}, implementation_loss_db=0.7, access=access)
    grid = np.arange(58.0, 74.0, 0.5)
    points = []
    for setting in own.settings():
        for cn0 in grid:
            found = point(own, setting, float(cn0))
            if found.ber > 1e-12 and found.loss > 1e-12:
                points.append(
                    {
                        "cn0_dbhz": float(cn0),
                        "rate_bps": found.information_bps,
                        "ber": found.ber,
                        "loss": found.loss,
                        "modulation": setting.modulation,
                        "code": setting.code_name,
                    }
                )
    copy = measured(points, implementation_loss_db=0.7, access=access)

    compared = 0
    for setting, twin in zip(own.settings(), copy.settings(), strict=True):
        assert twin.code_name == f"measured {setting.code_name}"
        assert twin.bits_per_symbol == pytest.approx(setting.bits_per_symbol, rel=1e-12)
        for cn0 in np.arange(58.0, 73.5, 0.25):  # the points and half-way between them
            for share in (1.0,) if access == "tdma" else (1.0, 0.25):
                found, again = (point(one, which, float(cn0), share=share) for one, which in ((own, setting), (copy, twin)))
                if again is None or found.ber < 1e-9 or cn0 > copy.known_to_dbhz(twin, share=share):
                    continue
                on_point = abs(cn0 * 2 - round(cn0 * 2)) < 1e-9 and share == 1.0
                assert abs(math.log(again.ber / found.ber)) <= (1e-9 if on_point else math.log(most_ber))
                assert abs(math.log(again.loss / found.loss)) <= (1e-6 if on_point else math.log(most_loss))
                assert again.information_bps == pytest.approx(found.information_bps, rel=1e-12)
                compared += 1
    assert compared > 100


def test_without_measured_losses_errors_count_as_independent():
    """Bursts behind a Viterbi decoder lose several times fewer segments: a measured loss is needed there."""
    found = at(measured(without_loss(), loss_bytes=None), 62.5)

    assert found.ber == pytest.approx(6e-6)
    assert found.loss == pytest.approx(1 - (1 - 6e-6) ** (8 * PACKET_BYTES))
    assert found.loss > 5 * at(measured(), 62.5).loss


def test_between_two_points_the_logarithm_of_the_bit_error_rate_is_straight():
    modem = measured()

    assert at(modem, 62.0).ber == pytest.approx(math.sqrt(2e-4 * 6e-6), rel=1e-9)
    assert at(modem, 61.75).ber == pytest.approx(2e-4**0.75 * 6e-6**0.25, rel=1e-9)
    assert at(modem, 67.0, number=1).ber == pytest.approx(6e-4**0.75 * 3e-7**0.25, rel=1e-9)
    exponents = [-math.log1p(-loss) for loss in (0.09, 3e-3)]
    assert -math.log1p(-at(modem, 62.0).loss) == pytest.approx(math.sqrt(exponents[0] * exponents[1]), rel=1e-9)


def test_below_the_points_a_setting_is_not_used_and_above_the_last_one_holds():
    modem = measured()

    assert at(modem, 61.5).ber == pytest.approx(2e-4)
    assert at(modem, 61.499) is None
    assert at(modem, 63.5).ber == at(modem, 70.0).ber == pytest.approx(9e-8)
    assert modem.known_to_dbhz(modem.settings()[0], share=1.0) == pytest.approx(63.5)
    assert tuning.modem().known_to_dbhz(tuning.modem().settings()[0], share=1.0) == math.inf


def test_losses_of_other_lengths():
    """Half as long a packet arrives with the square root of the probability."""
    modem = measured(segment_bytes=[512, 236])
    long, short = (point(modem, one, 61.5) for one in modem.settings()[:: len(modem.settings()) // 2])

    assert (long.setting.packet_bytes, short.setting.packet_bytes) == (552, 276)
    assert 1 - short.loss == pytest.approx(math.sqrt(1 - long.loss), rel=1e-9)


def test_the_loss_of_the_modem_is_in_its_measurement():
    assert at(measured(implementation_loss_db=3.0), 62.0) == at(measured(), 62.0)


def test_a_carrier_of_ones_own_has_the_measured_rates_at_the_same_energy_of_a_symbol():
    whole, quarter = measured(), measured(access="scpc")

    assert at(quarter, 62.0 - 10 * math.log10(4), share=0.25).ber == pytest.approx(at(whole, 62.0).ber, rel=1e-9)
    assert at(quarter, 62.0, share=0.25).information_bps == pytest.approx(125e3)


def test_a_table_says_where_nothing_was_measured():
    made = tables.tune(tuning.study(shares=[1.0], flows=[1]), measured())

    assert [(row.cn0_dbhz, row.reason) for row in made.rows[:1]] == [
        (60.0, "the demodulator works with no setting, or none was measured there")
    ]
    assert any("bpsk measured 1/2, 512 bytes was measured up to 63.5 dBHz only" in one for one in made.remarks)
    assert "share 1, 1 flow, 69 to 76 dBHz: qpsk measured 3/4" in made.remarks[-1]
    assert made.to_dict()["remarks"] == list(made.remarks)
    assert tables.tune(tuning.study(), tuning.modem()).remarks == ()


def test_a_series_says_how_long_nothing_was_measured():
    modem = measured()
    made = tables.tune(tuning.study(shares=[1.0], flows=[1]), modem)
    series = Trace("cn0", {"time_s": [0.0, 30.0, 60.0], "cn0_dbhz": [72.0, 62.5, 60.0]}, {"duration_s": 90.0})
    played = plays.play(series, LookUp(made.rows), modem)

    (said,) = (one for one in played.warnings if "measured up to" in one)
    assert "qpsk measured 3/4, 512 bytes was measured up to 68.5 dBHz only" in said
    assert "33.3 % of the time" in said


def test_measured_and_computed_families_are_compared():
    family = {"kind": "measured", "points": POINTS, "loss_bytes": PACKET_BYTES}
    modem = tuning.modem(code={"none": {"kind": "uncoded"}, "lab": family})
    made = tables.tune(tuning.study(shares=[1.0], flows=[1]), modem)

    assert {row.family for row in made.rows if row.family} == {"none", "lab"}


def write_csv(folder, rows=POINTS, head=KEYS):
    """A CSV file of points, and a modem that names it."""
    with (folder / "lab.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows([[row.get(key, "") for key in head] for row in rows])
    lines = ['[code.lab]\nkind = "measured"\nfile = "lab.csv"\nloss_bytes = 552\n']
    lines.insert(0, 'symbol_rates_hz = [1e6]\nmodulations = ["bpsk", "qpsk"]\nsegment_bytes = [512]\n')
    (folder / "modem.toml").write_text("".join(lines))
    return folder / "modem.toml"


def test_a_file_is_the_same_as_its_points(tmp_path):
    path = write_csv(tmp_path)
    text = (tmp_path / "lab.csv").read_text()
    (tmp_path / "lab.csv").write_text(f"\ufeff# measured in May\n\n{text}")
    read = modems.load(path)

    assert read.code["lab"].points == measured().code["lab"].points
    assert read.settings() == measured().settings()
    assert Modem.model_validate(json.loads(json.dumps(read.model_dump(mode="json")))) == read


@pytest.mark.parametrize(
    ("points", "message", "remedy"),
    [
        (changed(1, cn0_dbhz=64.0), "bpsk, 1/2: C/N0 of 63.5 dBHz after 64", "ascending"),
        (changed(1, cn0_dbhz=61.5), "bpsk, 1/2: C/N0 of 61.5 dBHz occurs twice", "keep one point"),
        (changed(1, ber=0.0), "ber", "allowed"),
        (changed(1, ber=0.6), "ber", "allowed"),
        (changed(1, ber=float("nan")), "ber", "allowed"),
        (changed(1, cn0_dbhz=float("inf")), "cn0_dbhz", "allowed"),
        (changed(1, rate_bps=0.0), "rate_bps", "allowed"),
        (changed(1, rate_bps=4e5), "rate_bps of 400000 and 500000", "one rate"),
        (changed(1, loss=None), "at some points only", "at all of them"),
        (changed(1, loss=1.5), "loss", "allowed"),
        (changed(1, modulation="8psk"), "modulation of 8psk is none of the modem's: bpsk, qpsk", "add it there"),
        (changed(3, modulation=None), "3/4 has no modulation, and the modem has several", "give each point its modulation"),
        (changed(1, symbol_rate_hz=2e6), "symbol_rate_hz of 2000000.0 is none of the modem's", "add it"),
        (changed(1, symbol_rate_hz=1e6), "with and without its modulation or symbol rate", "at all points"),
        (changed(1, berr=1), "there is no such key", "ber"),
        ([{**one, "rate_bps": 1.2e6} for one in POINTS[:3]], "above the 1000000 that bpsk carries", "after decoding"),
        ([], "no point is given", "give points"),
    ],
)
def test_points_that_are_no_measurement_are_refused(tmp_path, points, message, remedy):
    import tomli_w

    family = {"kind": "measured", "points": points, "loss_bytes": PACKET_BYTES}
    (tmp_path / "m.toml").write_text(tomli_w.dumps({**tuning.MODEM, "code": {"lab": family}}))
    with pytest.raises(TuneError) as refused:
        modems.load(tmp_path / "m.toml")

    assert message in refused.value.message
    assert "code.lab" in refused.value.message
    assert remedy in refused.value.remedy


def test_losses_need_the_length_of_their_packets():
    with pytest.raises(ValueError, match="loss_bytes is missing"):
        measured(loss_bytes=None)


def test_two_families_need_two_names():
    family = {"kind": "measured", "points": POINTS, "loss_bytes": PACKET_BYTES}
    with pytest.raises(TuneError, match="bpsk measured 1/2 is measured in two families"):
        tuning.modem(code={"one": family, "two": family}).settings()

    assert len(tuning.modem(code={"one": family, "two": {**family, "name": "again"}}).settings()) == 4


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("6e-06", "x", "line 3: ber is 'x'"),
        ("6e-06", "0", "line 3: ber is 0"),
        ("6e-06", "0.7", "line 3: ber is 0.7"),
        ("6e-06", "", "line 3: ber is empty"),
        ("62.5", "inf", "line 3: cn0_dbhz is inf"),
        (",0.003", ",7", "line 3: loss is 7"),
        (",0.003", "", "line 3 has 5 values, not 6"),
        (",ber", ",error", "no column is called 'error'"),
        (",ber", ",loss", "column 'ber' is missing"),
        (",code", ",ber", "column 'ber' occurs twice"),
        ("bpsk", '"bpsk', "lab.csv"),
    ],
)
def test_a_file_is_refused_by_its_line(tmp_path, old, new, message):
    path = write_csv(tmp_path)
    text = (tmp_path / "lab.csv").read_text()
    assert old in text
    (tmp_path / "lab.csv").write_text(text.replace(old, new, 1))
    with pytest.raises(TuneError) as refused:
        modems.load(path)

    assert message in refused.value.message
    assert refused.value.remedy


def test_a_file_that_is_not_there_or_not_alone_is_refused(tmp_path):
    path = write_csv(tmp_path)
    (tmp_path / "lab.csv").write_text("# nothing\n")
    with pytest.raises(TuneError, match="there is no line in it"):
        modems.load(path)
    (tmp_path / "lab.csv").write_text("cn0_dbhz,rate_bps,ber\n")
    with pytest.raises(TuneError, match="there is no point in it"):
        modems.load(path)
    (tmp_path / "lab.csv").unlink()
    with pytest.raises(TuneError, match="cannot read measured points"):
        modems.load(path)
    path.write_text(path.read_text() + "points = []\n")
    with pytest.raises(TuneError, match=r"code\.lab has a file and points"):
        modems.load(path)


def test_a_description_alone_does_not_read_its_file():
    with pytest.raises(TuneError, match=r"the points of lab\.csv have not been read"):
        tuning.modem(code={"lab": {"kind": "measured", "file": "lab.csv"}}).settings()


def read_or_refused(path) -> tuple[list[dict], FarlinkError | None]:
    """The points of a file, and why it was refused."""
    try:
        return modems.read_points(path), None
    except FarlinkError as error:
        return [], error


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60) | st.text(max_size=80).map(lambda text: f"cn0_dbhz,rate_bps,ber\n{text}".encode()))
def test_any_file_is_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("lab") / "lab.csv"
    path.write_bytes(content)
    found, error = read_or_refused(path)

    assert error is None or (error.remedy and "\n" not in error.message)
    assert all({"cn0_dbhz", "rate_bps", "ber"} <= set(one) for one in found)


CURVE = st.lists(
    st.tuples(st.floats(40, 90), st.floats(1e-12, 0.5)), min_size=1, max_size=12, unique_by=lambda one: round(one[0], 3)
)


@settings(max_examples=200, deadline=None)
@given(CURVE, st.floats(20, 120), st.floats(1e3, 1e6))
def test_any_curve_stays_between_its_neighbours(curve, cn0, rate_bps):
    curve = sorted(curve)
    points = [{"cn0_dbhz": c, "rate_bps": rate_bps, "ber": p, "modulation": "bpsk"} for c, p in curve]
    found = at(measured(points, loss_bytes=None), cn0)
    if cn0 < curve[0][0] - 1e-6:
        assert found is None
    elif found is not None:
        below = [p for c, p in curve if c <= cn0 + 1e-6][-1:]
        above = [p for c, p in curve if c >= cn0 - 1e-6][:1]
        assert min(below + above) * (1 - 1e-6) <= found.ber <= max(below + above) * (1 + 1e-6)
        assert 0 <= found.loss <= 1


def test_a_tuning_by_measured_points(farlink, tmp_path):
    tuning.write(tmp_path, study={"shares": [1.0], "flows": [1]})
    write_csv(tmp_path)
    done = farlink("tune", "study.toml", "-o", "t.json", "--points", "p.csv")

    assert done.returncode == 0, done.stderr
    assert "measured 1/2" in done.stdout
    assert "note: share 1, 1 flow, 69 to 76 dBHz: qpsk measured 3/4, 512 bytes was measured up to 68.5 dBHz" in done.stderr
    assert "measured 3/4" in (tmp_path / "p.csv").read_text()
