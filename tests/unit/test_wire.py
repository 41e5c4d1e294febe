"""`docs/wire.py`: figures from what its programs print. Its page: `test_pages_of_results.py`."""

from __future__ import annotations

import pytest
from tests.conftest import program_of_docs


def test_goodput_is_from_chunk_to_chunk():
    # One megabyte every two seconds; the span begins and ends between chunks.
    grown = [{"unix_s": 2.0 * n, "content_bytes": 1e6 * n} for n in range(60)]

    assert program_of_docs("wire")._goodput_bps(grown, (19.0, 101.9)) == pytest.approx(4e6)


def test_the_bound_is_payload_over_wire():
    wire = program_of_docs("wire")

    assert wire.HEADER_BYTES == 76
    assert wire.bound_bps(0.0) == pytest.approx(10e6 * 1424 / 1500)
    assert wire.bound_bps(0.1) == pytest.approx(0.9 * wire.bound_bps(0.0))


def test_what_comes_after_an_outage_counts_from_its_end():
    wire = program_of_docs("wire")

    assert wire._after([1.0, 2.0, 5.5], 5.0) == pytest.approx(0.5)
    assert wire._after([1.0], 5.0) == float("inf")
    assert wire._after([1.0], None) is None


def test_a_watcher_counts_content_but_no_logs(tmp_path):
    watch = program_of_docs("wire_watch")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "file.data").write_bytes(bytes(700))
    (tmp_path / "work" / "file.log").write_bytes(bytes(900))

    assert watch.content_bytes(tmp_path) == 700
    assert watch.content_bytes(tmp_path / "none") == 0
    assert watch.came_bytes("no-such-device") == 0
