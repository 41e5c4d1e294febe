"""Table 1's brackets, and the other numbers that the equations give."""

from __future__ import annotations

from farlink.models import arq
from farlink.papers.check import Check, Verdict, number
from farlink.papers.epple.printed import PLACES, rows
from farlink.papers.epple.setting import PAPER_SETTING, PROTOCOLS, Setting
from farlink.papers.estimate import Estimate
from farlink.papers.item import Drawing, Workbench
from farlink.plot.printed import Measured, beside_printed

# Two of the 24 cells differ by one in the last printed digit.
_WITHIN = 1e-4


def table_1_theory(_bench: Workbench, setting: Setting = PAPER_SETTING) -> tuple[list[Check], list[Drawing]]:
    """All 24 cells in brackets, by equations (4), (5), (7), (8) and (10)."""
    checks = []
    for protocol, name in PROTOCOLS.items():
        for row in rows(*PLACES):
            payload = setting.payloads_bytes[row.payload_bytes]
            printed = row.theory(protocol)
            ours = Estimate(setting.goodput(row.scenario, payload, protocol))
            others = ", ".join(
                f"{setting.goodput(row.scenario, payload, protocol, counted=counted):.4f} {words}"
                for counted, words in _COUNTED.items()
            )
            checks.append(
                Check(
                    "table-1-theory",
                    f"{row.scenario}, {name}, {payload} bytes",
                    float(printed),
                    "model",
                    ours,
                    number(ours, printed, relative=_WITHIN / float(printed)),
                    f"within {_WITHIN:g} of the printed digits; the data's bits alone decide the loss, c = "
                    f"{setting.speed_mps:.0e} m/s, {setting.distances_m[row.scenario] / 1000:g} km"
                    + (f" ({_TEXT_SAYS[row.scenario]} in the text)" if row.scenario in _TEXT_SAYS else "")
                    + (f"; it would be {others}" if number(ours, printed) is Verdict.DIFFERS else ""),
                ).fitted("which bits count, c and the distances that the text has otherwise were chosen on these cells")
            )
    return checks, [_drawing(checks)]


_COUNTED = {
    "packet": "with the header, as equation (5) is written",
    "ack": "with the acknowledgement, as equation (6) is printed",
    "true-ack": "with the acknowledgement, as a probability",
}
_TEXT_SAYS = {"Testbed": "500 m", "ATENAA": "1400 m"}


def equations(_bench: Workbench, setting: Setting = PAPER_SETTING) -> tuple[list[Check], list[Drawing]]:
    """The numbers that the text derives from equations (3) and (11)."""
    window = Estimate(float(arq.window_bytes(arq.round_trip_s(setting.distances_m["KIODO"]), rate_bps=1e9)))
    printed_window = "2084775"
    words = "a window size of at least 2.084.775 byte"
    best = Estimate(float(arq.best_payload_bytes(setting.ber, header_bytes=20)))
    enough = Estimate(_gain_beyond(setting, 1000))
    checks = [
        Check(
            "equations",
            "equation (3): window for 2500 km and 1 Gb/s, bytes",
            words,
            "model",
            window,
            number(Estimate(window.mean // 1), printed_window),
            f"{window.mean:,.0f}: agrees if all printed digits do; here c is 299,792,458 m/s, unlike in table 1",
        ),
        Check(
            "equations",
            "equation (11): best length of user data at the links' bit error rate, header of 20 bytes, bytes",
            _STAR,
            "model",
            best,
            Verdict.AGREES if 1000 < best.mean < 2000 else Verdict.DIFFERS,
            f"lengths in the equation are bits: {8 * best.mean:,.0f} of them; agrees if it lies where the text says that "
            "packet lengths are limited to, 1000 to 2000 bytes",
        ),
        Check(
            "equations",
            "selective repeat: goodput at the best length over that at 1000 bytes, less 1",
            "not increasing significant when packets longer than 1000 bytes are transmitted",
            "model",
            enough,
            Verdict.AGREES if enough.mean < 0.01 else Verdict.DIFFERS,
            "not significant: agrees below 1 %",
        ),
    ]
    return checks, []


_STAR = "in most communication protocols the packet length is limited to a value between 1000 and 2000 bytes"


def _gain_beyond(setting: Setting, payload_bytes: float) -> float:
    def goodput(payload: float) -> float:
        loss = arq.packet_loss(setting.ber, packet_bytes=payload + 20)
        return float(arq.goodput_selective_repeat(loss, payload_bytes=payload, header_bytes=20))

    return goodput(float(arq.best_payload_bytes(setting.ber, header_bytes=20))) / goodput(payload_bytes) - 1


def _drawing(checks: list[Check]) -> Drawing:

    return Drawing(
        "table-1-theory",
        "Table 1, calculated goodput: printed and ours",
        "Equations (8) and (10) with the loss of the data's bits alone; no intervals, as nothing is random.",
        lambda: beside_printed(
            [Measured(check.cell, float(check.printed), (check.value.mean, 0.0)) for check in checks],
            x_label="goodput (share of the link)",
        ),
    )
