"""B. Epple: protocols over free-space optical links, and what the equations of its section 3.3 leave out."""

from __future__ import annotations

from farlink.papers.epple.adaptive import adaptive_length
from farlink.papers.epple.blocks import blocks
from farlink.papers.epple.bounds import awgn_bound, design_goal
from farlink.papers.epple.figure_1 import figure_1
from farlink.papers.epple.findings import back_channel, go_back_n, long_term_ber, short_packets
from farlink.papers.epple.measured_ber import measured_ber
from farlink.papers.epple.packet_length import figure_2, figure_3, figure_4
from farlink.papers.epple.protocols import SETTING as PROTOCOLS_SETTING
from farlink.papers.epple.protocols_compared import protocols_compared
from farlink.papers.epple.table_1_awgn import table_1_awgn
from farlink.papers.epple.table_1_fading import table_1_fading, table_1_scaled
from farlink.papers.epple.theory import equations, table_1_theory
from farlink.papers.epple.timestamp_echo import timestamp_echo
from farlink.papers.epple.timestamps import timestamps
from farlink.papers.item import Item, Paper

PAPER = Paper(
    key="epple",
    title="Performance Optimization of Free-Space Optical Communication Protocols Based on Results from FSO Demonstrations",
    authors="Bernhard Epple",
    items=(
        Item("equations", "Window of a LEO downlink, equation (3), and best packet length, equation (11)", 1, equations),
        Item("timestamp-echo", "Section 3.3.2: the timestamp that a delayed acknowledgement echoes", 1, timestamp_echo),
        Item("figure-1", "Short-term bit error rates of the four channels, on synthetic traces", 10, figure_1),
        Item("figure-2", "Goodput of stop-and-wait against packet length", 3, figure_2),
        Item("figure-3", "Goodput of go-back-N against packet length", 5, figure_3),
        Item("figure-4", "Goodput of selective repeat against bit error rate and packet length", 8, figure_4),
        Item("table-1-theory", "Table 1 in brackets: goodput by equations (8) and (10)", 1, table_1_theory),
        Item("table-1-awgn", "Table 1, AWGN Testbed and AWGN KIODO: goodput and back channel, simulated", 45, table_1_awgn),
        Item("blocks", "Section 4.1.2: four blocks against unlimited ones, three beside timestamps", 20, blocks),
        Item(
            "table-1-fading", "Table 1 over fading, on synthetic traces scaled to a long-term BER of 1e-6", 50, table_1_fading
        ),
        Item(
            "table-1-scaled",
            "Table 1 over fading, on synthetic traces scaled until as many packets are lost as the printed back channel says",
            110,
            table_1_scaled,
        ),
        Item(
            "timestamps",
            "Section 4.1.1: timestamps, timers, rising and reversed pass of KIODO, on synthetic traces",
            75,
            timestamps,
        ),
        Item(
            "protocols",
            "UDP, ARQ, TCP and SCPS-TP over the four channels, as the abstract promises, on synthetic traces",
            70,
            protocols_compared,
        ),
        Item(
            "long-term-ber", "Finding: the long-term BER does not predict the goodput, on synthetic traces", 10, long_term_ber
        ),
        Item(
            "short-packets", "Finding: packets under 1000 bytes are better over fading, on synthetic traces", 1, short_packets
        ),
        Item(
            "go-back-n", "Finding: go-back-N is as good as selective repeat over short links, on synthetic traces", 1, go_back_n
        ),
        Item("back-channel", "Finding: a back channel of 10 % for TCP, of 20 % for selective repeat", 1, back_channel),
        Item("awgn-bound", "Finding: AWGN bounds the performance, on synthetic traces", 20, awgn_bound),
        Item("design-goal", "Finding: a long-term BER below 1e-5 as the design goal, on synthetic traces", 40, design_goal),
        Item(
            "adaptive-length",
            "Open question: a packet length that follows the short-term BER, on synthetic traces",
            400,
            adaptive_length,
        ),
        Item(
            "measured-ber",
            "Wish: a packet length by a measured short-term BER that arrives late, on synthetic traces",
            120,
            measured_ber,
        ),
    ),
    setting=(
        "The measured traces are not published. What is computed over fading uses synthetic traces (`farlink trace "
        "synthesize`), "
        "and is called a synthetic stand-in everywhere: it cannot confirm a printed number, only show whether such a channel "
        "has "
        "the same effect. Each repetition has a trace of its own; both directions fade together, as in the paper.",
        "The text scales the measurements to a long-term BER of 1e-6. The printed back channel says that 2 to 28 % of the "
        "packets "
        "were lost, which no channel of that mean can do (at most 0.4 to 1.2 %, the sum over the bits of a packet): so "
        "table-1-fading is scaled as the text says, table-1-scaled until packets of 1000 bytes are lost as often as printed.",
        "Table 1's brackets are computed with c = 3e8 m/s over 400 m, 1500 m, 61 km and 2500 km, and only the data's bits "
        "decide whether a packet is lost; the text has 500 m, 1400 m and, in equation (5), the header's bits too.",
        "Simulated packets are lost by any wrong bit, header included, and not found at all where the short-term BER exceeds "
        "0.1.",
        "KIODO with fading is a pass: 610 km high, from 5 degrees of elevation up, the reversed pass down to 5 degrees. "
        "Table 1, the timestamps, the protocols and what is concluded from table 1 have all 100 s of it, as the paper: "
        "the path becomes 29 % shorter, and tracking is lost at about 30, 60 and 90 s. Of the stand-in's wrong bits 65 to "
        "84 % fall into the first 10 s and 95 to 99 % into the first 30 s, at low elevation. design-goal, adaptive-length "
        "and the ideal selective repeat of awgn-bound have its first 0.5 to 5 s, without loss of tracking. `--quick` has "
        "2 s; the tests of every day have short runs, and the whole pass at a tenth of the rate. AWGN KIODO is 2500 km "
        "all the time.",
        "ATENAA's vehicle moves in timestamps: straight away and back at the printed 20 km/h (`synthetic:vehicle`). Where the "
        "taxiway lies is not printed, so the delay changes as fast as it can at that speed. Everywhere else it stands.",
        "“TCP” is RFC 793 without congestion control and without fast retransmit: after a timeout all goes out again, and the "
        "receiver keeps nothing out of order (go-back-N). Its header has 20 bytes, its acknowledgement 28 on the wire, as the "
        "back-channel columns imply.",
        "“TCP with selective repeat” has a header of 60 bytes with room for four blocks; when they are in use, the receiver "
        "drops what would need another. Every packet that arrives is acknowledged, kept or not.",
        "Neither the timer nor the window is printed. The load of the back channel shows that the senders never pause, so "
        "windows hold more than a timeout; the timers are searched, and named beside each column. Over fading, TCP's is chosen "
        "at each place among three, with and without back-off.",
        PROTOCOLS_SETTING,
        "The time of acknowledgements on the wire counts; the clock ticks in microseconds.",
    ),
)
