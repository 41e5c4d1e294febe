"""`farlink bundle log` as a user types it."""

from __future__ import annotations

import pytest
from tests.conftest import Command, assert_refused

from farlink.operator.journal import Journal, Transition


@pytest.fixture
def journal(tmp_path):
    path = tmp_path / "camp.journal"
    with Journal(path) as journal:
        journal.begin(1_783_166_400.0, {"kansas": 1})
        for call in range(30):
            at = 1000.0 * call
            for state, after in (("connecting", 0), ("connected", 40), ("dropped", 900)):
                journal.record(
                    Transition(1, "kansas", state, 1_783_166_400.0 + at + after, at + after, "boot", cause="NO CARRIER", bars=4)
                )
    return path


def test_last_transitions_are_printed(farlink: Command, journal):
    done = farlink("bundle", "log", journal, "--last", "2")

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "90 transitions of 1 connection"
    assert done.stdout.count("kansas") == 2
    assert "2026-07-04T20:18:20Z" in done.stdout


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl", "xml"])
def test_exports(farlink: Command, journal, suffix, tmp_path):
    done = farlink("bundle", "log", journal, "-o", f"camp.{suffix}")

    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert (tmp_path / f"camp.{suffix}").stat().st_size > 1000
    if suffix in ("csv", "jsonl"):  # 30 drops, all after the same time
        fit = farlink("bundle", "fit", f"camp.{suffix}", "--replicates", "39")
        assert fit.returncode == 0, fit.stderr


def test_a_damaged_journal_is_read_with_a_warning(farlink: Command, journal):
    journal.write_bytes(journal.read_bytes()[:-4096])

    done = farlink("bundle", "log", journal)

    assert done.returncode == 0
    assert "the journal was damaged" in done.stderr


@pytest.mark.usefixtures("journal")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none"], ["no such journal"]),
        (["camp.journal", "-o", "a.txt"], ["'.txt'", ".jsonl"]),
        (["camp.journal", "--last", "0"], ["--last: 0"]),
        (["camp.journal", "-o", "no/where.csv"], ["no"]),
    ],
)
def test_bad_input(farlink: Command, arguments, said):
    assert_refused(farlink("bundle", "log", *arguments), said)
