r"""Codes within packets and across them: what of a channel's bit errors is left.

A packet carries `words` 32-bit words of Reed-Solomon parity for its payload and the check behind it, as the trailer of AeroTP's
figure 1. Payload, check and parity are cut into as many interleaved blocks of up to 255 bytes as they need; each block has the
same whole number of parity bytes, and mends half as many wrong bytes. The header is not protected: a wrong bit in it loses the
packet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from farlink.arguments import checked_arguments, refused
from farlink.errors import ArgumentError
from farlink.models.arq import packet_loss
from farlink.models.bounds import packets_arrive
from farlink.models.parameters import BitErrorRate, PacketLossRate, Probabilities
from farlink.models.ranges import Floats, at_least, floats, within_0_and_1

MOST_WORDS = 256
CHECK_BYTES = 4
_BLOCK_BYTES = 255
_WORD_BYTES = 4


@dataclass(frozen=True)
class Trailer:
    """How a packet is cut into payload and parity.

    Attributes
    ----------
    words
        32-bit words of parity.
    payload_bytes
        User data.
    check_bytes
        Checksum of the payload, as well protected.
    blocks
        Interleaved Reed-Solomon blocks over GF(256).
    parity_bytes
        Parity of each block; what `words` has beyond the blocks' is padding.
    header_bytes
        What is not protected and must arrive without a wrong bit.

    Examples
    --------
    >>> Trailer.of(96, packet_bytes=1500, header_bytes=40)
    Trailer(words=96, payload_bytes=1072, check_bytes=4, blocks=6, parity_bytes=64, header_bytes=40)
    """

    words: int
    payload_bytes: int
    check_bytes: int
    blocks: int
    parity_bytes: int
    header_bytes: int

    @classmethod
    def of(cls, words: int, *, packet_bytes: int, header_bytes: int, check_bytes: int = CHECK_BYTES) -> Trailer:
        """The trailer of a full packet.

        Parameters
        ----------
        words
            32-bit words of parity, from 0 to 256.
        packet_bytes
            The whole packet.
        header_bytes
            Headers with their optional fields, in bytes.
        check_bytes
            Checksum of the payload, in bytes.

        Raises
        ------
        ValueError
            If there is no room for payload, or so many words are not allowed.
        """
        if not 0 <= words <= MOST_WORDS:
            raise refused("words", f"be from 0 to {MOST_WORDS}", words)
        payload = packet_bytes - header_bytes - check_bytes - _WORD_BYTES * words
        if payload < 1:
            raise ArgumentError(
                f"{words} words of parity leave no room for payload in {packet_bytes} bytes",
                "give fewer words, or longer packets",
            )
        blocks = math.ceil((packet_bytes - header_bytes) / _BLOCK_BYTES)
        return cls(words, payload, check_bytes, blocks, _WORD_BYTES * words // blocks, header_bytes)

    @property
    def mends(self) -> int:
        """Wrong bytes that are mended in each block."""
        return self.parity_bytes // 2

    @property
    def lengths(self) -> tuple[int, ...]:
        """Bytes of each block: interleaving deals payload and check out evenly."""
        short, longer = divmod(self.payload_bytes + self.check_bytes, self.blocks)
        return tuple(short + (block < longer) + self.parity_bytes for block in range(self.blocks))


@checked_arguments
def payload_loss(ber: ArrayLike, trailer: Trailer) -> Floats:
    r"""Probability that a packet's payload is not mended, its header being intact.

    .. math:: 1 - \prod_{b=1}^{B} P(X_b \le t), \quad X_b \sim B(n_b, 1 - (1 - BER)^8)

    Parameters
    ----------
    ber
        Bit error rate, in [0, 1]; bits are wrong independently. Any shape.
    trailer
        The code.

    Returns
    -------
    ndarray
        Probability, of the shape of `ber`.

    Notes
    -----
    Padding of the trailer is not read, so that its bits do not count. Without words, every wrong bit of
    payload and check counts.

    Examples
    --------
    >>> [float(f"{payload_loss(1e-4, Trailer.of(words, packet_bytes=1500, header_bytes=40)):.1e}") for words in (4, 8, 16, 32)]
    [0.095, 0.0063, 3.6e-07, 1.5e-15]
    """
    wrong_byte = packet_loss(ber, packet_bytes=1)
    if trailer.mends == 0:
        return packet_loss(ber, packet_bytes=trailer.payload_bytes + trailer.check_bytes)
    log_good = np.zeros_like(wrong_byte)
    for length in set(trailer.lengths):
        # At least so many wrong bytes: those "arrive" that are wrong.
        fails = packets_arrive(length, needed=trailer.mends + 1, loss_rate=1 - wrong_byte)
        with np.errstate(divide="ignore"):
            log_good = log_good + trailer.lengths.count(length) * np.log1p(-fails)
    return np.asarray(-np.expm1(log_good) + 0.0)


@checked_arguments
def header_loss(ber: BitErrorRate, trailer: Trailer) -> Floats:
    """Probability that a packet's header has a wrong bit, so that the packet is lost whatever its code mends.

    Parameters
    ----------
    trailer
        The packet.

    Returns
    -------
    ndarray
        Probability, of the shape of `ber`.

    Examples
    --------
    >>> round(float(header_loss(1e-4, Trailer.of(96, packet_bytes=1500, header_bytes=40))), 4)
    0.0315
    """
    return packet_loss(ber, packet_bytes=trailer.header_bytes)


@checked_arguments
def residual_loss(ber: BitErrorRate, trailer: Trailer) -> Floats:
    """Probability that a packet is lost, by its header or by what its code does not mend.

    Parameters
    ----------
    trailer
        The packet.

    Returns
    -------
    ndarray
        Probability, of the shape of `ber`.

    Examples
    --------
    >>> round(float(residual_loss(1e-4, Trailer.of(4, packet_bytes=1500, header_bytes=40))), 2)
    0.12
    """
    header, payload = header_loss(ber, trailer), payload_loss(ber, trailer)
    return np.asarray(header + (1 - header) * payload)


@checked_arguments
def least_words(ber: float, *, residual: float, packet_bytes: int, header_bytes: int) -> int:
    """Fewest words of parity that leave at most so many payloads unmended.

    Parameters
    ----------
    ber
        Bit error rate, in [0, 1].
    residual
        Largest probability that a payload is not mended, in [0, 1].
    packet_bytes, header_bytes
        As in `Trailer.of`.

    Returns
    -------
    int
        Words, from 0 to 256.

    Raises
    ------
    ValueError
        If a value lies outside its range, or 256 words do not suffice.

    Examples
    --------
    >>> [least_words(1e-4, residual=residual, packet_bytes=1500, header_bytes=40) for residual in (1e-2, 1e-4, 1e-6)]
    [6, 12, 15]
    """
    within_0_and_1(residual=residual)
    most = min(MOST_WORDS, (packet_bytes - header_bytes - CHECK_BYTES - 1) // _WORD_BYTES)
    for words in range(most + 1):
        if payload_loss(ber, Trailer.of(words, packet_bytes=packet_bytes, header_bytes=header_bytes)) <= residual:
            return words
    raise ArgumentError(
        f"{most} words of parity leave more than {residual:g} of the payloads unmended",
        "give a larger residual, or a lower ber",
    )


@checked_arguments
def erasure_loss(loss_rate: PacketLossRate, *, source: ArrayLike, repair: ArrayLike) -> Probabilities:
    r"""Probability that a packet of user data is lost behind an erasure code across packets.

    .. math:: p \cdot P(Y \ge r), \quad Y \sim B(k + r - 1, p)

    Parameters
    ----------
    source
        Packets of user data :math:`k` in a group, at least 1; all parameters are broadcast against each other.
    repair
        Repair packets :math:`r` of a group, not negative.

    Notes
    -----
    The code is systematic and MDS: any k packets of the group give all of it back, with fewer those that arrived remain.

    Examples
    --------
    >>> float(f"{erasure_loss(0.0315, source=32, repair=8):.1e}")
    7.8e-07
    """
    loss = floats(loss_rate)
    source, repair = at_least(1, source=source), at_least(0, repair=repair)
    return np.asarray(loss * packets_arrive(source + repair - 1, needed=repair, loss_rate=1 - loss))
