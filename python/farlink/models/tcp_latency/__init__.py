"""Closed-form models of TCP: how long a transfer takes, and at which rate a long one runs. One file per model.

- `timeout`: sequences of timeouts with back-off, and what the timer is set to
- `setup`: the three-way handshake over a path with losses
- `slow_start`: growth of the window with delayed acknowledgements
- `slow_link`: slow start over a link that its window fills, and the round trip that grows meanwhile
- `padhye`: rate of a long Reno connection: full, approximate, with a window limit
- `cardwell`: transfers of any length: slow start, then the rate of `padhye`
- `sikdar`: transfers of Tahoe, Reno and SACK by rounds, without loss, with one and with several

Rates count segments per second, windows segments. All but `slow_link` assume rounds of a round trip, whatever the window: a
path whose rate does not fill the window, or a window limit that stands for it.
"""

from farlink.models.tcp_latency import cardwell, padhye, setup, sikdar, slow_link, slow_start, timeout

__all__ = ["cardwell", "padhye", "setup", "sikdar", "slow_link", "slow_start", "timeout"]
