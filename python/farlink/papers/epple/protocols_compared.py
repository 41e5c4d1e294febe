"""The abstract's comparison: UDP, TCP, ARQ and SCPS-TP over the four channels, and the claims of sections 3.1 to 3.3."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from farlink.papers.check import Check, claimed
from farlink.papers.epple.fading import RECEIVER, STAND_IN, Fading, seconds
from farlink.papers.epple.intervals import interval, paired
from farlink.papers.epple.printed import PLACES
from farlink.papers.epple.protocols import PAYLOAD_BYTES, Protocol, protocols, queue_packets
from farlink.papers.epple.scenarios import TRANSPORT
from farlink.papers.epple.setting import PAPER_SETTING, Setting
from farlink.papers.estimate import Estimate
from farlink.papers.item import Drawing, Workbench
from farlink.units import Scale

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TRACES = 4
_SECONDS = 8.0
# A stream stops so long before the end: all delays and copies are shorter, so that what has not arrived then is lost.
_LAST_S = 0.1
_WORDS_WIDE = 26
# "Very inefficient": at most this share of selective repeat's goodput. "Quite inefficient": half, and a little.
_VERY_INEFFICIENT, _QUITE_INEFFICIENT = 0.5, 0.55


@dataclass(frozen=True)
class Achieved:
    """Results of a protocol, a value for each trace.

    Attributes
    ----------
    goodput
        Share of the link's rate.
    missing
        Share of the data that never arrives.
    unneeded
        Packets repeated although they were not lost, as a share of what was sent.
    """

    goodput: list[float]
    missing: list[float]
    unneeded: list[float]


Table = dict[str, dict[str, Achieved]]


def protocols_compared(bench: Workbench, setting: Setting = PAPER_SETTING) -> tuple[list[Check], list[Drawing]]:
    """The protocols over the four channels."""
    found: Table = {place: _at(bench, setting, place) for place in PLACES}
    checks = [check for place in PLACES for check in _checks(place, found[place])]
    return checks, [_drawing(setting, protocols(setting, PLACES[0]), found)]


def _at(bench: Workbench, setting: Setting, place: str) -> dict[str, Achieved]:
    light = Fading(place, duration_s=seconds(bench, place, _SECONDS))
    texts = light.texts(bench, setting, bench.repetitions(_TRACES))
    channel = {"kind": "fading", "file": texts[0], "receiver": RECEIVER["name"], "ber": setting.ber}
    queue = queue_packets(setting, place)
    every = protocols(setting, place)
    found: dict[str, Achieved] = {}
    for kind in ("bulk", "cbr"):
        some = {key: one for key, one in every.items() if one.traffic["kind"] == kind}
        offered = {key: _offered_bytes(one, light.duration_s) for key, one in some.items()}
        swept: dict[str, list[Any]] = {TRANSPORT: list(some)}
        if kind == "cbr":
            swept["flow.bulk.traffic.rate_bps"] = [one.traffic["rate_bps"] for one in some.values()]
            swept["flow.bulk.traffic.bytes"] = list(offered.values())
        data: dict[str, Any] = {
            "title": f"Epple, {place}, synthetic fading, protocols, {kind}",
            "duration_s": light.duration_s,
            "link": {
                "rate_bps": setting.rate_bps,
                "delay_s": light.delay(setting),
                "queue_packets": queue,
                "ecn_threshold_packets": queue // 2,
                "channel": channel,
                "return": {"channel": channel},
            },
            "transport": {key: one.table for key, one in some.items()},
            "flow": {"bulk": {"transport": next(iter(some)), "traffic": next(iter(some.values())).traffic}},
            "grid_zip": [swept, {"link.channel.file": texts, "link.return.channel.file": texts}],
        }
        rows = bench.run(f"protocols-{place.lower()}-{kind}", data, runs=1).rows
        columns = (TRANSPORT, "flow", "goodput_fraction", "loss_fraction", "delivered_bytes", "skipped_bytes")
        for key, flow, goodput, loss, delivered, skipped, repeated in zip(
            *(rows[column] for column in (*columns, "retransmitted_bytes")), strict=True
        ):
            if flow == "all":
                continue
            one = found.setdefault(key, Achieved([], [], []))
            if every[key].table["kind"] == "udp":
                arrived = delivered / offered[key]
                one.goodput.append(arrived * every[key].traffic["rate_bps"] / setting.rate_bps)
                one.missing.append(1 - arrived)
            else:
                one.goodput.append(goodput)
                one.missing.append(skipped / max(delivered + skipped, 1.0))
            one.unneeded.append(repeated / max(delivered + repeated, 1.0) - loss)
    return {key: found[key] for key in every}


def _offered_bytes(protocol: Protocol, duration_s: float) -> int:
    """Data of a stream that stops in time for its last packets to arrive; 0 of a source that never stops."""
    if protocol.traffic["kind"] == "bulk":
        return 0
    payload: int = protocol.traffic["payload_bytes"]
    return payload * int((duration_s - _LAST_S) * protocol.traffic["rate_bps"] / (8 * payload))


def _checks(place: str, found: Mapping[str, Achieved]) -> Iterator[Check]:
    def made(cell: str, printed: str, value: Estimate, rule: str, cause: str = "", **bounds: float) -> Check:
        return claimed(
            "protocols",
            f"{place} ({STAND_IN}): {cell}",
            printed,
            value,
            rule=f"{rule}; packets of {PAYLOAD_BYTES} bytes; {STAND_IN}",
            cause=cause,
            **bounds,
        )

    def over(above: str, below: str) -> Estimate:
        return paired(found[above].goodput, found[below].goodput)

    yield made(
        "share of the data that UDP does not deliver",
        "it does not guarantee the successful delivery of the data to the receiver",
        interval(found["udp"].missing),
        "agrees if it lies above 0 with its interval",
        at_least=1e-12,
    )
    yield made(
        "goodput of UDP with every packet sent twice over that with every packet sent once",
        "a quite inefficient method … n-1 unnecessarily sent packets arriving at the receiver",
        over("udp-copies", "udp"),
        f"quite inefficient: agrees if at most {_QUITE_INEFFICIENT:.0%} are left",
        at_most=_QUITE_INEFFICIENT,
    )
    yield made(
        "share of the data that UDP with every packet sent twice does not deliver, less that with every packet sent once",
        "in the hope that one of these redundant packets will not be lost",
        interval([a - b for a, b in zip(found["udp-copies"].missing, found["udp"].missing, strict=True)]),
        "agrees if the difference lies below 0 with its interval",
        at_most=-1e-12,
    )
    yield made(
        "goodput of UDP with a code in every packet over that without",
        "a waste of bandwidth if the guess has been too high",
        over("udp-code", "udp"),
        "agrees if the ratio lies below 1 with its interval",
        at_most=1.0,
    )
    yield made(
        "share of the data that UDP with a code in every packet does not deliver",
        "a data loss if the guess has been too low",
        interval(found["udp-code"].missing),
        "agrees if it lies above 0 with its interval",
        "so many wrong bytes can be corrected that the short fades of this channel cost none: here the guess is too high",
        at_least=1e-12,
    )
    yield made(
        "goodput of selective repeat over that of UDP with a code in every packet",
        "if a backchannel is available, it is advisable to use the backchannel for reliable data transfer",
        over("selective-repeat", "udp-code"),
        "agrees if the ratio lies above 1 with its interval",
        at_least=1.0,
    )
    yield made(
        "goodput of stop-and-wait over that of selective repeat",
        "very inefficient because the sender spends a lot of time by waiting for ACKs",
        over("stop-and-wait", "selective-repeat"),
        f"very: agrees if at most {_VERY_INEFFICIENT:.0%} are left",
        "over such a distance a packet takes longer to send than its way there and back",
        at_most=_VERY_INEFFICIENT,
    )
    for key, words in (("nak", "NAK"), ("nak-receiver", "NAK and the timer at the receiver")):
        yield made(
            f"packets repeated without need by selective repeat with {words}, less those without, as a share of what is sent",
            "the use of NAKs should reduce the numbers of unnecessarily retransmitted packets",
            interval([a - b for a, b in zip(found[key].unneeded, found["selective-repeat"].unneeded, strict=True)]),
            "agrees if the difference lies below 0 with its interval",
            at_most=-1e-12,
        )
    yield made(
        "goodput of SCPS-TP with congestion control over that without",
        "congestion control algorithms will unnecessarily reduce the load on the channel",
        over("scps", "scps-none"),
        "agrees if the ratio lies below 1 with its interval",
        at_most=1.0,
    )
    yield made(
        "goodput of SCPS-TP with ECN and signalled corruption over that with every loss as congestion",
        "Explicit Congestion Notification … for being able to distinguish between channel congestion and packet corruption",
        over("scps-ecn", "scps"),
        "agrees if the ratio lies above 1 with its interval",
        at_least=1.0,
    )
    yield made(
        "goodput of SCPS-TP without congestion control over that with ECN and signalled corruption",
        "it is also a suitable option to disable congestion control at all",
        over("scps-none", "scps-ecn"),
        "suitable: agrees if the ratio lies above 1 with its interval",
        at_least=1.0,
    )


def _drawing(setting: Setting, every: Mapping[str, Protocol], found: Table) -> Drawing:
    def cell(one: Achieved, *, is_reliable: bool) -> str:
        goodput, missing = (Scale(1.0, "").interval(at.mean, at.half_width) for at in map(interval, (one.goodput, one.missing)))
        return goodput if is_reliable else f"{goodput}, {missing} lost"

    rows = [
        (protocol.words, *(cell(found[place][key], is_reliable=protocol.is_reliable) for place in PLACES))
        for key, protocol in every.items()
    ]
    return Drawing(
        "protocols",
        "Goodput of UDP, ARQ, TCP and SCPS-TP over the four channels",
        _caption(setting, found),
        lambda: _figure({key: protocol.words for key, protocol in every.items()}, found),
        (("protocol", *PLACES), *rows),
    )


def _caption(setting: Setting, found: Table) -> str:
    def goodput(place: str, key: str) -> str:
        return f"{interval(found[place][key].goodput).mean:.3f}"

    far = PLACES[-1]
    repeating = [interval(found[place]["selective-repeat"].goodput).mean for place in PLACES]
    lost, lost_all_the_same = (interval(found[far][key].missing).mean for key in ("udp", "udp-code"))
    return (
        "Goodput as a share of the link, and of what does not guarantee delivery the share of the data that is lost; "
        f"means over traces with 95 % intervals, packets of {PAYLOAD_BYTES} bytes, synthetic fading, a {STAND_IN} of the "
        f"measurements, scaled to a long-term bit error rate of {setting.ber:g}, {far} over its whole pass. Selective "
        f"repeat has {min(repeating):.3f} to {max(repeating):.3f} everywhere. Over {far} congestion control that takes "
        f"every loss for congestion has {goodput(far, 'tcp')} (TCP) and {goodput(far, 'scps')} (SCPS-TP), with ECN alone "
        f"{goodput(far, 'tcp-ecn')} (TCP), where the receiver signals corruption {goodput(far, 'scps-ecn')} and without "
        f"congestion control {goodput(far, 'scps-none')} (SCPS-TP). The code in every packet of UDP leaves "
        f"{lost_all_the_same:.2%} of its data lost, of {lost:.2%} without it: fades of milliseconds outlast any packet. "
        f"Parity with the repetition alone (type II) has {goodput(far, 'hybrid-2')}, in every packet (type I) "
        f"{goodput(far, 'hybrid-1')}."
    )


def _figure(names: Mapping[str, str], found: Table) -> Figure:
    from farlink.plot.style import COLOURS, MARKERS, legend_above, new_figure

    figure, (axes,) = new_figure(height_in=7.4)
    for look, place in enumerate(PLACES):
        ours = [interval(found[place][key].goodput) for key in names]
        axes.errorbar(
            [one.mean for one in ours],
            [row + 0.16 * (look - 1.5) for row in range(len(ours))],
            xerr=[one.half_width for one in ours],
            linestyle="none", marker=MARKERS[look], color=COLOURS[look], capsize=2, markersize=4, label=place,
        )  # fmt: skip
    axes.set_yticks(range(len(names)), [textwrap.fill(words, _WORDS_WIDE) for words in names.values()])
    axes.invert_yaxis()
    axes.set(xlabel=f"goodput (share of the link), {STAND_IN}")
    axes.set_xlim(0, 1)
    legend_above(figure, axes)
    return figure
