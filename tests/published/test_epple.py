"""Epple, in short runs: reproducible printed values are met, and every number follows from the setting."""

from __future__ import annotations

import pytest

from farlink import papers
from farlink.papers.check import Verdict
from farlink.papers.epple.printed import TABLE_1
from farlink.papers.epple.setting import PAPER_SETTING, Setting
from farlink.papers.epple.table_1_awgn import columns, goodput_checks
from farlink.papers.epple.theory import equations, table_1_theory
from farlink.papers.epple.timers import beta
from farlink.papers.epple.timestamp_echo import repeated_share
from farlink.papers.item import Workbench

PAPER = papers.load("epple")
OTHER_BER = Setting(ber=1.3e-6)
# A loss costs go-back-N whole packets: over the shortest links a third more changes nothing.
FARTHER = Setting(distances_m={place: 10 * distance for place, distance in PAPER_SETTING.distances_m.items()})
LONGER = Setting(payloads_bytes={500: 3000, 1000: 4000, 1500: 6000})


@pytest.mark.published("Epple, table 1, all 24 cells in brackets")
def test_equations_reproduce_table_1():
    checks, _ = table_1_theory(Workbench())

    assert len(checks) == 24
    for check in checks:
        assert round(check.value.mean, 4) == pytest.approx(check.printed, abs=1.0001e-4), check
        assert check.verdict is Verdict.FITTED
        assert "the distances that the text has otherwise were chosen on these cells" in check.note


@pytest.mark.published("Epple, eq. (3): 2.084.775 byte; eq. (11)")
def test_window_and_best_length():
    window, best, beyond = equations(Workbench())[0]

    assert int(window.value.mean) == 2_084_775
    # Lengths in the equation are bits.
    assert round(best.value.mean) == 1571
    assert 8 * best.value.mean == pytest.approx(12_570, abs=1)
    assert 0 < beyond.value.mean < 0.003
    assert {check.verdict for check in (window, best, beyond)} == {Verdict.AGREES}


@pytest.mark.published("Epple, eqs. (5) and (6)")
def test_definitions_of_loss_are_ordered():
    losses = [PAPER_SETTING.loss(1000, "tcp", counted=counted) for counted in ("data", "packet", "true-ack", "ack")]

    assert losses == sorted(losses)
    assert losses[0] == pytest.approx(0.007968, abs=1e-6)
    assert losses[1] == pytest.approx(0.008127, abs=1e-6)
    # The printed sum counts the losses of both twice.
    forward, back = losses[1], 1 - (1 - 1e-6) ** 224
    assert losses[3] == pytest.approx(forward + back, rel=1e-9)
    assert losses[3] - losses[2] == pytest.approx(forward * back, abs=1e-12)
    # A probability cannot exceed 1; the printed sum can, and then has no goodput.
    noisy = Setting(ber=0.01)
    assert noisy.loss(1000, "tcp", counted="ack") > 1 >= noisy.loss(1000, "tcp", counted="true-ack")
    assert noisy.goodput("Testbed", 1000, "tcp", counted="ack") != noisy.goodput("Testbed", 1000, "tcp", counted="ack")


@pytest.mark.published("Epple, table 1, AWGN Testbed")
def test_awgn_testbed_and_its_back_channel():
    for protocol, timer in (("tcp", beta(4.75)), ("sr", beta(1.3))):
        (column,) = columns(Workbench(), PAPER_SETTING, "Testbed", protocol, [timer], duration_s=0.1, runs=4, use="test")
        for row in TABLE_1[:3]:
            goodput, back = column.goodput[row.payload_bytes], column.back[row.payload_bytes]
            assert goodput.mean == pytest.approx(float(row.goodput(protocol)), rel=0.05)
            assert back.mean == pytest.approx(float(row.back(protocol)), rel=0.03)


@pytest.mark.published("Epple, table 1, AWGN KIODO")
def test_awgn_kiodo_and_its_back_channel():
    efforts = {"tcp": (beta(4.75), 10, 8), "sr": (beta(1.3), 3, 6)}
    for protocol, (timer, duration_s, runs) in efforts.items():
        (column,) = columns(
            Workbench(), PAPER_SETTING, "KIODO", protocol, [timer], duration_s=duration_s, runs=runs, use="test"
        )
        for row in TABLE_1[3:6]:
            goodput, back = column.goodput[row.payload_bytes], column.back[row.payload_bytes]
            tolerance = {"tcp": 0.1, "sr": 0.05}[protocol] * float(row.goodput(protocol))
            assert abs(goodput.mean - float(row.goodput(protocol))) < tolerance + goodput.half_width
            assert goodput.half_width < 0.2 * goodput.mean
            # The sender never pauses: the load is that of the short link.
            assert back.mean == pytest.approx(float(row.back(protocol)), rel=0.03)


def short(setting: Setting, seed: int = 1) -> dict[str, tuple[float, float]]:
    """Simulated goodputs with their intervals, by place, protocol and printed length."""
    found = {}
    for place, protocol, timer, duration_s in (
        ("Testbed", "tcp", beta(4.75), 0.05),
        ("Testbed", "sr", beta(1.3), 0.05),
        ("KIODO", "sr", beta(1.3), 0.5),
    ):
        bench = Workbench(seed=seed)
        (column,) = columns(bench, setting, place, protocol, [timer], duration_s=duration_s, runs=3, use="test")
        found |= {(place, protocol, size): (goodput.mean, goodput.half_width) for size, goodput in column.goodput.items()}
    return found


@pytest.fixture(scope="module")
def usual() -> dict[str, tuple[float, float]]:
    return short(PAPER_SETTING)


@pytest.mark.parametrize("setting", [OTHER_BER, FARTHER, LONGER], ids=["ber", "distance", "length"])
def test_simulated_cells_follow_the_setting(setting, usual):
    other = short(setting)

    for cell, (mean, half_width) in usual.items():
        assert other[cell][1] != half_width, cell
        # With enough blocks, goodput of selective repeat does not depend on the distance.
        if setting is not FARTHER or cell[:2] != ("Testbed", "sr"):
            assert other[cell][0] != mean, cell


def test_simulated_cells_follow_the_seed(usual):
    other = short(PAPER_SETTING, seed=2)

    for cell, (mean, half_width) in usual.items():
        assert other[cell][0] != mean, cell
        assert other[cell][1] != half_width, cell
    assert short(PAPER_SETTING) == usual


@pytest.mark.parametrize(("ber", "verdict"), [(1e-6, Verdict.FITTED), (3e-5, Verdict.DIFFERS)])
@pytest.mark.parametrize(("protocol", "timer"), [("tcp", beta(4.75)), ("sr", beta(1.3))], ids=["tcp", "sr"])
def test_verdicts_of_simulated_cells_follow_the_setting(protocol, timer, ber, verdict):
    setting = Setting(ber=ber)
    (column,) = columns(Workbench(), setting, "Testbed", protocol, [timer], duration_s=0.05, runs=4, use="test")

    checks = goodput_checks(setting, TABLE_1[:3], protocol, column, {timer.words: 0.0})
    assert [check.verdict for check in checks] == [verdict] * 3


@pytest.mark.parametrize(
    ("setting", "moved"),
    [
        (OTHER_BER, ""),
        # Selective repeat does not depend on the distance.
        (FARTHER, "TCP"),
        (LONGER, ""),
    ],
    ids=["ber", "distance", "length"],
)
def test_calculated_cells_and_their_verdicts_follow_the_setting(setting, moved):
    before, after = table_1_theory(Workbench())[0], table_1_theory(Workbench(), setting)[0]

    assert len(before) == len(after) == 24
    for one, other in zip(before, after, strict=True):
        if moved in one.cell:
            assert other.value.mean != one.value.mean
            assert other.verdict is Verdict.DIFFERS, other
        else:
            assert other.value == one.value


@pytest.mark.published("Epple, section 3.3.2: with the latest timestamp echoed, the first packets always time out")
def test_the_latest_timestamp_lets_packets_time_out_before_their_delayed_acknowledgement():
    bench = Workbench()
    (outcome,) = bench.outcomes([PAPER.item("timestamp-echo")])
    latest, oldest, repeated = outcome.checks

    assert {check.verdict for check in outcome.checks} == {Verdict.AGREES}
    # Every packet is sent twice: go-back-N repeats both of a pair.
    assert repeated.value.mean == pytest.approx(0.5, rel=0.01)
    assert repeated_share(bench, "oldest").mean == 0
    assert (oldest.value.mean, latest.value.mean > 0.99) == (0.0, True)
