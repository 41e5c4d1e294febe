"""The paper's conclusions from table 1, over synthetic fading, at both scalings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from farlink.papers.check import Check, Verdict, claim, claimed
from farlink.papers.epple.fading import STAND_IN
from farlink.papers.epple.intervals import interval, paired
from farlink.papers.epple.printed import PLACES, rows
from farlink.papers.epple.setting import HEADER_BYTES, PAPER_SETTING, PROTOCOLS, REPORT_BYTES, Setting
from farlink.papers.epple.table_1_awgn import Column, columns
from farlink.papers.epple.table_1_fading import Cells, fading_cells, fadings, scaled_cells
from farlink.papers.epple.timers import SR_TIMER, TCP_TIMER
from farlink.papers.estimate import Estimate, ratio
from farlink.papers.item import Drawing, Workbench

TIMERS = {"tcp": TCP_TIMER, "sr": SR_TIMER}
_SHORT_LINKS = ("Testbed", "ATENAA")
_LONG_LINKS = ("FASOLT", "KIODO")
# "Not suitable to predict": off by more than this. "As good as": within this. "Much higher": by this factor.
_OFF = 0.1
_AS_GOOD = 0.05
_MUCH = 1.25
# Seconds of simulation over independent errors, and runs.
_AWGN = {"Testbed": (0.5, 4), "ATENAA": (0.5, 4), "FASOLT": (2.0, 4), "KIODO": (10.0, 4)}

_FEW_FADES = (
    "where errors come in few fades, go-back-N loses one wait for each, not for each packet, and its header is 40 bytes shorter"
)
_EARLY = (
    "; over the whole pass nearly all wrong bits of the stand-in fall into the first 30 s, at low elevation, and after "
    "them TCP has nothing to wait for"
)

Outcome = tuple[list[Check], list[Drawing]]


def long_term_ber(bench: Workbench, setting: Setting = PAPER_SETTING) -> Outcome:
    """The same long-term bit error rate, with and without fading."""
    cells = fading_cells(bench, setting, fadings(bench))
    checks = []
    for place in PLACES:
        for protocol, name in PROTOCOLS.items():
            even = _awgn(bench, setting, place, protocol)
            for printed, payload in setting.payloads_bytes.items():
                share = ratio(cells[place, protocol, printed].mean, even.goodput[printed])
                checks.append(
                    Check(
                        "long-term-ber",
                        f"{place} ({STAND_IN}), {name}, {payload} bytes: goodput over fading over that over independent errors",
                        "Long-Term BERs are not suitable to simulate or to predict the performance",
                        "packet",
                        share,
                        _away_from_one(share),
                        f"both at a long-term bit error rate of {setting.ber:g}; agrees if the ratio is off by more than "
                        f"{_OFF:.0%} with its interval; {STAND_IN}"
                        + (
                            "; where a loss costs little, it does not matter how losses come"
                            if _away_from_one(share) is Verdict.DIFFERS
                            else ""
                        ),
                    )
                )
    return checks, []


def short_packets(bench: Workbench, setting: Setting = PAPER_SETTING) -> Outcome:
    """Packets under 1000 bytes against longer ones."""
    checks = []
    for words, cells in _scalings(bench, setting):
        for place in PLACES:
            for protocol, name in PROTOCOLS.items():
                short, long = (cells[place, protocol, printed].goodput for printed in (500, 1500))
                checks.append(
                    claimed(
                        "short-packets",
                        f"{place} ({STAND_IN}), {name}, {words}: goodput with {setting.payloads_bytes[500]} bytes over that "
                        f"with {setting.payloads_bytes[1500]}",
                        "shorter packets (<1000 byte) should be used",
                        paired(short, long),
                        at_least=1.0,
                        rule=f"agrees if the ratio lies above 1 with its interval; {STAND_IN}",
                        cause="fades end packets of any length, and between them a longer packet carries more; "
                        "the printed table itself has 1000 bytes ahead of 500 with selective repeat in every row",
                    )
                )
    return checks, []


def go_back_n(bench: Workbench, setting: Setting = PAPER_SETTING) -> Outcome:
    """Go-back-N against selective repeat, near and far."""
    checks = []
    for words, cells in _scalings(bench, setting):
        for place in PLACES:
            for printed, payload in setting.payloads_bytes.items():
                share = paired(cells[place, "tcp", printed].goodput, cells[place, "sr", printed].goodput)
                cell = f"{place} ({STAND_IN}), {words}, {payload} bytes: goodput of TCP over that of selective repeat"
                is_short = place in _SHORT_LINKS
                row = next(row for row in rows(place) if row.payload_bytes == printed)
                table = f"the printed table has {float(row.tcp) / float(row.sr):.2f}"
                checks.append(
                    claimed(
                        "go-back-n",
                        cell,
                        "over short link distances Go-back-N ARQ performs as good as Selective-Repeat ARQ"
                        if is_short
                        else "over longer distances [Selective-Repeat has a] much higher goodput",
                        share,
                        at_least=1 - _AS_GOOD if is_short else -1.0,
                        at_most=float("inf") if is_short else 1 / _MUCH,
                        rule=f"as good: agrees if at most {_AS_GOOD:.0%} below, or above; {table}; {STAND_IN}"
                        if is_short
                        else f"much higher: agrees if selective repeat has {_MUCH - 1:.0%} more; {table}; {STAND_IN}",
                        cause="" if is_short else _FEW_FADES + (_EARLY if place == "KIODO" else ""),
                    )
                )
    return checks, []


def back_channel(bench: Workbench, setting: Setting = PAPER_SETTING) -> Outcome:
    """The rules of 10 and 20 %."""
    checks = [*_rules(setting)]
    cells = fading_cells(bench, setting, fadings(bench))
    for protocol, name in PROTOCOLS.items():
        for printed, payload in setting.payloads_bytes.items():
            most = max((interval(cells[place, protocol, printed].back) for place in PLACES), key=lambda one: one.mean)
            checks.append(
                claimed(
                    "back-channel",
                    f"{name}, {payload} bytes ({STAND_IN}): highest load of the back channel of the four places",
                    "the backchannel should have at least a bandwidth of 10 % … This rule also holds for Selective-Repeat ARQ "
                    "as long as packets not shorter than 500 byte are transmitted",
                    most,
                    at_most=0.1,
                    rule=f"agrees up to 10 %; {STAND_IN}",
                    cause="60 bytes for each packet of 560 are 10.7 %, as the paper's own table prints (0.1066)",
                )
            )
    return checks, []


def _rules(setting: Setting) -> Iterator[Check]:
    for protocol, share, printed, longest in (
        ("tcp", 0.1, "the backchannel should have at least a bandwidth of 10 % of the forward channel", 500),
        ("sr", 0.1, "this rule also holds for Selective-Repeat ARQ as long as packets not shorter than 500 byte", 500),
        ("sr", 0.2, "in the general case for Selective-Repeat … at least a bandwidth of 20 %", 500),
    ):
        least = REPORT_BYTES[protocol] / share - HEADER_BYTES[protocol]
        verdict = Verdict.AGREES if least <= longest * setting.payloads_bytes[500] / 500 else Verdict.DIFFERS
        yield Check(
            "back-channel",
            f"{PROTOCOLS[protocol]}: shortest user data for which acknowledgements take at most {share:.0%}, bytes",
            printed,
            "model",
            Estimate(least),
            verdict,
            "an acknowledgement for each packet, l_ACK / (l + l'); agrees if the shortest packets of the table are long enough"
            + ("; with 60 bytes a packet needs 540 of user data for 10 %" if verdict is Verdict.DIFFERS else ""),
        )


def _scalings(bench: Workbench, setting: Setting) -> Iterator[tuple[str, Cells]]:
    yield f"long-term BER {setting.ber:g}", fading_cells(bench, setting, fadings(bench))
    yield "scaled by loss", scaled_cells(bench, setting)[0]


def _awgn(bench: Workbench, setting: Setting, place: str, protocol: str) -> Column:
    duration_s, runs = _AWGN[place]
    # Nothing but goodput is asked for.
    keys: dict[str, Any] = {"window_round_trips": 1.2} if protocol == "tcp" and place == "KIODO" else {}
    timer = TIMERS[protocol]
    return columns(bench, setting, place, protocol, [timer], duration_s=duration_s, runs=runs, use="beside fading", **keys)[0]


def _away_from_one(share: Estimate) -> Verdict:
    """Whether a ratio is off by more than the tolerance, on either side."""
    above, below = claim(share, at_least=1 + _OFF), claim(share, at_most=1 - _OFF)
    if Verdict.AGREES in (above, below):
        return Verdict.AGREES
    return Verdict.DIFFERS if above is below is Verdict.DIFFERS else Verdict.UNDECIDED
