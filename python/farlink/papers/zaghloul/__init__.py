"""Zaghloul: TCP over a bundle of satellite modems whose calls drop."""

from __future__ import annotations

from farlink.papers.item import Item, Paper
from farlink.papers.zaghloul.bundle import drop, round_trip
from farlink.papers.zaghloul.figure_4_1 import figure_4_1
from farlink.papers.zaghloul.figure_4_7 import figure_4_7
from farlink.papers.zaghloul.figure_5_1 import figure_5_1
from farlink.papers.zaghloul.figure_5_2 import figure_5_2, table_5_3
from farlink.papers.zaghloul.figures_6 import figure_6_4, figure_6_5, figure_6_6
from farlink.papers.zaghloul.measured_drops import (
    MODEMS,
    SEAGLIDER,
    SLOCUM,
    figure_5_2_measured,
    missing,
    section_5_1_measured,
)
from farlink.papers.zaghloul.section_5_1 import section_5_1
from farlink.papers.zaghloul.section_5_2 import section_5_2
from farlink.papers.zaghloul.tables import table_6_1, table_6_2
from farlink.papers.zaghloul.tables_4 import table_4_2, table_4_3

# Measured logs are no part of farlink.
_NO_MODEMS, _NO_CALLS = missing(MODEMS), missing(SEAGLIDER, SLOCUM)

PAPER = Paper(
    key="zaghloul",
    title="TCP Performance over Multilink Long Delay Wireless Networks",
    authors="Said Ismail Zaghloul",
    items=(
        Item("figure-4.1", "Timers of mean and deviation over a series of round trips", 1, figure_4_1),
        Item("section-4.1.6", "Round trip over a loaded bundle", 1, round_trip),
        Item("figure-4.7", "Slow start with delayed acknowledgements, and eq. (17)", 1, figure_4_7),
        Item("table-4.2", "Which model is nearer for short transfers", 2, table_4_2),
        Item("table-4.3", "Which model is nearer for long transfers", 6, table_4_3),
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
        Item("table-5.3", "Rates of drops", 80, table_5_3),
        Item("table-6.1", "Transfer times of four files over eight links", 1, table_6_1),
        Item("table-6.2", "Transfer times over three to eight links", 1, table_6_2),
        Item("figure-6.4", "Transfer time against the rate of drops", 1, figure_6_4),
        Item("figure-6.5", "Transfer time against losses", 1, figure_6_5),
        Item("figure-6.6", "Transfer time against the timeout", 1, figure_6_6),
    ),
    setting=(
        "Everything here but section 5 and the reference of tables 4.2 and 4.3 is computed by closed forms, with 1 MB of "
        "1,000,000 bytes and 1 KB of 1000, two segments per acknowledgement, and eq. (24) as a quotient.",
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
