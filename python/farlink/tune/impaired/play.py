"""Effect of an impairment on the segments of a setting: a channel for the packet engine.

- Bits: a Gilbert-Elliott chain over bits of the channel is played through the decoders, with the modem's noise in between, and
  the pattern of lost segments is replayed.
- Frames: likewise, where a frame is what a segment or a block of one becomes, and is lost as a whole.
- Time: what is received during an outage is random; outages that the code repairs are left out.
- Rates over time: the bit error rate of the channel follows a recording, and each code loses what it loses at that rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farlink.channels.trace import Trace
from farlink.errors import TuneError
from farlink.tune.ascending import Whole, distinct, merged
from farlink.tune.codes.code import Code
from farlink.tune.codes.erasure import ErasureOfSegments
from farlink.tune.impaired import outages, rates
from farlink.tune.impaired.impairment import Impairment
from farlink.tune.impaired.inner_decoder import left_by
from farlink.tune.impaired.wrong_bits import Chain
from farlink.tune.inner import Inner
from farlink.tune.points import Point

# Bursts that a pattern has, if it does not get too long or too short for TCP, and wrong bits in memory.
_BURSTS = 2000
_LEAST_BITS, _MOST_BITS = 400_000_000, 20_000_000_000
_LEAST_FRAMES, _MOST_FRAMES = 100_000, 4_000_000
_MOST_WRONG_BITS, _MOST_NOISE_BITS, _MOST_LOST_FRAMES = 8_000_000, 4_000_000, 40_000
# Streams of random numbers, so that one does not move another.
_CHAIN, _NOISE, _CODE = 1, 2, 3


@dataclass(frozen=True)
class Played:
    """The rest of an impairment behind the decoders.

    Attributes
    ----------
    loss
        Share of lost segments, with those that the noise loses.
    channels
        Channels of the packet engine. One is for all runs; several are for a run each.
    trace
        File that the channel names in its place as ``file``, or None.
    """

    loss: float
    channels: tuple[dict[str, Any], ...]
    trace: Trace | None = None


def play(point: Point, impairment: Impairment, *, duration_s: float, runs: int) -> Played:
    """Play an impairment through the decoders of a setting.

    Parameters
    ----------
    point
        The setting at a condition.
    impairment
        What impairs its link.
    duration_s, runs
        Of the runs of the packet engine.

    Raises
    ------
    TuneError
        If the setting has no decoder that can be run: a measured code.
    """
    code = code_of(point)
    if impairment.kind in ("fading", "ber-trace"):
        loss, channel, trace = rates.played(point, code, impairment)
        return Played(loss, (channel,), trace)
    if impairment.kind == "outage":
        loss, channels = outages.played(point, code, impairment, duration_s=duration_s, runs=runs)
        return Played(loss, channels)
    table = impairment.table
    lost = (_of_bits if table["per"] == "bit" else _of_frames)(point, code, impairment)
    trace = Trace("packet-loss", {"lost": lost}, {"title": "impaired"})
    return Played(float(lost.mean()), ({"kind": "packet-trace", "offset": "random"},), trace)


def code_of(point: Point) -> Code:
    """The code of a setting, if it has a decoder that can be run.

    Raises
    ------
    TuneError
        If it was measured.
    """
    code = point.setting.code
    if not isinstance(code, Code):
        raise TuneError(
            f"code.{point.setting.family}: {point.setting.code_name} was measured over noise, which does not say what it does "
            "under an impairment",
            "leave it out by families = [...], or leave the impairment out",
        )
    return code


def _of_bits(point: Point, code: Code, impairment: Impairment) -> NDArray[np.uint8]:
    """Lost segments of a chain over the bits of the channel."""
    chain, packet_bytes = _chain(impairment), point.setting.packet_bytes
    bits = _length(chain)
    # The stream after the inner decoder.
    noise = code.inner.stream(point.setting.modulation, point.esn0_db, point.errors)
    decoded_bits = int(min(bits * code.inner.rate, _MOST_NOISE_BITS / max(noise.ber, 1e-300)))
    by_noise = noise.draw(decoded_bits, _rng(impairment, _NOISE))
    if by_noise.size == 0 and decoded_bits == int(bits * code.inner.rate):
        return _without_noise(impairment, code, packet_bytes, bits)
    wrong = _left(impairment, code.inner, bits)
    wrong = merged(wrong[: np.searchsorted(wrong, decoded_bits)], by_noise)
    return _pattern(code.lost(wrong, packet_bytes, _rng(impairment, _CODE)), _segments(code, packet_bytes, decoded_bits))


@lru_cache(maxsize=64)
def _without_noise(impairment: Impairment, code: Code, packet_bytes: int, bits: int) -> NDArray[np.uint8]:
    """Lost segments of a chain alone: the same at each C/N0 where noise makes no bit wrong."""
    lost = code.lost(_left(impairment, code.inner, bits), packet_bytes, _rng(impairment, _CODE))
    return _pattern(lost, _segments(code, packet_bytes, int(bits * code.inner.rate)))


def _segments(code: Code, packet_bytes: int, bits: int) -> int:
    """Segments of whole groups in a stream after the inner decoder."""
    return bits // round(8 * code.sent_bytes(packet_bytes) * code.segments) * code.segments


def _of_frames(point: Point, code: Code, impairment: Impairment) -> NDArray[np.uint8]:
    """Lost segments of a chain over frames, each of which is a segment with its share of the parity."""
    chain, packet_bytes = _chain(impairment), point.setting.packet_bytes
    loss = chain.share_bad * chain.bad + (1 - chain.share_bad) * chain.good
    frames = int(min(max(_BURSTS * chain.cycle, _LEAST_FRAMES), _MOST_FRAMES, _MOST_LOST_FRAMES / max(loss, 1e-300)))
    rng = _rng(impairment, _NOISE)
    gone = chain.draw(frames, _rng(impairment, _CHAIN))
    if code.segments == 1:
        by_noise = np.flatnonzero(rng.random(frames) < point.loss)
        return _pattern(merged(gone, by_noise), frames)
    noise = code.inner.stream(point.setting.modulation, point.esn0_db, point.errors)
    if isinstance(code.outer, ErasureOfSegments):
        blocks = code.outer.segments + code.outer.parity_blocks
        groups = frames // blocks
        bad = noise.hit(8 * code.outer.block_bytes(packet_bytes))
        both = merged(gone, np.flatnonzero(rng.random(frames) < bad))
        return _pattern(code.outer.unrepaired(both, _rng(impairment, _CODE)), groups * code.outer.segments)
    frame_bytes = code.sent_bytes(packet_bytes)
    bits = int(min(8 * frames * frame_bytes, _MOST_NOISE_BITS / max(noise.ber, 1e-300)))
    # One wrong bit in each byte is enough for codes over bytes.
    first = np.round(gone * frame_bytes).astype(np.int64)
    wrong = 8 * distinct((first[:, None] + np.arange(int(frame_bytes))).ravel())
    wrong = merged(wrong[wrong < bits], noise.draw(bits, rng))
    return _pattern(code.lost(wrong, packet_bytes, _rng(impairment, _CODE)), _segments(code, packet_bytes, bits))


def _pattern(numbers: Whole, segments: int) -> NDArray[np.uint8]:
    """A pattern of lost segments from their numbers; a segment at least."""
    lost = np.zeros(max(1, segments), dtype=np.uint8)
    lost[numbers[numbers < lost.size]] = 1
    return lost


def _chain(impairment: Impairment) -> Chain:
    table = impairment.table
    name = "ber" if table["per"] == "bit" else "loss"
    good, bad = (float(table.get(f"{name}_{state}") or 0.0) for state in ("good", "bad"))
    return Chain(float(table["p_good_to_bad"]), float(table["p_bad_to_good"]), good, bad)


def _length(chain: Chain) -> int:
    """Bits of a stream with enough bursts, as long as their wrong bits can be held."""
    wrong = chain.share_bad * chain.bad + (1 - chain.share_bad) * chain.good
    return int(min(max(_BURSTS * chain.cycle, _LEAST_BITS), _MOST_BITS, _MOST_WRONG_BITS / max(wrong, 1e-300)))


@lru_cache(maxsize=2)
def _wrong_bits(impairment: Impairment, bits: int) -> Whole:
    """Wrong bits of the channel: the same for all codes."""
    return _chain(impairment).draw(bits, _rng(impairment, _CHAIN))


@lru_cache(maxsize=16)
def _left(impairment: Impairment, inner: Inner, bits: int) -> Whole:
    """Wrong bits behind the inner decoder: the same for all codes around it."""
    return left_by(inner, _wrong_bits(impairment, bits), impairment.seed)


def _rng(impairment: Impairment, stream: int) -> np.random.Generator:
    return np.random.default_rng([impairment.seed, stream])
