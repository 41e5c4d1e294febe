r"""Rate of a long TCP Reno connection: Padhye, Firoiu, Towsley and Kurose.

- `period`: window, segments and rounds between losses; the rate without timeouts
- `rate`: the full and the approximate model, with timeouts and a window limit

References
----------
J. Padhye, V. Firoiu, D. Towsley, J. Kurose, "Modeling TCP Reno performance: a simple model and its empirical validation",
IEEE/ACM Transactions on Networking 8(2), 2000.
"""

from farlink.models.tcp_latency.padhye.period import (
    mean_window,
    period_rounds,
    period_segments,
    throughput_without_timeouts,
)
from farlink.models.tcp_latency.padhye.rate import send_rate, send_rate_approximate, throughput, timeout_share

__all__ = [
    "mean_window",
    "period_rounds",
    "period_segments",
    "send_rate",
    "send_rate_approximate",
    "throughput",
    "throughput_without_timeouts",
    "timeout_share",
]
