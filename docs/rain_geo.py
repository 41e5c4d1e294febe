"""Write the traces of `scenarios/rain-geo.toml`, `docs/validation/rain-geo.md` and its picture: `make papers`.

Takes a minute, and longer if the error events of the codes are not cached yet.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import page
from page import ROOT, paragraph

import farlink
from farlink.channels import cache
from farlink.channels.trace import Trace
from farlink.channels.trace_file import read, write
from farlink.cli.progress import progress_bar
from farlink.plot.style import COLOURS, INK, new_figure, thin
from farlink.tune import study as studies
from farlink.tune.evaluate import rated
from farlink.tune.modem import Modem
from farlink.tune.play import Played, play
from farlink.tune.points import point
from farlink.tune.policies import SILENT
from farlink.tune.reader import LookUp
from farlink.tune.study import Study
from farlink.tune.table import Table, tune

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCENARIO = ROOT / "scenarios" / "rain-geo.toml"
TRACES = ROOT / "scenarios" / "rain-geo"
STUDY = ROOT / "studies" / "rain-geo" / "tune.toml"

# The seed is the one of 1 to 30 whose day has the deepest fade.
RAIN = "synthetic:rain?" + "&".join(
    (
        "latitude_deg=50.67", "longitude_deg=4.61", "elevation_deg=30", "frequency_hz=30e9", "clear_sky_dbhz=76", "seed=16",
        "duration_s=86400", "step_s=10",
    )
)  # fmt: skip
SHARE, DETECTION_S = 0.125, 2.0
DELAYS_S = (0.0, 1.0, 5.0, 30.0, 120.0)
FIXED = "fixed, best by the engine"
SAFEST = "bpsk, RS(216,184)+CV 1/2"
RUNS = 3
BUCKETS = 1000
# Two settings that the ideal and the adaptive choice use at different times, and a C/N0 at which the model prefers the first.
COMPARED, COMPARED_DBHZ = ("CV 7/8", "RS(216,184)"), 75.0


@dataclass(frozen=True)
class Row:
    """A policy: its series of settings, and its results in the packet engine."""

    title: str
    played: Played
    goodput_bps: dict[str, float]
    fluid_bps: float
    timeouts: float


def main() -> None:
    """Write traces, page and picture."""
    page.start(__doc__)
    trace = _cn0()
    study, modem = studies.load(STUDY)
    table = tune(study, modem, watch=lambda title: progress_bar(title, "points"))
    lookup = LookUp(table.rows)
    bare = LookUp([replace(row, up_dbhz=row.down_dbhz) for row in table.rows])

    def of(lookup: LookUp = lookup, **given: Any) -> Played:
        common = {"share": SHARE, "goodput": study.goodput, "path": study.path, "usable_loss": study.usable.loss}
        return play(trace, lookup, modem, **common, **given)

    wanted = {
        f"adaptive, {DETECTION_S:g} s": of(detection_s=DETECTION_S),
        "ideal": of(policy="ideal"),
        "fixed, best by the table": of(policy="fixed"),
        "fixed, most robust": of(policy="fixed", setting=SAFEST),
    }
    for stem, played in zip(("adaptive", "ideal", "fixed"), wanted.values(), strict=False):
        write(played.rate_trace(), TRACES / f"{stem}-rate.npz")
        write(played.ber_trace(), TRACES / f"{stem}-ber.npz")
    fixed = {one: of(policy="fixed", setting=one) for one in _fixed(wanted["ideal"])}
    late = {f"{delay:g} s": of(detection_s=delay) for delay in DELAYS_S}
    late[f"{DETECTION_S:g} s, no hysteresis"] = of(bare, detection_s=DETECTION_S)
    rows: dict[str, Row] = {}
    with progress_bar("packet engine", "choices") as progress, tempfile.TemporaryDirectory() as folder:
        for number, (title, played) in enumerate((*wanted.items(), *late.items())):
            rows[title] = ran(title, played, Path(folder))
            progress(number + 1, len(wanted) + len(late))
        # Of these that of the highest goodput by the engine, which need not be the model's.
        every = [ran(FIXED, played, Path(folder)) for played in fixed.values()]
        rows[FIXED] = max(every, key=lambda row: row.goodput_bps["mean"])
        arq = arq_rows(next(iter(wanted.values())), Path(folder))
    beside = model_beside_engine(modem, study, table, wanted["ideal"])
    values = of_page(trace, beside, [rows[title] for title in (*wanted, FIXED)], [rows[title] for title in late], arq)
    page.write("rain-geo.md", {"rain-geo": picture(next(iter(wanted.values())))}, **values)


def _cn0() -> Trace:
    """The day; generating it, if it is not cached, needs the extra `rain`."""
    path = TRACES / "cn0.npz"
    if not path.exists():
        write(cache.import_file(Path(RAIN), kinds=["cn0"]), path)
    return read(path)


def _fixed(ideal: Played) -> list[str]:
    """Candidates for the best fixed setting: those that are ideal for at least 1 % of the time."""
    return [one.rpartition(",")[0] for one, share in ideal.time_in.items() if share >= 0.01]


def scenario(played: Played, folder: Path) -> dict[str, Any]:
    """The shipped scenario over one choice."""
    data = _plain_scenario()
    rate, ber = write(played.rate_trace(), folder / "rate.npz"), write(played.ber_trace(), folder / "ber.npz")
    link = {**data["link"], "rate_bps": {"kind": "rate-trace", "file": str(rate)}}
    return {**data, "runs": RUNS, "link": {**link, "channel": {"kind": "ber-trace", "file": str(ber)}}}


def _plain_scenario() -> dict[str, Any]:
    data = dict(farlink.load(SCENARIO).data)
    del data["grid_zip"]
    return data


def ran(title: str, played: Played, folder: Path) -> Row:
    """Both engines over a choice."""
    data = scenario(played, folder)
    packet, fluid = (
        next(row for row in farlink.run(data, engine=engine).summary() if row["flow"] == "bulk")
        for engine in ("packet", "fluid")
    )
    return Row(title, played, packet["goodput_bps"], fluid["goodput_bps"]["mean"], packet["timeouts"]["mean"])


def arq_rows(played: Played, folder: Path) -> dict[str, dict[str, float]]:
    """Goodput of selective-repeat ARQ with a policy, with frames of fixed and of adaptive length."""
    lengths: dict[str, dict[str, Any]] = {
        "512 bytes": {},
        "by what was acknowledged": {"adaptive_length": {"rule": "optimal", "memory_s": 10.0}},
        "by the link's own error rate": {"adaptive_length": {"rule": "optimal", "estimate": "genie"}},
    }
    data, found = scenario(played, folder), {}
    frames = {"kind": "arq", "mode": "selective-repeat", "segment_bytes": 512, "header_bytes": 40}
    for title, given in lengths.items():
        link = {**data, "transport": {"arq": {**frames, "window_frames": 70, "buffer_frames": 1000, **given}}}
        link["flow"] = {"bulk": {"transport": "arq", "traffic": {"kind": "bulk"}}}
        (row,) = [row for row in farlink.run(link).summary() if row["flow"] == "bulk"]
        found[title] = row["goodput_bps"]
    return found


def of_page(trace: Trace, beside: str, choices: list[Row], late: list[Row], arq: dict[str, dict[str, float]]) -> page.Values:
    """Values of the page."""
    clear = float(trace.meta["clear_sky_dbhz"])
    cn0 = choices[0].played.cn0_dbhz
    return {
        "source": trace.meta["source"].removeprefix("farlink, synthetic rain: "),
        "deepest": clear - cn0.min(),
        "clear": clear,
        "wet": 100 * np.mean(cn0 <= clear - 1),
        "choices": table_of(choices, "choice"),
        "runs": RUNS,
        "said": said(choices, beside),
        "fluid": 100 * max(abs(row.fluid_bps / row.goodput_bps["mean"] - 1) for row in (*choices, *late)),
        "detection": DETECTION_S,
        "late": table_of(late, "known after"),
        "said_late": said_late(late),
        "arq": page.table(["frames", "goodput"], [[title, _interval(found)] for title, found in arq.items()], "lr"),
        "said_arq": said_arq(arq),
    }


def table_of(rows: list[Row], head: str) -> str:
    """A row per choice."""
    lines = [
        f"| {head} | goodput, packet engine | fluid | by the table | information rate | outage | switches an hour | timeouts |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        played = row.played
        lines.append(
            f"| {row.title} | {_interval(row.goodput_bps)} | {row.fluid_bps / 1e3:.1f} kb/s "
            f"| {played.mean_goodput_bps / 1e3:.1f} kb/s "
            f"| {played.information_bps / 1e3:.1f} kb/s | {100 * played.outage:.2f} % | {played.switches_per_hour:.1f} "
            f"| {row.timeouts:.0f} |"
        )
    return "\n".join(lines)


def said(rows: list[Row], beside: str) -> str:
    """Findings of the table of policies."""
    adaptive, ideal, tables, safest, best = rows
    settings = [row.played.meta["setting"].removesuffix(", 512 bytes") for row in (tables, safest, best)]
    robust = adaptive.goodput_bps["mean"] / safest.goodput_bps["mean"]
    text = paragraph(
        f"Fixed are {settings[0]}, {settings[1]} and {settings[2]}. Adapting delivers "
        f"{_change(adaptive.goodput_bps, best.goodput_bps)} than the setting that is the best of all day by the engine, "
        f"{_change(adaptive.goodput_bps, tables.goodput_bps)} than that which is by the table, and is out for "
        f"{adaptive.played.outage * 1440:.1f} instead of {best.played.outage * 1440:.0f} minutes of the "
        f"day; it delivers {robust:.1f} times what the most robust setting does.",
    )
    if ideal.goodput_bps["mean"] < adaptive.goodput_bps["mean"]:
        text += "\n\n" + paragraph(
            "The ideal choice is ideal by the table's model; the packet engine delivers "
            f"{_change(ideal.goodput_bps, adaptive.goodput_bps)} with it than with the adaptive one. {beside}",
        )
    return text


def said_late(rows: list[Row]) -> str:
    """Cost of a delay."""
    first, last = rows[0], rows[len(DELAYS_S) - 1]
    return paragraph(
        f"From {DELAYS_S[0]:g} to {DELAYS_S[-1]:g} s the outage goes from {first.played.outage * 1440:.1f} to "
        f"{last.played.outage * 1440:.1f} minutes of the day, and {_change(last.goodput_bps, first.goodput_bps)} is delivered. "
        f"Without hysteresis the modem switches {rows[-1].played.switches_per_hour:.1f} times per hour instead of "
        f"{first.played.switches_per_hour:.1f}.",
    )


def said_arq(arq: dict[str, dict[str, float]]) -> str:
    """Effect of adaptive lengths."""
    plain, acknowledged, genie = arq.values()
    return paragraph(
        f"Lengths by what was acknowledged deliver {_change(acknowledged, plain)} than 512 bytes, by the link's own error rate "
        f"{_change(genie, plain)}: with the table's settings the error rate is hardly ever one at which shorter frames are "
        "better.",
    )


def model_beside_engine(modem: Modem, study: Study, table: Table, ideal: Played) -> str:
    """Two settings at one C/N0, by model and engine: why the ideal of the model need not be that of the engine."""
    found = {}
    for setting in modem.settings():
        if setting.modulation == "8psk" and setting.code_name in COMPARED:
            one = point(modem, setting, COMPARED_DBHZ, share=SHARE)
            assert one is not None
            (judged,) = rated([one], name=study.goodput, flows=1, path=study.path)
            data = {**_plain_scenario(), "duration_s": 20_000, "runs": RUNS, "measure": {"warmup_s": 100}}
            data["link"] = {
                **data["link"], "rate_bps": one.information_bps, "channel": {"kind": "loss", "loss": one.loss},
            }  # fmt: skip
            (row,) = [row for row in farlink.run(data).summary() if row["flow"] == "bulk"]
            found[setting.code_name] = (one.loss, judged.goodput_bps, row["goodput_bps"])
    parts = [
        f"8psk {code} loses {loss:.1e} of the segments and is at {by_model / 1e3:.1f} kb/s by the model, "
        f"{_interval(by_engine)} by the engine"
        for code, (loss, by_model, by_engine) in found.items()
    ]
    fast = np.array([one.code_name == COMPARED[0] for one in ideal.settings])
    early = ideal.cn0_dbhz[(ideal.setting != SILENT) & fast[ideal.setting]].min()
    late = max(row.down_dbhz or 0.0 for row in table.rows)
    text = f"At {COMPARED_DBHZ:g} dBHz {'; '.join(parts)}. The ideal choice takes {COMPARED[0]} from {early:.1f} dBHz on,"
    return f"{text} the table, with its margin, from {late:g} dBHz on only."


def picture(played: Played) -> Figure:
    """C/N0, the setting in use and the rate over the day."""
    hours = played.step_s * np.arange(played.setting.size + 1) / 3600
    figure, (above, middle, below) = new_figure(height_in=6.6, rows=3, is_y_shared=False)
    above.plot(*thin(hours[:-1], played.cn0_dbhz, BUCKETS), color=COLOURS[0], linewidth=0.8)
    above.set(ylabel="C/N0 (dBHz)")
    begins = np.flatnonzero(np.concatenate(([True], np.diff(played.setting) != 0)))
    ends = np.append(begins[1:], played.setting.size)
    used = played.setting[begins]
    kinds = np.array([played.settings[at].modulation if at != SILENT else "nothing sent" for at in used])
    bits = np.array([played.settings[at].bits_per_symbol if at != SILENT else 0.0 for at in used])
    looks = zip(("bpsk", "qpsk", "8psk", "nothing sent"), (*COLOURS[1:4], INK), strict=True)
    for kind, colour in looks:
        here = kinds == kind
        label = kind.upper() if "psk" in kind else kind
        # Short stays are drawn a little longer, or nobody would see them.
        late = np.maximum(hours[ends[here]], hours[begins[here]] + 0.03)
        middle.hlines(bits[here], hours[begins[here]], late, color=colour, linewidth=2.5, label=label)
    middle.set(ylabel="information bits\nper symbol", ylim=(-0.15, 3.9))
    middle.set_yticks(range(4))
    middle.legend(loc="upper left", ncols=2, frameon=False)
    for values, colour, label in (
        (played.rate_bps, COLOURS[0], "information rate"),
        (played.goodput_bps, COLOURS[1], "goodput by the table"),
    ):
        below.plot(*thin(hours[:-1], values / 1e3, BUCKETS), color=colour, linewidth=0.8, label=label)
    below.set(ylabel="rate (kb/s)", xlabel="time (hours)", xlim=(0, 24), ylim=(0, 1.35e-3 * float(np.max(played.rate_bps))))
    below.set_xticks(range(0, 25, 3))
    below.legend(loc="upper left", ncols=2, frameon=False)
    return figure


def _change(of: dict[str, float], beside: dict[str, float]) -> str:
    change = 100 * (of["mean"] / beside["mean"] - 1)
    return f"{abs(change):.1f} % {'more' if change >= 0 else 'less'}"


def _interval(found: dict[str, float]) -> str:
    return f"{found['mean'] / 1e3:.1f} ± {(found['ci95'] or 0.0) / 1e3:.1f} kb/s"


if __name__ == "__main__":
    main()
