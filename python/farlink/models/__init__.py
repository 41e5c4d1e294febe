"""Closed-form models: NumPy in, NumPy out, microseconds. One file a family.

- `arq`: goodput of the three classes of ARQ on a channel with independent errors
- `aerotp`: rounds, delays and packet lengths of retransmission over long round trips
- `bounds`: bytes, rounds and time of any scheme over a channel that loses packets
- `packet_fec`: what Reed-Solomon parity in packets and erasure codes across them leave
- `tcp_latency`: transfer times and rates of TCP: Padhye, Cardwell, Sikdar, and what they are made of
- `tcp_goodput`: rates of long TCP connections by loss: Mathis, relation (1), what an erasure code takes and gives
- `multilink`: TCP over a bundle whose links drop, queue and repeat
"""

from farlink.lazy import modules

__getattr__, __dir__ = modules(__name__, __file__)
