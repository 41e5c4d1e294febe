"""Modems and studies that take milliseconds, for the tests of tuning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tomli_w

from farlink.tune.modem import Modem
from farlink.tune.study import Study

MODEM: dict[str, Any] = {
    "title": "Small modem",
    "symbol_rates_hz": [1e6],
    "modulations": ["bpsk", "qpsk"],
    "segment_bytes": [512],
    "code": {
        "none": {"kind": "uncoded"},
        "RS": {"kind": "reed-solomon", "n": 255, "k": 223, "data_bytes": [184, 92, 46]},
        "ER": {"kind": "erasure", "block_bytes": 46, "parity_blocks": [1, 2, 4]},
    },
}
STUDY: dict[str, Any] = {
    "title": "Small study",
    "modem": "modem.toml",
    "cn0_from_dbhz": 60,
    "cn0_to_dbhz": 76,
    "shares": [0.25, 1.0],
    "flows": [1, 4],
}


def modem(**changes: Any) -> Modem:
    """The small modem with other keys."""
    return Modem.model_validate({**MODEM, **changes})


def study(**changes: Any) -> Study:
    """The small study with other keys."""
    return Study.model_validate({**STUDY, **changes})


def write(folder: Path, *, modem: dict[str, Any] | None = None, study: dict[str, Any] | None = None) -> Path:
    """Write both with other keys, and return the study's file."""
    (folder / "modem.toml").write_text(tomli_w.dumps({**MODEM, **(modem or {})}))
    path = folder / "study.toml"
    path.write_text(tomli_w.dumps({**STUDY, **(study or {})}))
    return path
