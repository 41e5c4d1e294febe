"""A grid point as closed forms see it: flows, and a path of which hops add delays, multiply what arrives and limit the rate."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from farlink.errors import ScenarioError, core_errors
from farlink.models.arq import packet_loss
from farlink.scenario import Scenario

Keys = Mapping[str, Any]

OTHER_ENGINE = 'take the engine "packet"'


def refused(path: str, what: str, remedy: str) -> ScenarioError:
    """Settings that no closed form covers, by the path of their key."""
    return ScenarioError(f'{path}: the engine "model" {what}', f"{remedy}, or {OTHER_ENGINE}")


@dataclass(frozen=True)
class Channel:
    """Independent losses of packets or wrong bits, in one direction of a hop."""

    loss: float = 0.0
    ber: float = 0.0

    @classmethod
    def of(cls, table: str, keys: Keys) -> Channel:
        """From the keys of a channel; another one is refused."""
        kind = keys["kind"]
        if kind not in ("none", "loss", "ber"):
            what = f"knows losses that are independent, and {kind!r} has others"
            raise refused(f"{table}.channel.kind", what, 'give "none", "loss" or "ber"')
        return cls(float(keys.get("loss", 0.0)), float(keys.get("ber", 0.0)))

    def after(self, ber: float) -> Channel:
        """The same with bit errors from elsewhere besides."""
        return Channel(self.loss, self.ber + ber - self.ber * ber)

    def loses(self, packet_bytes: float) -> float:
        """Probability that it loses a packet."""
        return float(1 - (1 - self.loss) * (1 - packet_loss(self.ber, packet_bytes=packet_bytes)))


@dataclass(frozen=True)
class Hop:
    """Both directions of a hop, with the path of its table in the scenario."""

    table: str
    rate_bps: float
    delay_s: float
    queue_bytes: float
    queue_packets: float
    channel: Channel
    back_rate_bps: float
    back_delay_s: float
    back_channel: Channel

    @classmethod
    def of(cls, table: str, keys: Keys) -> Hop:
        """From its keys, all defaults written out."""
        back = keys["return"]
        rate, delay = _number(table, "rate_bps", keys), _number(table, "delay_s", keys)
        return cls(
            table=table,
            rate_bps=rate,
            delay_s=delay,
            queue_bytes=float(keys.get("queue_bytes", math.inf)),
            queue_packets=float(keys.get("queue_packets", math.inf)),
            channel=Channel.of(table, keys["channel"]).after(_coding_ber(table, keys)),
            back_rate_bps=_number(f"{table}.return", "rate_bps", back, rate),
            back_delay_s=_number(f"{table}.return", "delay_s", back, delay) + float(back.get("processing_s", 0.0)),
            back_channel=Channel.of(f"{table}.return", back["channel"]),
        )

    def holds_packets(self, packet_bytes: float) -> float:
        """Packets of that length that its queue holds, infinite without a limit."""
        return min(self.queue_packets, self.queue_bytes / packet_bytes)

    @property
    def queue_key(self) -> str:
        """The path of the key that limits its queue."""
        return f"{self.table}.queue_bytes" if math.isfinite(self.queue_bytes) else f"{self.table}.queue_packets"


@dataclass(frozen=True)
class Path:
    """Hops from sender to receiver."""

    hops: tuple[Hop, ...]

    @cached_property
    def bottleneck(self) -> Hop:
        """The slowest hop forward, of several the first."""
        return min(self.hops, key=lambda hop: hop.rate_bps)

    def loss(self, packet_bytes: float) -> float:
        """Probability that a packet is lost on some hop."""
        return 1 - math.prod(1 - hop.channel.loses(packet_bytes) for hop in self.hops)

    def back_loss(self, packet_bytes: float) -> float:
        """The same on the way back."""
        return 1 - math.prod(1 - hop.back_channel.loses(packet_bytes) for hop in self.hops)

    def one_way_s(self, packet_bytes: float) -> float:
        """From the first bit of a lone packet sent to its last received."""
        return sum(hop.delay_s + 8 * packet_bytes / hop.rate_bps for hop in self.hops)

    def way_back_s(self, packet_bytes: float) -> float:
        """The same for the answer, from what processing delays it."""
        return sum(hop.back_delay_s + 8 * packet_bytes / hop.back_rate_bps for hop in self.hops)

    def refuse_losses_back(self, why: str) -> None:
        """Refuse a way back that loses packets."""
        for hop in self.hops:
            if hop.back_channel != Channel():
                raise refused(f"{hop.table}.return.channel", why, 'give "none"')


@dataclass(frozen=True)
class Sizes:
    """Lengths and limits of a transport; see `Sizes` in `crates/farlink-core/src/scenario/model.rs`."""

    payload_bytes: float = math.nan
    packet_bytes: float = math.nan
    window_packets: float = math.inf
    packets_per_ack: float = 1.0
    ack_bytes: float = math.nan
    counts_bytes: bool = False
    timeouts_s: Sequence[float] = (math.nan, math.nan)


@dataclass(frozen=True)
class Flow:
    """Flows of one name."""

    name: str
    transport_name: str
    transport: Keys
    traffic: Keys
    count: int
    start_s: float
    sizes: Sizes

    def key(self, name: str) -> str:
        """The path of a key of the flow."""
        return f"flow.{self.name}.{name}"

    def transport_key(self, name: str) -> str:
        """The path of a key of its transport."""
        return f"transport.{self.transport_name}.{name}"


@dataclass(frozen=True)
class Row:
    """A row of the table: one flow, or several flows of a name, or all."""

    flow: str
    transport: str
    flows: int
    of: str | None = None


@dataclass(frozen=True)
class Point:
    """One grid point."""

    flows: tuple[Flow, ...]
    path: Path
    rows: tuple[Row, ...]
    duration_s: float
    seed: int

    @property
    def count(self) -> int:
        """All flows."""
        return sum(flow.count for flow in self.flows)


def points(scenario: Scenario, numbers: Sequence[int] | None = None) -> Iterator[Point]:
    """The points of a scenario, or those with these numbers, in the order in which they run."""
    from farlink import _core

    with core_errors(scenario.in_its_words):
        texts = _core.model_points(scenario.to_json(), None if numbers is None else list(numbers))
    for text in texts:
        found = json.loads(text, object_hook=_given)
        yield _point(found["scenario"], found["sizes"], found["rows"])


def _given(table: dict[str, Any]) -> dict[str, Any]:
    """A table without the keys that have no value."""
    return {name: value for name, value in table.items() if value is not None}


def _point(keys: Keys, sizes: Keys, rows: list[Keys]) -> Point:
    named = [("link", keys["link"])] if "link" in keys else [(f"hop.{name}", keys["hop"][name]) for name in keys["path"]]
    return Point(
        flows=tuple(_flow(name, flow, keys["transport"], sizes.get(name, {})) for name, flow in keys["flow"].items()),
        path=Path(tuple(Hop.of(table, hop) for table, hop in named)),
        rows=tuple(Row(**row) for row in rows),
        duration_s=float(keys.get("duration_s", math.inf)),
        seed=int(keys["seed"]),
    )


def _flow(name: str, keys: Keys, transports: Keys, sizes: Keys) -> Flow:
    return Flow(
        name=name,
        transport_name=keys["transport"],
        transport=transports[keys["transport"]],
        traffic=keys["traffic"],
        count=int(keys["count"]),
        start_s=float(keys["start_s"]),
        sizes=Sizes(**sizes),
    )


def _coding_ber(table: str, keys: Keys) -> float:
    """Bit error rate of a modulation without a code; what decoders leave comes in bursts, which no closed form covers."""
    from farlink import _core

    coding = keys.get("coding")
    if coding is None:
        return 0.0
    if coding["code"]["kind"] != "uncoded":
        what = f"knows errors that are independent, and those that {coding['code']['kind']!r} leaves come in bursts"
        raise refused(f"{table}.coding.code.kind", what, 'give "uncoded", or the residual loss as channel = { kind = "loss" }')
    ebn0_db = coding.get("ebn0_db")
    if ebn0_db is None:
        ebn0_db = coding["cn0_dbhz"] - 10 * math.log10(_number(table, "rate_bps", keys))
    settings = {name: value for name, value in coding.items() if name in ("modulation", "decision", "code")}
    return _core.channel_ber(json.dumps(settings), ebn0_db)


def _number(table: str, name: str, keys: Keys, default: float = math.nan) -> float:
    value = keys.get(name, default)
    if isinstance(value, Mapping):
        raise refused(f"{table}.{name}", "knows paths that do not change, and this one varies", "give a number")
    return float(value)
