"""Brodbekier, Mathias and Brandão: effect of channel errors on TCP throughput over satellite links."""

from __future__ import annotations

from farlink.papers.brodbekier.bursts import figure_3, figure_4
from farlink.papers.brodbekier.equation_1 import equation_1
from farlink.papers.brodbekier.figure_2 import figure_2
from farlink.papers.brodbekier.figure_5 import figure_5
from farlink.papers.brodbekier.figure_6 import figure_6
from farlink.papers.brodbekier.table_1 import table_1
from farlink.papers.item import Item, Paper

PAPER = Paper(
    key="brodbekier",
    title="Effect of Channel Errors on TCP Throughput over Satellite Links",
    authors="Daniel Brodbekier, Felipe Mathias, João Célio Brandão",
    items=(
        Item("table-1", "Mean burst length at the Viterbi decoder's output, five codes", 180, table_1),
        Item("equation-1", "Packet loss by equation (1) at BER 1e-4", 1, equation_1),
        Item("figure-2", "Throughput of four TCP versions against BER, independent errors", 15, figure_2),
        Item("figure-3", "Throughput with bursts of the rate 1/2 code against independent errors", 60, figure_3),
        Item("figure-4", "Throughput with bursts of the rate 3/4 code against independent errors", 60, figure_4),
        Item("figure-5", "STP, Tahoe and SACK, independent errors and bursts", 90, figure_5),
        Item(
            "figure-6",
            "STP, Tahoe and SACK with one-bit correction in each packet, independent errors and bursts",
            90,
            figure_6,
        ),
    ),
    setting=(
        "The rate of the link is not printed: 1 Mb/s, which a window of 70 packets of 1000 bytes fills (1.12 Mb/s).",
        "A packet is 1000 bytes on the wire: 960 of data and 40 of TCP and IP headers; any wrong bit of the 8000 loses it.",
        "Acknowledgements are delayed (one for two packets), which the printed “half … around 1e-7” asks for.",
        "The decoder's decisions and the range of BER are not printed: soft decisions, BPSK, a trace-back of five constraint "
        "lengths; the Eb/N0 is chosen for each BER, and the BER that was measured there is drawn.",
        "STP has packets of the same 1000 bytes and no window, as table II speaks of TCP; it asks four times per round trip, "
        "and after a quarter of what is outstanding, 25 packets at least.",
        "Throughput counts what is delivered in order with its headers, as a share of the link's rate.",
    ),
)
