"""Equation (1): packet loss of independent errors, and the number that the text prints for it."""

from __future__ import annotations

from farlink.papers.brodbekier.link import PACKET_BITS, PACKET_BYTES, base
from farlink.papers.check import Check, Verdict, number, rounding
from farlink.papers.curves import estimate
from farlink.papers.estimate import Estimate
from farlink.papers.item import Drawing, Workbench


def equation_1(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """Packet loss at BER 1e-4: by equation (1), and of packets that cross the channel."""
    ber, printed = 1e-4, "0.45"
    lost = 1 - (1 - ber) ** PACKET_BITS
    is_survival = abs(1 - lost - float(printed)) <= rounding(printed)
    verdict = number(Estimate(lost), printed)
    if verdict is Verdict.DIFFERS and is_survival:
        verdict = Verdict.MISPRINT
    note = "equation (1) with n = 8000 bits; agrees within the printed digits"
    note += f"; 0.45 is the probability that a packet survives, 1 - p = {1 - lost:.3f}" if is_survival else ""
    checks = [Check("equation-1", "packet loss at BER 1e-4", float(printed), "model", Estimate(lost), verdict, note)]

    scenario = base("equation (1): packet loss at BER 1e-4", ("sack",))
    scenario |= {
        "duration_s": 400,
        "transport": {"udp": {"kind": "udp", "header_bytes": 28}},
        "flow": {
            "bulk": {"transport": "udp", "traffic": {"kind": "cbr", "rate_bps": 0.9e6, "payload_bytes": PACKET_BYTES - 28}}
        },
    }
    scenario["link"]["channel"] = {"kind": "ber", "ber": ber}
    del scenario["grid"]
    result = bench.run("equation-1", scenario)
    measured = estimate(result.summary()[0]["loss_fraction"])
    is_equation = number(measured, f"{lost:.2f}") is not Verdict.DIFFERS
    checks.append(
        Check(
            "equation-1",
            "packet loss at BER 1e-4, packets of 1000 bytes over the channel",
            float(printed),
            "packet",
            measured,
            Verdict.MISPRINT if is_equation and is_survival else number(measured, printed),
            f"equation (1) gives {lost:.4f}: a misprint if the channel agrees with the equation within two digits",
        )
    )
    return checks, []
