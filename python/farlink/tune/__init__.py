"""Modulation, code and packet size for the best goodput: operating points of a modem, and look-up tables of them.

- `modem`, `codes`: what a modem can be set to, from TOML
- `study`: which conditions to tune for, and what goodput is by, from TOML
- `bit_errors`, `inner`: wrong bits at the demodulator's or the Viterbi decoder's output
- `points`: every setting at a C/N0: error rates, information rate, segment loss
- `staircase`: minimum bit error rate against information rate
- `goodput`: models and engines of goodput, a line each
- `candidate_points`: the candidate points of each condition, with their goodput
- `envelope`: the best goodput of each family of codes
- `table`, `guard`: the look-up table, its thresholds, and whether it is monotone
- `files`: tables as CSV, JSON and TOML
- `reader`: the setting for a C/N0, a share of the carrier and a number of flows
- `path_reader`: the table of a path, from one over several round trips and buffers
"""

from farlink.lazy import modules

__getattr__, __dir__ = modules(__name__, __file__)
