"""Celandroni, Ferro and Potortì: goodput optimisation of long-lived TCP connections in a rain-faded satellite channel."""

from __future__ import annotations

from farlink.papers.celandroni.figure_1 import figure_1
from farlink.papers.celandroni.figure_2 import figure_2
from farlink.papers.celandroni.figure_3 import figure_3
from farlink.papers.celandroni.figure_4 import figure_4
from farlink.papers.celandroni.section_4 import section_4
from farlink.papers.celandroni.table_1 import table_1
from farlink.papers.celandroni.table_1_simulated import table_1_simulated
from farlink.papers.item import Item, Paper

PAPER = Paper(
    key="celandroni",
    title="Goodput Optimisation of Long-Lived TCP Connections in a Rain-Faded Satellite Channel",
    authors="Nedo Celandroni, Erina Ferro, Francesco Potortì",
    items=(
        Item("table-1", "Goodput of five connections by relation (1)", 1, table_1),
        Item("table-1-simulated", "The same by both engines, beside TGEP and ns-2", 40, table_1_simulated),
        Item("figure-1", "Minimum bit error rate against information rate at 67 dBHz", 5, figure_1),
        Item("figure-2", "Goodput of convolutional and Reed-Solomon codes against C/N0", 30, figure_2),
        Item("figure-3", "Best goodput of each family of codes against C/N0", 5, figure_3),
        Item("figure-4", "One connection, and eight on an eighth of the carrier each", 5, figure_4),
        Item("section-4", "Carriers of one's own instead of shares in time", 5, section_4),
    ),
    setting=(
        "The formula of relation (1) is printed with T under the root and without the factor 3 of the timeout's probability; "
        "table I is reproduced by the formula with both put right and T = 0.50634 s, which is neither τ nor τ + 1/μ.",
        "Goodput of figures 1 to 4 is by the paper's rule: relation (1) where it says less than half of the rate, else the "
        "fluid engine with one loss in a round trip and without timeouts, as TGEP has it.",
        "The segment size is not printed: 552 bytes, a multiple of both block sizes that makes about 455 segments per second "
        "at 2 Mb/s, of which 40 are headers. Goodput counts the 512 bytes of data.",
        "The code rates are not printed: rate-compatible codes of K = 7 with soft decisions, 8/9, 4/5, 8/11, 2/3, 4/7 and 1/2 "
        "(EN 300 401); Reed-Solomon codes of 32 bytes of parity with 184 to 23 bytes of data, interleaved over a segment; "
        "erasure codes with 1 to 24 parity blocks for a segment.",
        "What finds a bad block of an erasure code is not printed: a CRC-16 in each.",
        "Sending without a code belongs to every family; a concatenation always has both of its codes.",
        "The curves are not published as numbers; the findings in words are checked. “Sensibly” is taken as a tenth.",
    ),
)
