"""The page: findings, table, figures, one run in detail, and everything needed to run it again."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from farlink import units
from farlink.build import SHOWN
from farlink.engines import trace_run
from farlink.intervals import half_width, interval_words
from farlink.output import whole_file
from farlink.plot.against_grid import against_grid, main_path, shown_flows
from farlink.plot.delay import delay
from farlink.plot.goodput import goodput
from farlink.plot.round_trip import round_trip
from farlink.plot.sequence import sequence
from farlink.plot.style import least_width_px, to_svg
from farlink.plot.window import window
from farlink.report.example import compared_points, recovery_span_s, telling_point, window_span_s
from farlink.result import Result
from farlink.series import Series

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# Three figures each: more flows are named only.
_MOST_FLOWS = 8


def write_report(result: Result, path: str | Path, *, command: str | None = None) -> None:
    """Write the report of a result as one HTML file that needs no network.

    Parameters
    ----------
    result
        What to report.
    path
        The file; it appears whole or not at all.
    command
        The command that made the result, to print in the report.
    """
    text = render_report(result, command=command)
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def render_report(result: Result, *, command: str | None = None) -> str:
    """The report's HTML; see `write_report`."""
    overview, full = _overview_table(result), _full_table(result)
    return filled(
        "page.html",
        title=_text(result.scenario.title),
        lead=_lead(result),
        facts="".join(f"<div><dt>{_text(k)}</dt><dd>{_text(v)}</dd></div>" for k, v in _facts(result)),
        figures="".join(_grid_figures(result)),
        table=overview or full,
        details=_details("Delay, losses and timeouts", full) if overview else "",
        run="".join(_run_figures(result)),
        scenario=_text(result.scenario.to_toml()),
        command=_text(command or "farlink.run(...)"),
        version=_text(result.version),
        build=_text(result.build[:SHOWN]),
        seed=result.seed,
    )


def filled(template: str, **parts: object) -> str:
    """A page of this package with its parts filled in, and the common style."""
    folder = resources.files("farlink.report")
    names = (template, "frame.html", "style.css")
    content, frame, style = (folder.joinpath(name).read_text(encoding="utf-8") for name in names)
    return Template(frame).substitute(parts, content=Template(content).substitute(parts).removesuffix("\n"), style=style)


def _lead(result: Result) -> str:
    """A sentence that describes the study."""
    entries = shown_flows(result.summary())
    runs = {entry["runs"] for entry in entries}
    run_words = ("1 run" if runs == {1} else f"{runs.pop()} runs") if len(runs) == 1 else f"{min(runs)} to {max(runs)} runs"
    names = units.labels(result.grid_paths)
    axes = [f"{len({str(p.get(path)) for p in result.grid})} values of {names[path]}" for path in result.grid_paths]
    grid = f" over {' and '.join(axes)}" if axes else ""
    run_words += " of each" if axes else ""
    note = " The run was interrupted: only finished runs are shown." if result.interrupted else ""
    for kind, sentences in (
        ("Bundle", result.bundles()),
        ("Stalled", result.stalls()),
        ("Unfinished", result.unfinished()),
    ):
        if sentences:
            more = f" and {len(sentences) - 1} more" if len(sentences) > 1 else ""
            note += f" {kind}: {sentences[0]}{more}."
    if min(entry["runs"] for entry in entries) > 1:
        values = f"Values are means, ± the half-width of the {result.intervals}."
    elif max(entry["runs"] for entry in entries) == 1:
        values = "Values are those of one run: they have no interval, and another seed gives others."
    else:
        values = f"Values are means, ± the half-width of the {result.intervals}; one run has none."
    return _text(f"Packet-level simulation{grid}; {run_words}. {values}{note}")


def _facts(result: Result) -> Iterator[tuple[str, str]]:
    scenario = result.scenario.normalised()
    link = scenario.get("link")
    hops = [link] if isinstance(link, dict) else [scenario["hop"][name] for name in scenario.get("path", [])]
    rates: list[Any] = [hop.get("rate_bps") for hop in hops]
    delays: list[Any] = [hop.get("delay_s") for hop in hops]
    is_rate_known = all(isinstance(rate, int | float) for rate in rates)
    is_delay_known = all(isinstance(value, int | float) for value in delays)
    yield "bottleneck", units.show(min(rates), "rate_bps") if is_rate_known else "measured trace"
    yield "one-way delay", units.show(sum(delays), "delay_s") if is_delay_known else "measured trace"
    if is_rate_known and is_delay_known:
        yield "in flight to fill it", units.show(float(f"{min(rates) * 2 * sum(delays) / 8:.3g}"), "bytes_bytes")
    channels = {str((hop.get("channel") or {}).get("kind", "none")) for hop in hops}
    yield "channel", ", ".join(sorted(channels - {"none"})) or "no errors"
    if scenario.get("duration_s"):
        yield "simulated time", units.show(scenario["duration_s"], "duration_s")
    yield "runs", str(result.finished_runs)


def _grid_figures(result: Result) -> Iterator[str]:
    summary, paths = result.summary(), result.grid_paths
    x_path = main_path(summary, paths)
    against = f" against {units.label(x_path)}" if x_path else ""
    apart = " Points of different lines are set a little apart." if x_path else ""
    is_one_run = all(entry["runs"] == 1 for entry in summary)
    intervals = "; one run of each, so no intervals" if is_one_run else f", with {interval_words(result.levels, several=True)}"
    figure = goodput(summary, paths)
    low = " The axis is logarithmic; a hollow triangle at its foot is less." if figure.axes[0].get_yscale() == "log" else ""
    yield figure_element(
        figure, "goodput", f"Goodput{against}", f"Payload delivered in order, per second{intervals}.{low}{apart}"
    )
    if any(entry["transfer_time_mean_s"]["mean"] for entry in summary):
        yield figure_element(
            against_grid(summary, paths, "transfer_time_mean_s"),
            "transfer",
            f"Transfer time{against}",
            "Mean time from the moment a transfer is asked for to its last byte.",
        )
    if any(entry["delay_mean_s"]["mean"] for entry in summary):
        yield figure_element(
            delay(summary, paths), "delay", f"Delay{against}",
            "Mean time from a segment’s first transmission to its delivery in order, waiting for repeats included.",
        )  # fmt: skip


def _run_figures(result: Result) -> Iterator[str]:
    """The section of one run, with its heading and a part for each flow; nothing if no transport has a window."""
    point = telling_point(result)
    points = compared_points(result.points, point)
    runs = [trace_run(result.scenario, point=i) for i in points]
    shown = runs[points.index(point)]
    flows = [flow for flow in shown.flows() if len(shown.select("cwnd", flow)[0])]
    if not flows:
        return
    place = shown.name.removesuffix("run 0").removesuffix(", ")
    yield f"<h2>One run in detail</h2>\n<p>The first run{_text(f' at {place}' if place else '')}, packet by packet.</p>"
    known = dict.fromkeys([*shown.flows(), *(entry["flow"] for entry in result.summary() if entry["flow"] != "all")])
    windowless, more = [flow for flow in known if flow not in flows], flows[_MOST_FLOWS:]
    if windowless:
        yield f"<p>Without a window to draw: {_text(', '.join(windowless))}.</p>"
    if more:
        yield f"<p>Not drawn, to keep the page small: {_text(', '.join(more))}.</p>"
    for number, flow in enumerate(flows[:_MOST_FLOWS]):
        yield from _flow_figures([run for run in runs if flow in run.flows()], shown, flow, "" if number == 0 else f"-{number}")


def _flow_figures(runs: list[Series], shown: Series, flow: str, suffix: str) -> Iterator[str]:
    """Window, sequence and round trip of a flow; the suffix makes the identifiers of its figures unique."""
    is_compared = len(runs) > 1
    yield f"<h3>Flow {_text(flow)}</h3>"
    yield figure_element(
        window(runs, flow, names=_differences(runs) if is_compared else None, span_s=window_span_s(runs, flow)),
        f"window{suffix}", f"Congestion window of {flow}" + (", each version" if is_compared else ""),
        "What the sender allows itself to have in flight, and the threshold between slow start and congestion avoidance. "
        "Ticks on the time axis are segments sent again.",
    )  # fmt: skip
    yield figure_element(
        sequence(shown, flow, span_s=recovery_span_s(shown, flow)), f"sequence{suffix}",
        f"Time and sequence of {flow}: {shown.name}",
        "A few round trips around the first recovery. The slope is the rate; the distance from a dot to the green line on its "
        "right is the round trip; a flat green line is a sender that waits for a repeat.",
    )  # fmt: skip
    if len(shown.select("rtt", flow)[0]):
        yield figure_element(
            round_trip(shown, flow, span_s=window_span_s([shown], flow)), f"roundtrip{suffix}",
            f"Round-trip time and bytes in flight of {flow}", "The round trip as the sender measures it, queues included.",
        )  # fmt: skip


def _differences(runs: list[Series]) -> list[str]:
    """A name for each run: the grid values in which they differ."""
    varied = [path for path in runs[0].values if len({str(run.values[path]) for run in runs}) > 1]
    return [", ".join(units.show(run.values[path], path) for path in varied) for run in runs]


def _overview_table(result: Result) -> str | None:
    """Goodput with two keys of the grid as rows and columns; None if the grid has another shape."""
    paths = result.grid_paths
    entries = [entry for entry in result.summary() if entry["flow"] == "all"]
    if len(paths) != 2 or len({entry["engine"] for entry in entries}) != 1:
        return None
    row_path, column_path = paths
    rows = list(dict.fromkeys(str(entry[row_path]) for entry in entries))
    columns = list(dict.fromkeys(str(entry[column_path]) for entry in entries))
    if len(columns) > 8 or len(rows) * len(columns) != len(entries):
        return None
    cells = {(str(entry[row_path]), str(entry[column_path])): entry for entry in entries}
    scale = units.scale_for("goodput_bps", [entry["goodput_bps"]["mean"] or 0.0 for entry in entries])
    heading, row_names = _row_names(row_path, [entry[row_path] for entry in entries], units.labels(paths)[row_path])
    shown = row_names | {str(entry[column_path]): units.show(entry[column_path], column_path) for entry in entries}
    head = "".join(f'<th class="n">{_text(shown[column])}</th>' for column in columns)
    lines = []
    for row in rows:
        found = [cells[row, column]["goodput_bps"] for column in columns]
        best = best_of([(goodput["mean"], half_width(goodput)) for goodput in found])
        line = f"<th>{_text(shown[row])}</th>"
        for place, entry in enumerate(found):
            mean, ci = entry["mean"], half_width(entry)
            text = scale.interval(float("nan") if mean is None else mean, float("nan") if ci is None else ci)
            mark = " best" if place in best else ""
            line += f'<td class="n{mark}">{_text(text)}</td>'
        lines.append(f"<tr>{line}</tr>")
    caption = f"Goodput in {scale.unit}"
    if any('best"' in line for line in lines):
        caption += "; in bold the best of a row, where the intervals tell it from most of the others"
    return (
        f"<table><caption>{_text(caption)}</caption><thead><tr><th>{_text(heading)}</th>{head}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def best_of(goodputs: Sequence[tuple[float | None, float | None]]) -> set[int]:
    """Places of the best of a row of means and half-widths, and of those that do not differ from it significantly.

    Empty where these are more than a third of the row, and more than one: such marks tell nothing. A value without an interval
    differs from nothing.

    Examples
    --------
    >>> best_of([(10.0, 1.0), (20.0, 1.0), (12.0, 2.0)])
    {1}
    >>> best_of([(10.0, 1.0), (10.5, 1.0), (2.0, 1.0)])
    set()
    """
    known = [(mean, ci, place) for place, (mean, ci) in enumerate(goodputs) if mean is not None]
    if len(known) < 2:
        return set()
    top, top_ci, _ = max(known)
    if top_ci is None:
        return set()
    # The half-width of a difference of two independent means.
    alike = {place for mean, ci, place in known if ci is None or top - mean <= math.hypot(top_ci, ci)}
    return alike if len(alike) <= max(1, len(goodputs) // 3) else set()


def _row_names(path: str, values: list[Any], name: str) -> tuple[str, dict[str, str]]:
    """Heading of the rows with their common unit, and a name for each."""
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return name, {str(value): units.show(value, path) for value in values}
    scale = units.scale_for(path, values)
    return (f"{name} ({scale.unit})" if scale.unit else name), {str(value): scale.exact(value) for value in values}


def _full_table(result: Result) -> str:
    headings, body = result.cells()
    classes = [' class="n"' if is_number else "" for _, is_number in headings]
    head = "".join(f"<th{c}>{_text(h).replace(chr(10), '<br>')}</th>" for c, (h, _) in zip(classes, headings, strict=True))
    lines = (
        "<tr>" + "".join(f"<td{c}>{_text(cell)}</td>" for c, cell in zip(classes, row, strict=True)) + "</tr>" for row in body
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _details(summary: str, content: str) -> str:
    return f'<details><summary>{_text(summary)}</summary><div class="scroll">{content}</div></details>'


def figure_element(figure: Figure, name: str, heading: str, caption: str) -> str:
    """A figure with heading and caption, as HTML; `name` distinguishes its identifiers from those of others on the page."""
    # Narrower, its text would be too small: it scrolls.
    svg = to_svg(figure, name)
    look = f'aria-label="{_text(heading)}" style="min-width: {least_width_px(figure, svg)}px"'
    svg = svg.replace("<svg ", f"<svg {look} ", 1)
    return f'<figure><h3>{_text(heading)}</h3><div class="scroll">{svg}</div><figcaption>{_text(caption)}</figcaption></figure>'


def _text(text: str) -> str:
    return html.escape(str(text))
