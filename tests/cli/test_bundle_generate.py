"""`farlink bundle generate`, as a user types it."""

from __future__ import annotations

import tomllib

import pytest
from tests.conftest import assert_refused

from farlink.channels.calls.links import links_of
from farlink.channels.calls.logs import read

pytest.importorskip("scipy.stats")


def test_a_drawn_log_is_one_that_bundle_fit_reads(farlink, tmp_path):
    log, replay = tmp_path / "drawn.jsonl", tmp_path / "drawn.toml"

    drawn = farlink("bundle", "generate", "-o", str(log), "--replay", str(replay), "--lines", "3", "--set", "other_mean_s=600")
    fitted = farlink("bundle", "fit", str(log), "--replicates", "49")

    assert drawn.returncode == 0, drawn.stderr
    assert fitted.returncode == 0, fitted.stderr
    links = links_of(read(log).events)
    assert [link.name for link in links] == ["line-1", "line-2", "line-3"]
    table = {row.split()[0]: row.split() for row in drawn.stdout.splitlines() if row.startswith("line-")}
    assert [int(table[link.name][2]) for link in links] == [len(link.drops) for link in links]
    assert len(tomllib.loads(replay.read_text())["link"]["bundle"]["calls"]["schedule"]) == 3
    assert "handover" in fitted.stdout


def test_the_same_seed_draws_the_same_log(farlink):
    same = [farlink("bundle", "generate", "-o", "-", "--duration-s", "20000", "--seed", str(seed)).stdout for seed in (4, 4, 5)]

    assert same[0] == same[1] != same[2]


def test_parameters_are_listed_with_their_rules(farlink):
    done = farlink("bundle", "generate", "--list")

    assert done.returncode == 0
    assert "handover_failure" in done.stdout
    assert "a number from 0 to 1" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--lines", "0"], "--lines: 0 is out of range"),
        (["--duration-s", "1e9"], "--duration-s: 1e+09 is out of range"),
        (["--duration-s", "nan"], "--duration-s: nan is out of range"),
        (["--set", "handover_failure=2"], "handover_failure: 2 is not a number from 0 to 1"),
        (["--set", "handover_failur=0.1"], "'handover_failur' is no parameter of drawn calls"),
        (["--set", "handover_failure"], "--set handover_failure: not KEY=VALUE"),
        (["--set", "mobile_ip_rtt_s=0.1"], "mobile_ip_rtt_s is given without speed_mps"),
        (["--set", "handover_shortest_s=700"], "handover_shortest_s: 700 is above handover_longest_s, 600"),
        (["--set", "other_mean_s=0.5"], "other_mean_s: 0.5 is neither 0 nor at least 1"),
        (["--set", "speed_mps=1000", "--set", "cell_radius_m=1"], "cells must be crossed in 1 s to 1e7 s"),
        (["--snr"], "--snr: the signal has no ratio"),
        (["-o", "-", "--replay", "-"], "-o and --replay both go to standard output"),
        (["--replay", "lines.csv"], "--replay lines.csv"),
        (["--seed", "-1"], "seed"),
    ],
)
def test_what_cannot_be_drawn_is_refused(farlink, arguments, message):
    assert_refused(farlink("bundle", "generate", *arguments), [message])
