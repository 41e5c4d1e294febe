"""Zaghloul: TCP over a bundle of satellite modems whose calls drop."""

from __future__ import annotations

from farlink.papers.item import Item, Paper
from farlink.papers.zaghloul.bundle import drop, round_trip
from farlink.papers.zaghloul.bundle_transfers import transfers as packet_by_packet
from farlink.papers.zaghloul.drops import drops
from farlink.papers.zaghloul.figure_4_1 import figure_4_1
from farlink.papers.zaghloul.figure_4_7 import figure_4_7
from farlink.papers.zaghloul.figure_5_1 import figure_5_1
from farlink.papers.zaghloul.figure_5_2 import figure_5_2, table_5_3
from farlink.papers.zaghloul.figure_5_3 import figure_5_3
from farlink.papers.zaghloul.figure_6_4_packets import figure_6_4_packets
from farlink.papers.zaghloul.figure_7_14 import figure_7_14
from farlink.papers.zaghloul.figure_7_15 import figure_7_15
from farlink.papers.zaghloul.figures_6 import figure_6_4, figure_6_5, figure_6_6
from farlink.papers.zaghloul.measured_drops import (
    MODEMS,
    SEAGLIDER,
    SLOCUM,
    figure_5_2_measured,
    missing,
    section_5_1_measured,
)
from farlink.papers.zaghloul.round_trips import round_trips
from farlink.papers.zaghloul.section_2_2 import section_2_2
from farlink.papers.zaghloul.section_4_1_4 import section_4_1_4
from farlink.papers.zaghloul.section_5_1 import section_5_1
from farlink.papers.zaghloul.section_5_2 import section_5_2
from farlink.papers.zaghloul.table_5_1 import table_5_1
from farlink.papers.zaghloul.tables import table_6_1, table_6_2
from farlink.papers.zaghloul.tables_4 import table_4_2, table_4_3

# Measured logs are no part of farlink.
_NO_MODEMS, _NO_CALLS = missing(MODEMS), missing(SEAGLIDER, SLOCUM)

PAPER = Paper(
    key="zaghloul",
    title="TCP Performance over Multilink Long Delay Wireless Networks",
    authors="Said Ismail Zaghloul",
    items=(
        Item("section-2.2", "Delays over satellites, and periods of low orbits", 1, section_2_2),
        Item("figure-4.1", "Timers of mean and deviation over a series of round trips", 1, figure_4_1),
        Item("section-4.1.4", "Random timers of delayed acknowledgements", 1, section_4_1_4),
        Item("section-4.1.6", "Round trip over a loaded bundle", 1, round_trip),
        Item("figures-4.5-4.6", "Round trips packet by packet, of TCP and of PINGs", 5, round_trips),
        Item("figure-4.7", "Slow start with delayed acknowledgements, and eq. (17)", 1, figure_4_7),
        Item("table-4.2", "Which model is nearer for short transfers", 2, table_4_2),
        Item("table-4.3", "Which model is nearer for long transfers", 6, table_4_3),
        Item("table-5.1", "Handovers from satellite to satellite", 1, table_5_1),
        Item("section-5.1", "Drops that match handovers", 15, section_5_1),
        Item(
            "section-5.1-measured",
            "Low signal before drops, measured",
            6,
            None if _NO_MODEMS else section_5_1_measured,
            _NO_MODEMS,
        ),
        Item("section-5.2", "Packets that a drop loses", 1, drop),
        Item("section-5.2-simulated", "Losses of a window that TCP survives without its timer", 2, section_5_2),
        Item("figure-5.1", "Sequence numbers of a transfer, and drops", 3, figure_5_1),
        Item("figure-5.2", "Times between simulated drops, and their exponential fit", 40, figure_5_2),
        Item(
            "figure-5.2-measured",
            "Times between measured drops, and their exponential fit",
            5,
            None if _NO_CALLS else figure_5_2_measured,
            _NO_CALLS,
        ),
        Item("figure-5.3", "Times between the simulated drops of a bundle", 20, figure_5_3),
        Item("table-5.3", "Rates of drops", 80, table_5_3),
        Item("table-6.1", "Transfer times of four files over eight links", 1, table_6_1),
        Item("table-6.2", "Transfer times over three to eight links", 1, table_6_2),
        Item("transfers", "Tables 6.1 and 6.2 packet by packet", 30, packet_by_packet),
        Item("drops", "What a drop costs, packet by packet", 40, drops),
        Item("figure-6.4", "Transfer time against the rate of drops", 1, figure_6_4),
        Item("figure-6.4-packets", "Figure 6.4 packet by packet", 40, figure_6_4_packets),
        Item("figure-6.5", "Transfer time against losses", 1, figure_6_5),
        Item("figure-6.6", "Transfer time against the timeout", 1, figure_6_6),
        Item("figure-7.14", "Reliability over twelve hours, by rules of the primary modem", 3, figure_7_14),
        Item("figure-7.15", "Throughput by the number of modems", 5, figure_7_15),
    ),
    setting=(
        "1 MB has 1,000,000 bytes, 1 KB 1000; the closed forms have two segments per acknowledgement, and eq. (24) as a "
        "quotient.",
        "Packet by packet, a bundle has the thesis's lines of 2400 bit/s and 0.5 s one way, three packets of up to 1500 "
        "bytes in each and the rest waiting before them, whole packets in turn, and PPP multilink's 24-bit numbers with the "
        "framing of RFC 1662. TCP has segments of 1448 bytes with timestamps, delayed acknowledgements and the windows of "
        "table 6.2.",
        "Whether the 2400 bit/s are net of the modems' repetitions is not said. They are, unless a packet is said to take "
        "6.5 s: then 25 bytes go in a frame, 2.7 % of the frames are bad and cost half a second, and 5.1 s for 1500 bytes "
        "with their framing, 0.9 s of repetitions and 0.5 s of propagation make 6.5 s.",
        "Which TCP sent is not said: SACK by RFC 6675 with the timer of RFC 6298 up to Linux's 120 s, and Reno with a first "
        "timeout of 60 s or more, for which a drop is a timeout as in the thesis's model.",
        "A line drops once in 50 minutes, exponentially, and takes 53 s until it is there again, so that eight are all up "
        "87 % of the time. What it holds is lost, both ways, and is noticed at once, but where item drops says otherwise; the "
        "thesis's lines take 10 to 30 s to notice.",
        "The window limit of tables 6.1 and 6.2 is the printed one; it is a function of the links' rate.",
        "The drop rate of figures 6.5 and 6.6 is not printed; that of Greenland is taken, a drop of each link in 50 minutes.",
        "The round trips of figure 4.1 are not printed; they are drawn at random with the mean and deviation of figure 4.6.",
        "Tables 4.2 and 4.3 come from another thesis (Li, Calgary 2004, of random losses); lengths, round trip, timeout and "
        "window are not printed, and so the order of the models is checked and not their errors. Ours: 10 and 1000 segments, "
        "round trips of 0.5 s, a timeout of 2 s, a window of 40 segments, delayed acknowledgements, no set-up. Printed "
        "relative errors above 1 can only be those of predictions that are far too long; here neither model has any. "
        "Where both errors are small, as at 1 % of long transfers, the order depends on the setting.",
        "Simulated drops are those of the engine's channel call-drops, of a line that is dialled again within 53 s, as often "
        "as the thesis says; there is no measured log of its modems.",
        "Eq. (47), to which the time of a modem refers, is missing: 6.5 s are taken as printed.",
    ),
)
