"""Celandroni, Ferro and Potortì: what is printed, beside ours."""

from __future__ import annotations

import pytest

from farlink.models.tcp_goodput import celandroni

# Five connections over 455 segments per second; T in s is what makes the first cell agree, see `farlink.papers.celandroni`.
FLOWS = 5
LINK = {"rate_segments_per_s": 455.0, "rtt_s": 0.50634}
TABLE_1 = [
    (2.0, 1e-4, "2.656"),
    (2.0, 1e-3, "0.8345"),
    (2.0, 1e-2, "0.2478"),
    (2.0, 1e-1, "0.0429"),
    (1.0, 1e-4, "2.657"),
    (1.0, 1e-3, "0.8375"),
    (1.0, 1e-2, "0.2565"),
    (1.0, 1e-1, "0.0568"),
]


@pytest.mark.published("Celandroni, table I, columns of relation (1)")
@pytest.mark.parametrize(("timeout_s", "loss", "printed"), TABLE_1)
def test_relation_1_gives_table_1(timeout_s, loss, printed):
    total = FLOWS * float(celandroni.relation_1(loss, timeout_s=timeout_s, **LINK))

    unit = 10.0 ** -len(printed.partition(".")[2])
    assert total == pytest.approx(float(printed), abs=1.01 * unit / 2)
