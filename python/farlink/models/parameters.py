"""Parameters that closed forms of several families have, and what most of them return."""

from __future__ import annotations

from typing import Annotated

from numpy.typing import ArrayLike

from farlink.meanings import Meaning
from farlink.models.ranges import IN_0_TO_1, IN_0_TO_BELOW_1, POSITIVE, Floats, from_on, whole_from

BitErrorRate = Annotated[ArrayLike, Meaning("Bit error rate", IN_0_TO_1)]
PacketLossRate = Annotated[ArrayLike, Meaning("Packet loss probability :math:`p`", IN_0_TO_1)]
SegmentLossRate = Annotated[ArrayLike, Meaning("Probability :math:`p` that a segment is lost", IN_0_TO_BELOW_1)]
FirstLossRate = Annotated[
    ArrayLike, Meaning("Probability :math:`p` that a segment is the first of its round to be lost", IN_0_TO_BELOW_1)
]
RepeatLossRate = Annotated[
    ArrayLike, Meaning("Probability :math:`p` that a retransmission after a timeout is lost", IN_0_TO_BELOW_1)
]

LinkRate = Annotated[ArrayLike, Meaning("Rate of the link :math:`R`, in bit/s", POSITIVE)]
OneWayDelay = Annotated[ArrayLike, Meaning("One-way propagation :math:`d`, in s", from_on(0))]
RoundTripTime = Annotated[ArrayLike, Meaning("Round-trip time, in s", POSITIVE)]
FirstTimeout = Annotated[ArrayLike, Meaning("First timeout of a sequence :math:`T_0`, in s", POSITIVE)]
DelayedAckTime = Annotated[ArrayLike, Meaning("Mean delay of the first segment's acknowledgement, in s", from_on(0))]

FileLength = Annotated[ArrayLike, Meaning("Length of the file :math:`F`, in bytes", from_on(0))]
Payload = Annotated[ArrayLike, Meaning("User data :math:`l` of a packet, in bytes", POSITIVE)]
Headers = Annotated[ArrayLike, Meaning("Headers :math:`l'` of a packet, in bytes", from_on(0))]

SegmentsPerAck = Annotated[
    ArrayLike, Meaning("Segments that an acknowledgement answers, :math:`b` (2 if it is delayed)", from_on(1))
]
WholeSegmentsPerAck = Annotated[
    ArrayLike, Meaning("Segments that an acknowledgement answers, :math:`b` (2 if it is delayed)", whole_from(1))
]
TransferSegments = Annotated[ArrayLike, Meaning("Segments of the transfer :math:`d`", from_on(1))]
WholeTransferSegments = Annotated[ArrayLike, Meaning("Segments of the transfer :math:`d`", whole_from(1))]
InitialWindow = Annotated[ArrayLike, Meaning("Window of the first round :math:`w_1`, in segments", from_on(1))]
LargestWindow = Annotated[ArrayLike, Meaning("Largest window :math:`W_{max}`, in segments", from_on(1))]
WholeLargestWindow = Annotated[ArrayLike, Meaning("Largest window :math:`W_{max}`, in segments", whole_from(1))]

Seconds = Annotated[Floats, Meaning("Time in s, of the broadcast shape")]
Probabilities = Annotated[Floats, Meaning("Probability, of the broadcast shape")]
