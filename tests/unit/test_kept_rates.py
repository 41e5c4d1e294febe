"""Simulated error rates are cached and not simulated again."""

from __future__ import annotations

import json

import pytest

from farlink import _core
from farlink.channels import coding
from farlink.kept_results import digest

CODING = {"modulation": "bpsk", "decision": "hard", "code": {"kind": "convolutional", "generators": "7,5"}}


@pytest.fixture
def simulations(monkeypatch, tmp_path):
    """Count simulations, with a cache folder of the test's own."""
    monkeypatch.setenv("FARLINK_CACHE", str(tmp_path / "cache"))
    simulate, calls = _core.error_rate, []

    def counted(*arguments, **options):
        calls.append(arguments)
        return simulate(*arguments, **options)

    monkeypatch.setattr(_core, "error_rate", counted)
    return calls


def rate(**options):
    return coding.error_rate(CODING, 4.0, **{"events": 50, "max_bits": 10**6, **options})


def test_the_same_simulation_is_run_once(simulations):
    assert rate() == rate() == rate(threads=1)
    assert len(simulations) == 1


@pytest.mark.parametrize("other", [{"seed": 2}, {"events": 5000}, {"packet_bits": 100}])
def test_a_different_simulation_is_not_taken_from_the_cache(other, simulations):
    assert rate() != rate(**other)
    assert len(simulations) == 2


def kept_file(tmp_path):
    (kept,) = (tmp_path / "cache" / "codes").glob("*.json")
    return kept


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: "",
        lambda _: "{}",
        lambda text: text[:-5],
        lambda _: "[" * 100_000,
        lambda text: text + " " * 100_000,
        lambda text: text.replace("seed", "sead"),
        lambda text: text.replace('"wrong_bits": ', '"wrong_bits": 1'),
        lambda text: text.replace('"bit_error_rate": [0.', '"bit_error_rate": [0.00'),
        lambda text: text.replace('"reached": true', '"reached": "yes"'),
        lambda text: text.replace('"bit_error_rate": [', '"bit_error_rate": [NaN, '),
    ],
)
def test_a_damaged_cache_file_is_set_aside_and_simulated_again(simulations, tmp_path, caplog, damage):
    before = rate()
    kept = kept_file(tmp_path)
    whole = kept.read_text()
    assert damage(whole) != whole
    kept.write_text(damage(whole))

    assert rate() == before
    assert len(simulations) == 2
    assert kept.read_text() == whole
    assert kept.with_suffix(".damaged").read_text() == damage(whole)
    assert f"{kept} is not used" in caplog.text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bit_error_rate", [1e-5, 1e-6, 1e-4]),
        ("bit_error_rate", [2.0, 1.0, 3.0]),
        ("packet_error_rate", [0.5, 0.6, 0.7]),
        ("event_rate", ["a", 0.0, 1.0]),
        ("wrong_bits", 10**30),
        ("bits", True),
        ("extra", 1),
    ],
)
def test_a_cache_file_with_impossible_numbers_is_ignored(simulations, tmp_path, name, value):
    """The checksum is valid, as in a deliberately forged file."""
    before = rate()
    kept = kept_file(tmp_path)
    lie = json.loads(kept.read_text())
    lie["found"][name] = value
    lie["sha256"] = digest(lie["key"], lie["found"])
    kept.write_text(json.dumps(lie))

    assert rate() == before
    assert len(simulations) == 2


def test_results_of_another_build_are_not_used(simulations, monkeypatch):
    before = rate()
    monkeypatch.setattr(_core, "__build__", "0" * 64)

    assert rate() == before
    assert len(simulations) == 2


def test_an_unwritable_cache_folder_is_ignored(simulations, monkeypatch):
    monkeypatch.setenv("FARLINK_CACHE", "/proc/nowhere")
    assert rate() == rate()
    assert len(simulations) == 2


def test_interrupted_simulations_are_not_cached(simulations):
    stopped = rate(max_bits=10**9, events=10**6, progress=lambda _done, _total: (_ for _ in ()).throw(KeyboardInterrupt))
    assert stopped.is_interrupted
    rate(max_bits=10**9, events=10**6, progress=lambda _done, _total: (_ for _ in ()).throw(KeyboardInterrupt))
    assert len(simulations) == 2
