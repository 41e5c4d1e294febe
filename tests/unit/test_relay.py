"""The example `relay`: what it refuses, and AeroTP over it between network namespaces."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import ROOT, assert_refused, program_of_docs
from tests.examples import built_examples

# The relay's bucket holds 20 packets at this rate; 52 bytes of 1500 are headers.
RATE_BPS = 10e6


@pytest.fixture(scope="module")
def examples() -> Path:
    """The folder of the examples, built as the tests of Rust build them."""
    if shutil.which("cargo") is None:
        pytest.skip("cargo is missing")
    return built_examples()


def why_not_here() -> str | None:
    """Why this machine makes no network namespaces with TUN devices; None if it does."""
    paths = program_of_docs("kernel_paths")
    try:
        paths.check_machine()
    except paths.UnusableError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("near", "a relay is between two devices, not 1"),
        ("near far --speed 1", "there is no option --speed"),
        ("near far --rate fast", "--rate fast is no number from 1e3 to 1e12"),
        ("near far --queue 0", "--queue 0 is no number from 1e0 to 1e6"),
        ("near far --back-loss 1", "--back-loss 1 is no number from 0e0 to 9.9e-1"),
        ("near far --police 5", "--police needs a rate"),
        ("near far --channel {}", "--channel {}: "),
        ("farlink-none far", "cannot attach to farlink-none: there is no such device here"),
        ("a-name-that-is-too-long far", "a name has 1 to 15 bytes"),
    ],
)
def test_bad_input_is_refused_in_two_lines(examples, arguments, said):
    done = subprocess.run([examples / "relay", *arguments.split()], capture_output=True, text=True, timeout=10, check=False)

    assert_refused(done, [said])


def test_help_names_every_option(examples):
    done = subprocess.run([examples / "relay", "--help"], capture_output=True, text=True, timeout=10, check=True)

    options = ["rate", "queue", "mark", "police", "loss", "burst", "channel", "delay", "jitter", "overtake", "seed", "every"]
    assert [option for option in options if f"--{option} " not in done.stdout] == []


@pytest.mark.slow
@pytest.mark.peer("kernel")
def test_a_friendly_rate_hardly_exceeds_a_policer(examples):
    if reason := why_not_here():
        pytest.skip(reason)

    command = [sys.executable, ROOT / "docs" / "aerotp_kernel.py", "--short", "--programs", examples]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)

    assert done.returncode == 0, done.stderr
    [flow] = json.loads(done.stdout)["flows"]
    assert flow["goodput_bps"] > 0.5 * RATE_BPS
    assert flow["goodput_bps"] < RATE_BPS, "the policer holds"
    assert flow["dropped"] < 0.1
