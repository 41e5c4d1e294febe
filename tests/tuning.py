"""Modems and studies that take milliseconds, and the test vectors of the readers (`python -m tests.tuning` writes them)."""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import tomli_w

from farlink.tune.modem import Modem
from farlink.tune.path_reader import PathLookUp
from farlink.tune.reader import LookUp, Pick
from farlink.tune.row import CANDIDATE, NO_TRANSMISSION, OK, Row
from farlink.tune.study import Study

# Shares and numbers of connections of the invented tables over several paths.
PATH_ENTRIES = ((0.25, 1), (1.0, 8))
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


def random_path_rows(seed: int, *, paths: tuple[int, int] = (3, 3), conditions: int = 12) -> list[Row]:
    """Rows of an invented table over several paths: some settings are unusable on some of them, some goodputs are equal."""
    rng = random.Random(seed)
    round_trips, buffers = (sorted({round(rng.uniform(0.01, 2), 3) for _ in range(count)}) for count in paths)
    codes = "ABCDE"
    loss = {code: rng.choice([1e-5, 1e-4, 1e-3]) for code in codes}
    found: list[Row] = []
    for share, flows in PATH_ENTRIES:
        entries: list[list[dict[str, float]]] = []
        for _ in range(len(round_trips) * len(buffers)):
            # At each C/N0 the goodput of every setting that may be used.
            entries.append(
                [
                    {
                        code: float(rng.choice([1, 2, 3, rng.uniform(1, 4)])) * 1e5
                        for code in codes
                        if rng.random() < 0.9 and at > 1
                    }
                    for at in range(conditions)
                ]
            )
        chosen = [[max(here, key=here.__getitem__, default=None) for here in entry] for entry in entries]
        wanted = [{one[at] for one in chosen} - {None} for at in range(conditions)]
        places = [(a, b) for a in round_trips for b in buffers]
        for place, entry, best in zip(places, entries, chosen, strict=True):
            found += _path_entry(share, flows, place, entry, best, wanted, loss)
    return found


def _path_entry(
    share: float,
    flows: int,
    place: tuple[float, float],
    entry: Sequence[dict[str, float]],
    best: Sequence[str | None],
    wanted: Sequence[set[str | None]],
    loss: dict[str, float],
) -> list[Row]:
    found: list[Row] = []
    step, down, up = 0, None, None
    on = {"round_trip_s": place[0], "buffer_bdp": place[1]}
    for at, (here, code) in enumerate(zip(entry, best, strict=True)):
        cn0 = 60 + 0.5 * at
        ends = (cn0 + 0.25, cn0 + 0.75)
        if at and code != best[at - 1]:
            step, (down, up) = step + 1, ends
        bare = Row(share, flows, cn0, NO_TRANSMISSION, step, down, up, reason="" if at % 2 else "a made-up table", **on)
        found.append(bare if code is None else _set(bare, code, here[code], loss[code]))
        for other in sorted(here):
            if other in wanted[at] and other != code:
                row = _set(bare, other, here[other], loss[other])
                found.append(replace(row, status=CANDIDATE, step=-1, down_dbhz=ends[0], up_dbhz=ends[1]))
    return found


def _set(row: Row, code: str, goodput_bps: float, loss: float) -> Row:
    setting = {"symbol_rate_hz": 1e6, "modulation": "bpsk", "family": "X", "code": code, "segment_bytes": 512}
    reached = {"information_bps": 5e5, "ber": 1e-6, "loss": loss, "goodput_bps": goodput_bps}
    return replace(row, status=OK, reason="", **setting, **reached, goodput_half_width_bps=goodput_bps / 100)


def random_path_queries(rows: Sequence[Row], seed: int, count: int = 16) -> list[dict[str, Any]]:
    """Tables of the Python reader on paths in, on the edge of, between and outside those of a table."""
    rng = random.Random(seed)
    reader = PathLookUp(rows)
    found: list[dict[str, Any]] = []
    for number in range(count):
        place = {}
        for name, axis in (("round_trip_s", reader.round_trips_s), ("buffer_bdp", reader.buffers_bdp)):
            inside = rng.uniform(axis[0], axis[-1])
            place[name] = rng.choice([inside, inside, rng.choice(axis), axis[0] / 3, axis[-1] * 2])
        if number % 3 == 0 and len(reader.buffers_bdp) == 1:
            del place["buffer_bdp"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            on = reader.on_path(**place)
        entries = [on.lookup.rows(share=share, flows=flows) for share, flows in PATH_ENTRIES]
        kept = ("share", "flows", "cn0_dbhz", "status", "step", "down_dbhz", "up_dbhz", "code", "goodput_bps", "reason")
        found.append(
            {
                **place,
                "warnings": len(on.warnings),
                "rows": [[getattr(row, name) for name in kept] for entry in entries for row in entry],
            }
        )
    return found


def shared_paths() -> list[dict[str, Any]]:
    """Tables over several paths with what the Python reader makes of them."""
    found = []
    for seed, paths in enumerate([(3, 3), (2, 1), (1, 2), (4, 2)]):
        rows = random_path_rows(seed, paths=paths, conditions=6)
        given = [
            name for name in asdict(rows[0]) if name not in ("symbol_rate_hz", "modulation", "family", "information_bps", "ber")
        ]
        cut = [{name: getattr(row, name) for name in given if getattr(row, name) not in (None, "")} for row in rows]
        found.append({"rows": cut, "queries": random_path_queries([Row(**one) for one in cut], seed)})
    return found


def shared_bandwidths(rows: list[Row]) -> list[list[float]]:
    """Bandwidths in symbols per second, the C/N0 and the share and the step that the Python reader picks at them."""
    reader, found = LookUp(rows), []
    for bandwidth_hz in (250e3, 333e3, 360e3, 0.5e6, 1e6):
        for cn0_dbhz in (60.0, 62.3, 65.9, 68.0):
            row = reader.pick(cn0_dbhz, bandwidth_hz=bandwidth_hz).row
            found.append([bandwidth_hz, cn0_dbhz, row.share, row.step])
    return found


def main() -> None:
    """Write the vectors that the readers in Python and in Rust share."""
    rows = shared_rows()
    content = {
        "rows": [asdict(row) for row in rows],
        "picks": shared_picks(rows),
        "bandwidths": shared_bandwidths(rows),
        "paths": shared_paths(),
    }
    VECTORS.write_text(json.dumps(content, indent=None, separators=(",", ":")).replace('},{"share', '},\n{"share') + "\n")


if __name__ == "__main__":
    main()
