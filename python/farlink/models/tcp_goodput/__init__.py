"""Closed forms for the goodput of long TCP connections over a link that loses segments. One file per model.

- `mathis`: the law of the inverse square root
- `celandroni`: relation (1), with timeouts, as a share of the link's rate
- `timeout`: what the retransmission timer is at least
- `selective`: with timeouts for lost retransmissions only, as with selective acknowledgements
- `short_buffer`: what the overflow of a queue leaves of the link's rate
- `selection`: which of two models holds, by the share of the link that is used
- `erasure_tradeoff`: what an erasure code takes from a link's rate and gives back in loss, after Barakat and Altman

Padhye's models, full and approximate, are in `farlink.models.tcp_latency.padhye`. Rates count segments per second. Losses are
independent, and not those of a queue.
"""

from farlink.models.tcp_goodput import celandroni, erasure_tradeoff, mathis, selection, selective, short_buffer, timeout

__all__ = ["celandroni", "erasure_tradeoff", "mathis", "selection", "selective", "short_buffer", "timeout"]
