"""Modems and studies that take milliseconds, and the test vectors of the readers (`python -m tests.tuning` writes them)."""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import tomli_w

from farlink.tune.modem import Modem
from farlink.tune.reader import LookUp, Pick
from farlink.tune.row import Row
from farlink.tune.study import Study

VECTORS = Path(__file__).parent / "vectors" / "tuning.json"

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


def shared_rows() -> list[Row]:
    """Rows of an invented table that exercises every rule of the reader."""
    found: list[Row] = []
    for share, flows in ((0.25, 1), (0.5, 1), (1.0, 1), (1.0, 8)):
        # For each step, its lowest C/N0 in dBHz and its code; None is no transmission.
        plan = [(60.0, None), (61.0, "A"), (61.5, "B"), (64.0, "C"), (64.5, "A"), (66.0, "D")]
        for at in range(17):
            cn0 = 60.0 + 0.5 * at
            step = max(number for number, (begins, _) in enumerate(plan) if cn0 >= begins)
            begins, code = plan[step]
            # The first step has no thresholds. Margin 0.2 dB, hysteresis 0.7 dB: wider than the narrowest step.
            ends = {"down_dbhz": round(begins + 0.2, 9), "up_dbhz": round(begins + 0.9, 9)} if step else {}
            common: dict[str, Any] = {"share": share, "flows": flows, "cn0_dbhz": cn0, "step": step, **ends}
            if code is None:
                found.append(Row(**common, status="no transmission", reason="a made-up table"))
                continue
            setting = {"symbol_rate_hz": 1e6, "modulation": "bpsk", "family": "X", "code": code, "segment_bytes": 512}
            reached = {"information_bps": 1e5 * (step + 1), "ber": 1e-6, "loss": 1e-3, "goodput_bps": 1e4 * (at + 1) * share}
            found.append(Row(**common, status="ok", **setting, **reached, goodput_half_width_bps=0.0))
    return found


def shared_picks(rows: list[Row]) -> list[dict[str, Any]]:
    """Picks of the Python reader: walks up and down, from each previous step."""
    reader = LookUp(rows)
    picks: list[dict[str, Any]] = []

    def pick(cn0_dbhz: float, share: float, flows: int, current: Pick | None) -> Pick:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = reader.pick(cn0_dbhz, share=share, flows=flows, current=current)
        before = current.row if current is not None else None
        picks.append(
            {
                "cn0_dbhz": cn0_dbhz,
                "share": share,
                "flows": flows,
                "current": None if before is None else {"share": before.share, "flows": before.flows, "step": before.step},
                "picked": {
                    "share": found.row.share,
                    "flows": found.row.flows,
                    "cn0_dbhz": found.row.cn0_dbhz,
                    "step": found.row.step,
                    "status": found.row.status,
                    "code": found.row.code,
                },
                "warnings": len(found.warnings),
            }
        )
        return found

    current: Pick | None = None
    for at in [*range(585, 700), *range(700, 580, -1)]:
        pick(at / 10, 0.5, 1, None)
        current = pick(at / 10, 0.5, 1, current)
    for share, flows in ((0.3, 1), (0.36, 1), (0.01, 1), (7.0, 1), (1.0, 2), (1.0, 4), (1.0, 8), (1.0, 16), (0.5, 8)):
        current = pick(63.0, share, flows, current)
    return picks


def main() -> None:
    """Write the vectors that the readers in Python and in Rust share."""
    rows = shared_rows()
    content = {"rows": [asdict(row) for row in rows], "picks": shared_picks(rows)}
    VECTORS.write_text(json.dumps(content, indent=None, separators=(",", ":")).replace('},{"share', '},\n{"share') + "\n")


if __name__ == "__main__":
    main()
