"""The parts of `docs/validation/bundles.md` on duplicate acknowledgements and late notice: called by `docs/bundles.py`."""

from __future__ import annotations

from itertools import product
from typing import Any

import bundle_studies as studies
from bundle_studies import PATIENCE_S, Data, Runs, Told, dropping, gain, measured, scenario
from bundle_tables import IRIDIUM, per_drop, percents, rate, table
from page import Values, paragraph

from farlink.models.multilink.drop_losses import segments_lost
from farlink.models.multilink.windowed_bundle import packet_time_s

# Rate of a line in packets of 1500 bytes, without retransmissions and headers, in bit/s.
NET_BPS = 1500 * 8 / float(packet_time_s(IRIDIUM))

UP_TIMES_S = (900, 3000)
VARIANTS = ("tahoe", "reno", "newreno", "sack")
# The receiver waits as in RFC 1990, or ten seconds at most, or not at all.
RECEIVERS: dict[str, Data] = {
    "RFC 1990": {},
    f"patience {PATIENCE_S} s": {"reorder_timeout_s": PATIENCE_S},
    "no numbers": {"header": "none"},
}
DETECTIONS_S = (0, 10, 20, 30)
# Load of datagrams: about nine tenths of the lines' rate, bit/s of payload.
DATAGRAMS = {"kind": "cbr", "payload_bytes": 1472, "rate_bps": 14_000}


def duplicates(tell: Told) -> dict[tuple[str, str, float, str], Runs]:
    """By receiver, variant, mean up time and reaction to drops."""
    found = {}
    for key in product(RECEIVERS, VARIANTS, UP_TIMES_S, ("lose", "duplicate-acks")):
        receiver, variant, up_s, on_drop = key
        bundle = dropping(up_s, on_drop, None, **RECEIVERS[receiver])
        found[key] = measured(scenario(bundle, runs=12, hours=6, variant=variant))
        tell()
    return found


def late(tell: Told) -> dict[tuple[int, str], Runs]:
    """By the time until a drop is noticed, and the fate of lost packets."""
    found = {}
    for detection_s, kind in product(DETECTIONS_S, ("lose", "requeue", "datagrams")):
        bundle = dropping(3000, "requeue" if kind == "requeue" else "lose", PATIENCE_S)
        if detection_s:
            bundle["calls"]["detection"] = {"distribution": "constant", "value_s": detection_s}
        more = {"transport": {"kind": "udp"}, "traffic": DATAGRAMS} if kind == "datagrams" else {}
        found[detection_s, kind] = measured(scenario(bundle, runs=12, hours=6, **more))
        tell()
    return found


STUDIES = {
    "duplicates": (duplicates, len(RECEIVERS) * len(VARIANTS) * len(UP_TIMES_S) * 2),
    "late": (late, len(DETECTIONS_S) * 3),
}


def page_values(found: dict[str, Any]) -> Values:
    """What the page says of both."""
    told: dict[tuple[str, str, float, str], Runs] = found["duplicates"]
    plain, patient, _ = RECEIVERS

    def gained(receiver: str, variant: str) -> str:
        key = (receiver, variant, 3000)
        return percents(gain(told[*key, "duplicate-acks"], told[*key, "lose"]), signed=True)

    return {
        "duplicates": table_of_duplicates(told),
        "reno_rfc": gained(plain, "reno"),
        "reno_patience": gained(patient, "reno"),
        "timeouts_lost": f"{per_drop(told[patient, 'reno', 3000, 'lose']):.2f}",
        "timeouts_told": f"{per_drop(told[patient, 'reno', 3000, 'duplicate-acks']):.2f}",
        "late_table": table_of_late(found["late"]),
        "late_said": paragraph(late_said(found["late"])),
    }


def table_of_duplicates(told: dict[tuple[str, str, float, str], Runs]) -> str:
    """A row per receiver and variant."""
    head = ["receiver", "TCP"]
    for up_s in UP_TIMES_S:
        head += [f"{up_s / 60:g} min: lost", "told", "gain", "timeouts"]
    rows = []
    for receiver, variant in product(RECEIVERS, VARIANTS):
        row = [receiver, variant]
        for up_s in UP_TIMES_S:
            lose, tell = (told[receiver, variant, up_s, on_drop] for on_drop in ("lose", "duplicate-acks"))
            row += [rate(lose.mean("goodput_bps")), rate(tell.mean("goodput_bps")), percents(gain(tell, lose), signed=True)]
            row.append(f"{per_drop(lose):.2f}, {per_drop(tell):.2f}")
        rows.append(row)
    return table(head, rows)


def table_of_late(found: dict[tuple[int, str], Runs]) -> str:
    """A row per time until a drop is noticed."""
    head = ["noticed after", "lost per drop: section 5.2", "at the rate net of ARQ", "datagrams", "SACK"]
    head += ["goodput: lost", "timeouts per drop", "requeued", "timeouts per drop", "gain"]
    rows = []
    for detection_s in DETECTIONS_S:
        lose, requeue, datagrams = (found[detection_s, kind] for kind in ("lose", "requeue", "datagrams"))
        row = ["at once" if detection_s == 0 else f"{detection_s} s"]
        row += [f"{predicted_packets(detection_s, bps):.1f}" for bps in (studies.RATE_BPS, NET_BPS)]
        row += [f"{lost_per_drop(runs):.1f}" for runs in (datagrams, lose)]
        row += [rate(lose.mean("goodput_bps")), f"{per_drop(lose):.2f}"]
        row += [rate(requeue.mean("goodput_bps")), f"{per_drop(requeue):.2f}"]
        rows.append([*row, percents(gain(requeue, lose), signed=True)])
    return table(head, rows)


def predicted_packets(detection_s: float, rate_bps: float) -> float:
    """Packets lost by a drop (section 5.2): three packets a line are its buffers."""
    held = 3 * 1500 / 2
    lost = segments_lost(detection_s, rate_bps=rate_bps, modem_buffer_bytes=held, serial_buffer_bytes=0, segment_bytes=1500)
    return float(lost)


def lost_per_drop(runs: Runs) -> float:
    """Packets forward that a drop took."""
    delivered, loss = runs["delivered_packets"], runs["loss_fraction"]
    return float((delivered * loss / (1 - loss)).sum() / runs["call_drops"].sum())


def late_said(found: dict[tuple[int, str], Runs]) -> str:
    """Findings of the table."""
    first, last = (found[detection_s, "lose"] for detection_s in (DETECTIONS_S[0], DETECTIONS_S[-1]))
    again = found[DETECTIONS_S[-1], "requeue"]
    cost = gain(last, first)
    more = {
        kind: lost_per_drop(found[DETECTIONS_S[-1], kind]) - lost_per_drop(found[DETECTIONS_S[0], kind])
        for kind in ("datagrams", "lose")
    }
    return (
        f"Of datagrams thirty seconds take {more['datagrams']:.1f} more, of {30 * NET_BPS / 12_000:.1f} that a line carries in "
        f"them; at once they take fewer than the line has room for, as its buffers are not full. TCP loses {more['lose']:.1f} "
        f"more: what is lost is not acknowledged, and the window that is halved then gives the dead line one in eight of "
        f"what the others deliver. The thirty seconds cost {percents(cost, signed=True)} of SACK's goodput; requeueing wins "
        f"{percents(gain(again, last), signed=True)} back."
    )
