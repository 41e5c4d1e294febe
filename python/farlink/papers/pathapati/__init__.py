"""Pathapati et al.: AeroTP over a radio of 10 s one way, and what goes beyond the paper."""

from __future__ import annotations

from farlink.papers.item import Item, Paper
from farlink.papers.pathapati.acknowledgements import acknowledgements
from farlink.papers.pathapati.beside_ns3 import beside_ns3
from farlink.papers.pathapati.bulk import bulk
from farlink.papers.pathapati.comparison import figures_13_16
from farlink.papers.pathapati.erasure import erasure_codes
from farlink.papers.pathapati.fec import figures_5_8, figures_9_12
from farlink.papers.pathapati.few_round_trips import few_round_trips
from farlink.papers.pathapati.gateways import gateways
from farlink.papers.pathapati.round_trips import round_trips

PAPER = Paper(
    key="pathapati",
    title="Performance Analysis of the AeroTP Transport Protocol for Highly-Dynamic Airborne Telemetry Networks",
    authors="Kamakshi Sirisha Pathapati, Truc Anh N. Nguyen, Justin P. Rohrer, James P. G. Sterbenz",
    items=(
        Item("figures-5-8", "Quasi-reliable mode against bit error rate, by strength of the code", 20, figures_5_8),
        Item("figures-9-12", "Quasi-reliable mode against strength of the code", 1, figures_9_12),
        Item("erasure-codes", "Section II.B: quasi-reliable mode with erasure codes across packets", 5, erasure_codes),
        Item("figures-13-16", "AeroTP reliable and quasi-reliable, UDP and TCP against bit error rate", 60, figures_13_16),
        Item("acknowledgements", "Section IV.E: acknowledgements aggregated into one packet", 30, acknowledgements),
        Item("round-trips", "Beyond the paper: round trips for a file at BER 1e-4 by copies, beside bounds", 30, round_trips),
        Item("few-round-trips", "Beyond the paper: adaptive packet length and repair symbols", 20, few_round_trips),
        Item("ns-3", "Section IV.G: ns-3's TCP and UDP on the same path, as measured, beside AeroTP", 10, beside_ns3),
        Item("gateways", "Section II.B: TCP to the gateways, AeroTP between them", 20, gateways),
        Item("bulk", "Beyond the paper: bulk transfer over losses up to 30 %, beside bounds", 120, bulk),
    ),
    setting=(
        "The path has three hops: 10 Gb/s, the radio with 5 Mb/s and 10 s one way, 10 Gb/s; the networks at the ends have no "
        "delay of their own. Queues have no limit.",
        "“4.416 Mb/s (3000 packets/s …)” does not fit packets of 1500 bytes: 375 messages of 1472 bytes a second do, and are "
        "used. With AeroTP and TCP a message is as long as the payload of a full packet, at the same rate of data.",
        "Bit errors are independent, at the same rate both ways, in headers too; the paper does not say whether its error "
        "model spares acknowledgements or headers.",
        "AeroTP's header has 20 bytes behind 20 of IPv4; payload and its checksum are protected by Reed-Solomon codes over "
        "bytes in interleaved blocks, headers are not. The paper names no code.",
        "The runs of the paper end after a time that is not printed: 22,000 s, after which TCP has delivered all at a bit "
        "error rate of 3.5e-5 and not above, as the text says; a mean delay of half of that is the top of figure 14's axis.",
        "TCP has an initial RTO of 45 s, at least 30 s and at most 60 s, and never gives up: with stock timers ns-3 gives "
        "connections up at high bit error rates. AeroTP's reliable mode has the same initial RTO.",
        "The quasi-reliable mode is not paced, so that the radio's queue shows; the reliable mode is paced at the radio's "
        "rate.",
        "Figures 13 to 16 mark the axis “PER” and sweep the bit error rate. Figures 5 to 8 have 255 words where the text has "
        "256.",
        "Delays are from first transmission to arrival unless called in order or from the application.",
    ),
)
