"""The examples of the Rust crates that tests run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.conftest import ROOT

# In the profile of the tests of Rust, with the features of the workspace: what is compiled for these is not compiled again.
BUILD = "cargo build --quiet --profile test --workspace --example aerotp_udp --example relay --example decode"


def built_examples() -> Path:
    """The folder of the examples: `FARLINK_EXAMPLES` if that is set, else cargo's, which builds them as the tests of Rust do.

    Raises
    ------
    subprocess.CalledProcessError
        If one does not compile.
    """
    if built := os.environ.get("FARLINK_EXAMPLES"):
        return Path(built)
    subprocess.run(BUILD.split(), cwd=ROOT, check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "examples"
