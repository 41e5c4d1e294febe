"""B. Epple: protocols over free-space optical links, and what the equations of its section 3.3 leave out."""

from __future__ import annotations

from farlink.papers.epple.table_1_awgn import table_1_awgn
from farlink.papers.epple.theory import equations, table_1_theory
from farlink.papers.item import Item, Paper

PAPER = Paper(
    key="epple",
    title="Performance Optimization of Free-Space Optical Communication Protocols Based on Results from FSO Demonstrations",
    authors="Bernhard Epple",
    items=(
        Item("equations", "Window of a LEO downlink, equation (3), and best packet length, equation (11)", 1, equations),
        Item("table-1-theory", "Table 1 in brackets: goodput by equations (8) and (10)", 1, table_1_theory),
        Item("table-1-awgn", "Table 1, AWGN Testbed and AWGN KIODO: goodput and back channel, simulated", 60, table_1_awgn),
    ),
    setting=(
        "Table 1's brackets are computed with c = 3e8 m/s over 400 m, 1500 m, 61 km and 2500 km, and only the data's bits "
        "decide whether a packet is lost; the text has 500 m, 1400 m and, in equation (5), the header's bits too.",
        "Simulated packets are lost by any wrong bit, header included.",
        "“TCP” is RFC 793 without congestion control and without fast retransmit: after a timeout all goes out again, and the "
        "receiver keeps nothing out of order (go-back-N). Its header has 20 bytes, its acknowledgement 28 on the wire, as the "
        "back-channel columns imply.",
        "“TCP with selective repeat” has a header of 60 bytes with room for four blocks; when they are in use, the receiver "
        "drops what would need another. Every packet that arrives is acknowledged, kept or not.",
        "Neither the timer nor the window is printed. The load of the back channel shows that the senders never pause, so "
        "windows hold more than a timeout; the timers are searched, and named beside each column.",
        "The time of acknowledgements on the wire counts; the clock ticks in microseconds.",
    ),
)
