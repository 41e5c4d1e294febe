"""zfec's erasure code through its Python interface: encode, or decode of m lost data blocks, each time another pattern.

Usage:  python erasure_zfec.py encode|decode K M BYTES SECONDS
"""

from __future__ import annotations

import json
import random
import sys
import time
from itertools import cycle, islice

import zfec

PATTERNS = 4096
BATCH = 16


def main() -> None:
    task, (k, m, length), seconds = sys.argv[1], map(int, sys.argv[2:5]), float(sys.argv[5])
    draw = random.Random(42)
    data = [draw.randbytes(length) for _ in range(k)]
    encoder, decoder = zfec.Encoder(k, k + m), zfec.Decoder(k, k + m)
    numbers = list(range(k, k + m))
    parity = encoder.encode(data, numbers)

    # What a decoder is given: blocks and their numbers, a parity block in each lost one's place.
    received = []
    for _ in range(PATTERNS):
        blocks, order = list(data), list(range(k))
        for at, lost in enumerate(sorted(draw.sample(range(k), m))):
            blocks[lost], order[lost] = parity[at], k + at
        received.append((blocks, order))
    failed = sum(list(decoder.decode(*one)) != data for one in received[:64])

    patterns = cycle(received)
    rounds, begun, spent = 0, time.process_time(), 0.0
    while spent < seconds:
        for one in islice(patterns, BATCH):
            if task == "encode":
                encoder.encode(data, numbers)
            else:
                decoder.decode(*one)
        rounds += 1
        spent = time.process_time() - begun
    print(json.dumps({"bits": rounds * BATCH * k * length * 8, "cpu_s": spent, "error_rate": failed / 64}))


if __name__ == "__main__":
    main()
