"""libfec as a peer, and farlink's decoders beside it: both are small programs that read and write files.

The C programs are those of the benchmark (`benches/codecs`), farlink's is the example `decode` of farlink-fec.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.examples import built_examples
from tests.peers.estimate import Estimate, estimate
from tests.peers.frames import Code

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCES = ROOT / "benches" / "codecs"

Bits = NDArray[np.uint8]

#: Right bits that end an error event: more than any trace-back of an event that is still open needs at K=7.
EVENT_GAP_BITS = 30


def missing() -> str | None:
    """The missing program or library, as a reason to skip; None if all are installed."""
    if not Path("/usr/include/fec.h").exists():
        return "libfec is not installed: apt-get install libfec-dev"
    for command, remedy in (("gcc", "apt-get install gcc"), ("cargo", "https://rustup.rs")):
        if shutil.which(command) is None:
            return f"{command} is not installed: {remedy}"
    return None


@dataclass(frozen=True)
class Programs:
    """Both sides' programs, built."""

    folder: Path
    farlink: Path

    @classmethod
    def build(cls, folder: Path) -> Programs:
        """Compile libfec's programs into `folder`, and farlink's as cargo does.

        Raises
        ------
        subprocess.CalledProcessError
            If one does not compile.
        """
        for name in ("viterbi_libfec", "reed_solomon_libfec"):
            command = ["gcc", "-O2", "-o", str(folder / name), str(SOURCES / f"{name}.c"), "-lfec"]
            subprocess.run(command, check=True)
        return cls(folder, built_examples() / "decode")

    def viterbi(self, decoder: str, frames: Path, count: int, bits: int) -> Bits:
        """Decoded bits, one frame a row, from `libfec` or from one of farlink's decoders."""
        output = self.folder / "decoded"
        if decoder == "libfec":
            command = [str(self.folder / "viterbi_libfec"), str(frames), "0", str(output)]
        else:
            command = [str(self.farlink), "viterbi", decoder, str(frames), str(output)]
        subprocess.run(command, check=True)
        packed = np.fromfile(output, np.uint8).reshape(count, -1)
        return np.unpackbits(packed, axis=1)[:, :bits]

    def reed_solomon(self, decoder: str, code: str, words: Bits) -> Words:
        """Each side's decoding of words of 255 symbols; `code` is `conventional`, `ccsds` or `ccsds-dual`."""
        given, output = self.folder / "words", self.folder / "corrected"
        words.tofile(given)
        if decoder == "libfec":
            name = {"conventional": "char", "ccsds": "ccsds", "ccsds-dual": "dual"}[code]
            command = [str(self.folder / "reed_solomon_libfec"), name, "words", str(given), str(output)]
        else:
            command = [str(self.farlink), "reed-solomon", code, decoder, str(given), str(output)]
        subprocess.run(command, check=True)
        made = np.fromfile(output, np.uint8).reshape(len(words), 32 + 255 + 1)
        return Words(made[:, :32], made[:, 32:287], made[:, 287].astype(np.int8))


@dataclass(frozen=True)
class Words:
    """Parity of the first 223 symbols, the words after decoding, and how many symbols were wrong (-1: given up)."""

    parity: Bits
    corrected: Bits
    wrong: NDArray[np.int8]


@dataclass(frozen=True)
class Errors:
    """Wrong bits of independent frames."""

    per_frame: tuple[int, ...]
    frame_bits: int
    events: int

    @classmethod
    def count(cls, decoded: Bits, sent: Bits) -> Errors:
        wrong = decoded != sent
        frame, position = np.nonzero(wrong)
        begins = (np.diff(frame, prepend=-1) != 0) | (np.diff(position, prepend=0) > EVENT_GAP_BITS)
        return cls(tuple(int(one) for one in wrong.sum(axis=1)), sent.shape[1], int(begins.sum()))

    def __add__(self, other: Errors) -> Errors:
        return Errors(self.per_frame + other.per_frame, self.frame_bits, self.events + other.events)

    @property
    def rate(self) -> Estimate:
        """Bit error rate; its interval takes whole frames as independent, since errors inside one come in bursts."""
        return estimate([wrong / self.frame_bits for wrong in self.per_frame])


#: The CCSDS code K=7 rate 1/2 without its inversion.
K7 = Code(7, ("171", "133"))
