"""The examples of the Rust crates that tests run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.conftest import ROOT

# As `.ci/checks` builds them, so that nothing is compiled a second time.
BUILD = "cargo build --quiet --profile test --workspace --example aerotp_udp --example relay --example decode"


def built_examples() -> Path:
    """The folder of the examples, built as the tests of Rust build them.

    Raises
    ------
    subprocess.CalledProcessError
        If one does not compile.
    """
    subprocess.run(BUILD.split(), cwd=ROOT, check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "examples"
