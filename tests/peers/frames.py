"""Noisy frames of convolutional codes, and their file, which tests and benchmarks of decoders read.

The file: a line of text, ``n K bits frames poly1 ... polyn`` (octal, newest bit first, as in the literature); then, for each
frame, (bits + K - 1) n received symbols of one byte, 0 for a certain 0 and 255 for a certain 1; then, for each frame, its
packed bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

#: Of a soft symbol's 255 steps, how many lie between the sent amplitude and the middle: the rest is room for noise.
AMPLITUDE = 50


@dataclass(frozen=True)
class Code:
    """A convolutional code of rate 1/n, terminated: generators in octal, most significant bit for the newest."""

    constraint_length: int
    generators: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"K={self.constraint_length} r=1/{len(self.generators)} ({','.join(self.generators)})"

    def encode(self, bits: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Coded bits of frames, one frame a row, with the K - 1 zeros of the tail."""
        memory = self.constraint_length - 1
        steps = bits.shape[1] + memory
        padded = np.pad(bits, ((0, 0), (memory, memory)))
        coded = np.zeros((len(bits), steps, len(self.generators)), np.uint8)
        for output, text in enumerate(self.generators):
            for delay, tap in enumerate(f"{int(text, 8):0{self.constraint_length}b}"):
                if tap == "1":
                    coded[:, :, output] ^= padded[:, memory - delay : memory - delay + steps]
        return coded.reshape(len(bits), -1)


def received(coded: NDArray[np.uint8], samples: NDArray[np.float64], *, ebn0_db: float, rate: float) -> NDArray[np.float64]:
    """BPSK symbols, +1 for a 0, with `samples` of unit variance as noise at Eb/N0 per information bit."""
    sigma = np.sqrt(1 / (2 * rate * 10 ** (ebn0_db / 10)))
    return 1.0 - 2.0 * coded + sigma * samples


def soft(symbols: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Symbols in 256 steps, 0 for a certain 0."""
    return np.clip(np.round(127.5 - AMPLITUDE * symbols), 0, 255).astype(np.uint8)


def hard(symbols: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Symbols decided: 0 or 255."""
    return np.where(symbols < 0, 255, 0).astype(np.uint8)


def write(path: Path, code: Code, symbols: NDArray[np.uint8], bits: NDArray[np.uint8]) -> None:
    """The file of these frames."""
    count, length = bits.shape
    header = [len(code.generators), code.constraint_length, length, count, *code.generators]
    with path.open("wb") as file:
        file.write((" ".join(map(str, header)) + "\n").encode())
        file.write(symbols.tobytes())
        file.write(np.packbits(bits, axis=1).tobytes())


def noisy(
    path: Path, code: Code, *, bits: int, count: int, ebn0_db: float, is_hard: bool = False, seed: int = 1
) -> NDArray[np.uint8]:
    """Write `count` frames of random bits after a noisy channel; give the bits, one frame a row."""
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 2, (count, bits), np.uint8)
    coded = code.encode(data)
    symbols = received(coded, rng.standard_normal(coded.shape), ebn0_db=ebn0_db, rate=1 / len(code.generators))
    write(path, code, hard(symbols) if is_hard else soft(symbols), data)
    return data
