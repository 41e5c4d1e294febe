"""Closed-form models of TCP over a bundle of links: drops, queues, and the ARQ of each link.

- `call_drops`: rate and transfer time over a bundle whose links drop
- `drop_losses`: what a drop takes along, and when even SACK waits for its timer
- `loaded_bundle`: round trip under load
- `fading`: frame errors as two states, of signal-to-noise ratio, speed and data rate
- `go_back_n`: round trip, residual loss and needless timeouts over a link with ARQ
- `faded_link`: that link, from its rate, its margin and its Doppler shift
- `link_kind`: whether round trips look like those of ARQ or of a queue
- `varying_rtt`: TCP's timer over round trips that vary, and eq. (36) with it
- `windowed_bundle`: round trip and goodput of a window of packets over lines with queues, framing and ARQ
"""

from farlink.models.multilink import (
    call_drops,
    drop_losses,
    faded_link,
    fading,
    go_back_n,
    link_kind,
    loaded_bundle,
    varying_rtt,
    windowed_bundle,
)

__all__ = [
    "call_drops",
    "drop_losses",
    "faded_link",
    "fading",
    "go_back_n",
    "link_kind",
    "loaded_bundle",
    "varying_rtt",
    "windowed_bundle",
]
