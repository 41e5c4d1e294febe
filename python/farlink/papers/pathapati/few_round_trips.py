"""Beyond the paper: fewer round trips, with packets as short as the bit error rate asks for, and with repair symbols."""

from __future__ import annotations

import numpy as np

from farlink.models import arq
from farlink.models.aerotp import rounds_of_the_worst
from farlink.models.bounds import least_rounds
from farlink.papers.check import Check, claimed
from farlink.papers.item import Drawing, Workbench
from farlink.papers.pathapati.bulk import file_shares
from farlink.papers.pathapati.path import FILE_BYTES, PACKET_BYTES, WORST_BER, reliable, trailer
from farlink.papers.pathapati.round_trips import (
    FEW,
    LOSS,
    Transfer,
    beside_any_scheme,
    by_copies,
    drawing,
    packets_of,
    transfers,
)

ITEM = "few-round-trips"
ADAPTIVE, CODED = "adaptive-length", "coded"
# The aim for 1 MB, coded.
_CODED_ROUNDS = 4.0
_CODED_BYTES = 1.25
# Of the bound for long files.
_OF_BOUND = 0.97
_FILE_LOSSES = (0.01, 0.1, 0.3)
_FILE_RUNS = 10


def few_round_trips(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """1 MB and 10 MB."""
    found = schemes(bench, FILE_BYTES)
    known = least_rounds(_CODED_BYTES, packets=packets_of(FILE_BYTES), loss_rate=LOSS)
    checks = [
        claimed(
            ITEM,
            "1 MB, length of packets by the bit error rate: transmissions of what came last",
            f"beyond the paper: at most {FEW:g}; bound with the best length of all {_best_rounds():.1f}",
            found[ADAPTIVE].rounds,
            at_most=FEW,
            rule=f"agrees up to {FEW:g}; shorter packets are lost less often, and the length is learnt",
        ),
        claimed(
            ITEM,
            "1 MB, coded: transmissions of what came last",
            f"beyond the paper: at most {_CODED_ROUNDS:g}; any scheme that knows the loss {known}",
            found[CODED].rounds,
            at_most=_CODED_ROUNDS,
            rule=f"agrees up to {_CODED_ROUNDS:g}; the loss is learnt, not known",
        ),
        claimed(
            ITEM,
            "1 MB, coded: bytes sent over file / (1 - p)",
            f"beyond the paper: at most {_CODED_BYTES:g}; any scheme 1, without headers",
            found[CODED].relative_bytes(FILE_BYTES, LOSS),
            at_most=_CODED_BYTES,
            rule=f"agrees up to {_CODED_BYTES:g}; p = {LOSS:.4f} of packets of 1500 bytes; headers, control packets count",
        ),
    ]
    for file_bytes, of_size in ((FILE_BYTES, found), (10 * FILE_BYTES, schemes(bench, 10 * FILE_BYTES))):
        checks.append(beside_any_scheme(ITEM, file_bytes, CODED, of_size[CODED]))
    checks += [
        claimed(
            ITEM,
            f"10 s one way, loss {loss:g}, coded: bound of any scheme for a file of 500 MB, over the time taken",
            "beyond the paper: at least 0.97; any scheme: 1",
            share,
            at_least=_OF_BOUND,
            rule=f"agrees from {_OF_BOUND} up; the bound is delay + file / (rate x (1 - loss) x payload share): with repair "
            "symbols the end of the file does not wait for its worst packet",
        )
        for loss, share in file_shares(bench, 10.0, _FILE_LOSSES, runs=_FILE_RUNS, coded=True)
    ]
    heading = "1 MB at a bit error rate of 1e-4: rounds by scheme"
    return checks, [drawing(ITEM, heading, by_copies(bench, FILE_BYTES) | found)]


def schemes(bench: Workbench, file_bytes: int) -> dict[str, Transfer]:
    """A file with packets of a length that follows the bit error rate, and with repair symbols."""
    transports = {ADAPTIVE: reliable(adaptive_length={}), CODED: reliable(coded={})}
    return transfers(bench, transports, file_bytes=file_bytes, name=ITEM)


def _best_rounds() -> float:
    """Fewest rounds of ideal selective repeat with single copies, over all lengths of packets."""
    lengths = np.arange(1, trailer().payload_bytes + 1)
    header = PACKET_BYTES - trailer().payload_bytes
    loss = arq.packet_loss(WORST_BER, packet_bytes=lengths + header)
    return float(np.min(rounds_of_the_worst(loss, packets=np.ceil(FILE_BYTES / lengths))))
