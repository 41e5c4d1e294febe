"""`farlink code` and `farlink trace bursts` as a user types them."""

from __future__ import annotations

import csv
import io
import json
import os
import select
import signal
import subprocess
import sys
from contextlib import suppress

import pytest
from tests.conftest import assert_refused

from farlink.channels import trace_file

SMALL = ("--code", "7,5", "--decision", "hard")


def test_bursts_are_printed_with_their_definition_and_kept(farlink, tmp_path):
    done = farlink("trace", "bursts", *SMALL, "--ebn0-db", 4, "--bits", "2e5", "-o", "wrong.npz")

    assert done.returncode == 0, done.stderr
    assert "2 right bits or more end a burst (K - 1)" in done.stdout
    assert "Trace written to wrong.npz" in done.stderr
    kept = trace_file.read(tmp_path / "wrong.npz")
    assert kept.kind == "bit-errors"
    assert int(kept["bits"]) == 200_000
    assert f"Wrong bits            {kept['position'].size:,}\n" in done.stdout
    assert kept.meta["ebn0_db"] == 4


def test_the_trace_is_accepted_by_the_channel_bit_trace(farlink, small, tmp_path):
    farlink("trace", "bursts", *SMALL, "--ebn0-db", 4, "--bits", "1e5", "-o", "wrong.npz")

    done = farlink("run", small, "--set", 'link.channel={kind="bit-trace", file="wrong.npz"}', "--runs", 1, "--json", "-")

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["summary"][0]["loss_fraction"]["mean"] > 0
    assert (tmp_path / "wrong.npz").exists()


def test_same_seed_gives_the_same_trace(farlink, tmp_path):
    for name, seed in (("a.npz", 3), ("b.npz", 3), ("c.npz", 4)):
        farlink("trace", "bursts", *SMALL, "--ebn0-db", 4, "--bits", "1e5", "--seed", seed, "-o", name)

    first, again, other = ((tmp_path / name).read_bytes() for name in ("a.npz", "b.npz", "c.npz"))
    assert first == again
    assert first != other


def test_a_wider_gap_makes_fewer_bursts(farlink):
    def bursts(gap):
        done = farlink("trace", "bursts", *SMALL, "--ebn0-db", 3, "--bits", "1e5", "--gap", gap)
        assert f"{gap} right bits or more end a burst\n" in done.stdout
        return int(done.stdout.split("Bursts")[1].split()[0].replace(",", ""))

    assert bursts(30) < bursts(2)


def test_error_rates_fall_and_lie_within_their_intervals(farlink, tmp_path):
    done = farlink("code", "ber", *SMALL, "--ebn0-db", "3,5", "--events", "100", "--json", "-", "--plot", "ber.png")

    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["coding"]["code"]["generators"] == "7,5"
    low, high = content["rows"]
    assert low["ber"] > high["ber"] > 0
    for row in content["rows"]:
        assert row["ber_low"] < row["ber"] < row["ber_high"]
        assert row["ber"] == pytest.approx(row["wrong_bits"] / row["bits"])
        assert row["events"] >= 100
    assert (tmp_path / "ber.png").read_bytes()[1:4] == b"PNG"


def test_table_and_csv_agree(farlink):
    arguments = ("code", "ber", *SMALL, "--ebn0-db", "3", "--events", "100")

    table, rows = farlink(*arguments).stdout, list(csv.DictReader(io.StringIO(farlink(*arguments, "--csv", "-").stdout)))

    assert f"{float(rows[0]['ber']):.3e}" in table


def test_too_few_bits_are_reported(farlink):
    done = farlink("code", "ber", "--code", "171,133", "--ebn0-db", "9", "--max-bits", "1e4")

    assert done.returncode == 0, done.stderr
    assert "raise --max-bits" in done.stderr


def test_free_distances_of_known_codes_match_their_spectra(farlink):
    for known in json.loads(farlink("code", "list", "--json").stdout):
        if known["constraint_length"] > 10:
            continue
        shown = json.loads(farlink("code", "show", "--code", known["code"], "--terms", 3, "--json").stdout)
        assert shown["free_distance"] == known["free_distance"], known
        assert shown["constraint_length"] == known["constraint_length"]


@pytest.mark.published("Viterbi 1971 and every text since: the spectrum of the code (7, 5)")
def test_spectrum_of_7_5(farlink):
    shown = json.loads(farlink("code", "show", "--code", "7,5", "--terms", 4, "--json").stdout)

    assert shown["distance"] == [5, 6, 7, 8]
    assert shown["events"] == [1, 2, 4, 8]
    assert shown["data_bits"] == [1, 4, 12, 32]


def test_the_bound_lies_above_the_simulation(farlink):
    bound = json.loads(farlink("code", "show", "--code", "7,5", "--ebn0-db", "5", "--json").stdout)["bound"][0]["ber"]
    (row,) = json.loads(farlink("code", "ber", "--code", "7,5", "--ebn0-db", "5", "--json", "-").stdout)["rows"]

    assert row["ber_low"] < bound < 2 * row["ber_high"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["code", "ber", "--code", "17,8", "--ebn0-db", "3"], ["octal"]),
        (["code", "ber", "--code", "6,5", "--ebn0-db", "3,x"], ["3,x", "numbers"]),
        (["code", "show", "--code", "5,3"], ["catastrophic"]),
        (["code", "show", "--code", "171,133", "--rate", "4/5"], ["4/5"]),
        (["code", "ber", "--code", "7,5", "--ebn0-db", "3", "--modulation", "bpks"], ["bpks", "bpsk"]),
        (["code", "ber", "--code", "7,5", "--ebn0-db", "3", "--events", "0"], ["--events 0"]),
        (["code", "ber", "--code", "7,5", "--ebn0-db", "3", "--plot", "x.gif"], ["x.gif", ".png"]),
        (["trace", "bursts", "--code", "7,5", "--ebn0-db", "3", "--bits", "1.5"], ["--bits 1.5"]),
        (["trace", "bursts", "--code", "7,5", "--ebn0-db", "3", "--bits", "many"], ["--bits many"]),
        (["trace", "bursts", "--code", "7,5", "--ebn0-db", "3", "--gap", "0"], ["--gap 0"]),
        (["trace", "bursts", "--code", "7,5", "--ebn0-db", "900"], ["900"]),
        (["trace", "bursts", "--code", "7,5", "--ebn0-db", "3", "--seed", "-1"], ["seed: -1"]),
        (["code", "ber", "--code", "7,5", "--ebn0-db", "3", "--seed", "9" * 20], ["9" * 20]),
        (["code", "ber", "--code", "7,5", "--ebn0-db", "3", "--threads", "100000"], ["threads: 100000"]),
        (["code", "ber", "--code", "7", "--ebn0-db", "3"], ["number of generators is 1"]),
        (["code", "ber", "--code", "7" * 22 + ",1", "--ebn0-db", "3"], ["too long"]),
        (["code", "ber", "--code", "{ kind = ", "--ebn0-db", "3"], ["--code {", "scenario"]),
        (["code", "ber", "--code", "{ kind = 'uncoded' }\nx = 1", "--ebn0-db", "3"], ["behind the table"]),
        (["code", "ber", "--code", "{ kind = 'uncoded', x = inf }", "--ebn0-db", "3"], ["finite numbers"]),
        (["code", "ber", "--code", "{ kind = 'uncoded', x = 1979-05-27 }", "--ebn0-db", "3"], ["finite numbers"]),
        (["code", "ber", "--code", "{ kind = 'reed-solomon', n = 256, k = 223 }", "--ebn0-db", "3"], ["256"]),
        (["code", "ber", "--code", "{ kind = 'reed-solomon', n = 255, k = 255 }", "--ebn0-db", "3"], ["255"]),
        (["trace", "bursts", "--code", "7,5", "--ebn0-db", "3", "-o", "x.txt"], ["x.txt", ".npz"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_bad_arguments_are_refused(arguments, said, farlink, tmp_path):
    assert_refused(farlink(*arguments), said)
    assert list(tmp_path.iterdir()) == []


def all_of(terminal: int) -> str:
    """What is written to a terminal until its last writer is gone."""
    said = b""
    with suppress(OSError):
        while data := os.read(terminal, 65536):
            said += data
    return said.decode()


def test_interrupt_keeps_the_decoded_bits(tmp_path):
    arguments = ["trace", "bursts", *SMALL, "--ebn0-db", "4", "--bits", "1e12", "-o", "wrong.npz"]
    terminal, stderr_of_it = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "farlink.cli", *arguments], cwd=tmp_path, stdout=subprocess.PIPE, stderr=stderr_of_it, text=True
    ) as process:
        os.close(stderr_of_it)
        try:
            # The bar is drawn when bits have been decoded for a second.
            assert select.select([terminal], [], [], 120)[0]
            process.send_signal(signal.SIGINT)
            stderr = all_of(terminal)
            stdout, _ = process.communicate(timeout=60)
        finally:
            process.kill()
            os.close(terminal)

    assert process.returncode == 130, stderr
    assert "decoded bits kept" in stderr
    assert "Traceback" not in stderr
    assert "Mean length" in stdout
    assert 0 < int(trace_file.read(tmp_path / "wrong.npz")["bits"]) < 10**12


@pytest.mark.parametrize(
    "code",
    [
        "171,133",
        "171 133",
        "{ kind = 'concatenated', outer = { kind = 'reed-solomon', n = 255, k = 223 }, "
        "inner = { kind = 'convolutional', generators = '171,133' } }",
    ],
)
def test_a_burst_ends_with_the_memory_of_the_convolutional_code(code, farlink):
    done = farlink("trace", "bursts", "--code", code, "--ebn0-db", "1", "--bits", "1e5")

    assert "6 right bits or more end a burst" in done.stdout


def test_other_kinds_of_codes_are_listed_as_tables(farlink):
    done = farlink("code", "ber", "--code", "uncoded", "--modulation", "qpsk", "--ebn0-db", "4", "--json", "-")
    (row,) = json.loads(done.stdout)["rows"]

    assert row["ber_low"] < 0.0125008 < row["ber_high"]  # Q(sqrt(2 Eb/N0)); Proakis, section 4.3-1
