"""Error rates that were simulated once are not simulated again."""

from __future__ import annotations

import pytest

from farlink import _core
from farlink.channels import coding

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
def test_another_simulation_is_not_taken_for_it(other, simulations):
    assert rate() != rate(**other)
    assert len(simulations) == 2


def test_a_damaged_file_is_simulated_again(simulations, tmp_path):
    before = rate()
    (kept,) = (tmp_path / "cache" / "codes").iterdir()
    for damage in ("", "{}", kept.read_text()[:-5], kept.read_text().replace('"seed', '"sead')):
        kept.write_text(damage)
        assert rate() == before
    assert len(simulations) == 5


def test_a_folder_that_cannot_be_written_does_no_harm(simulations, monkeypatch):
    monkeypatch.setenv("FARLINK_CACHE", "/proc/nowhere")
    assert rate() == rate()
    assert len(simulations) == 2


def test_what_was_interrupted_is_not_kept(simulations):
    stopped = rate(max_bits=10**9, events=10**6, progress=lambda _done, _total: (_ for _ in ()).throw(KeyboardInterrupt))
    assert stopped.is_interrupted
    rate(max_bits=10**9, events=10**6, progress=lambda _done, _total: (_ for _ in ()).throw(KeyboardInterrupt))
    assert len(simulations) == 2
