"""`farlink code`: error rates and properties of codes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farlink.cli.coding_options import CodeRate, Decision, Generators, Modulation, Seed, Threads, coding_table
from farlink.cli.messages import data, note, user_errors
from farlink.cli.progress import progress_bar

if TYPE_CHECKING:
    from farlink.channels.coding import ErrorRate

app = typer.Typer(no_args_is_help=True, help="Error rates of codes by simulation, and what is known of them.")


_BER_EXAMPLES = """
[bold]Examples[/bold]

farlink code ber --code "171,133" --ebn0-db 3,3.5,4 --plot ber.png

farlink code ber --code uncoded --modulation 16qam --decision hard --ebn0-db 8,10 --csv -

farlink code ber --code '{ kind = "reed-solomon", n = 255, k = 223 }' --decision hard --ebn0-db 6,6.5
"""

_SHOW_EXAMPLES = """
[bold]Example[/bold]

farlink code show --code "171,133" --rate 3/4 --ebn0-db 4,5
"""


@app.command(epilog=_BER_EXAMPLES)
def ber(
    code: Generators,
    ebn0_db: Annotated[str, typer.Option(metavar="DB,...", help="Values of Eb/N0, in dB, for example 3,4,5.")],
    rate: CodeRate = None,
    modulation: Modulation = "bpsk",
    decision: Decision = "soft",
    events: Annotated[str, typer.Option(metavar="N", help="Error events to see at each value.")] = "400",
    max_bits: Annotated[str, typer.Option(metavar="N", help="Information bits to decode at most, at each value.")] = "1e9",
    packet_bits: Annotated[str, typer.Option(metavar="N", help="Length of a packet, for the packet error rate.")] = "8000",
    seed: Seed = 1,
    threads: Threads = None,
    json: Annotated[str | None, typer.Option(metavar="FILE|-", help="Write the table as JSON; - is standard output.")] = None,
    csv: Annotated[str | None, typer.Option(metavar="FILE|-", help="Write the table as CSV; - is standard output.")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="PICTURE", help="Picture to write: .png, .svg or .pdf.")] = None,
) -> None:
    """Bit and packet error rates of a code, by simulation, with 95 % intervals."""
    with user_errors():
        from farlink.channels import coding
        from farlink.cli.coding_options import whole
        from farlink.destinations import check_outputs

        values = _numbers(ebn0_db)
        table = coding_table(code, rate, modulation, decision)
        effort = {
            "events": whole("--events", events, 1, 10**9),
            "max_bits": whole("--max-bits", max_bits, 1, 10**15),
            "packet_bits": whole("--packet-bits", packet_bits, 1, 10**9),
        }
        check_outputs([("--json", json, "JSON"), ("--csv", csv, "CSV"), ("--plot", plot, "picture")])
        found: list[ErrorRate] = []
        for value in values:
            with progress_bar(f"{coding.describe(table)} at {value:g} dB", "bits") as progress:
                one = coding.error_rate(table, value, seed=seed, threads=threads, progress=progress, **effort)
            if one.bits:
                found.append(one)
            if one.is_interrupted:
                note(f"interrupted: {len(found)} of {len(values)} values, the last with fewer events")
                break
        is_interrupted = len(found) < len(values) or found[-1].is_interrupted
        if "-" not in (json, csv):
            _print(coding.describe(table), found, seed)
        _write(table, found, seed, json=json, csv=csv)
        if plot is not None and found:
            _draw(coding.describe(table), found, plot)
        for one in found:
            if not one.is_reached and not one.is_interrupted:
                note(f"note: at {one.ebn0_db:g} dB {one.events} events in {one.bits:.3g} bits; raise --max-bits")
        if is_interrupted:
            raise typer.Exit(130)


@app.command("list")
def list_(
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Convolutional codes of the literature: generators, constraint length, rate, free distance, source."""
    with user_errors():
        import json as json_text

        from farlink import _core
        from farlink.text_table import table

        names = ("code", "constraint_length", "outputs", "free_distance", "source")
        rows = [dict(zip(names, known, strict=True)) for known in _core.known_codes()]
        if json:
            data(json_text.dumps(rows, indent=1) + "\n")
            return
        cells = [
            (code, f"{length}", f"1/{outputs}", f"{distance}", source)
            for code, length, outputs, distance, source in _core.known_codes()
        ]
        data(table(("code", "K", "rate", "d_free", "source"), cells, texts=("source",)) + "\n")


@app.command(epilog=_SHOW_EXAMPLES)
def show(
    code: Generators,
    rate: CodeRate = None,
    decision: Decision = "soft",
    terms: Annotated[int, typer.Option(help="Terms of the distance spectrum.", min=1, max=60)] = 8,
    ebn0_db: Annotated[
        str | None, typer.Option(metavar="DB,...", help="Values of Eb/N0 for the union bound, in dB.", show_default=False)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Rate, free distance and distance spectrum of a code, and the union bound on its bit error rate with BPSK."""
    with user_errors():
        import json as json_text

        from farlink.channels import coding

        table = coding_table(code, rate, "bpsk", decision)
        known = coding.spectrum(table, terms)
        bounds = {value: coding.union_bound(table, value) for value in (_numbers(ebn0_db) if ebn0_db is not None else [])}
        if json:
            content = {**known, "bound": [{"ebn0_db": value, "ber": bound} for value, bound in bounds.items()]}
            data(json_text.dumps(content, indent=1) + "\n")
            return
        lines = [
            coding.describe(table),
            f"K = {known['constraint_length']}, rate {known['rate']:.4g}, free distance {known['free_distance']}",
            f"for each {known['period_bits']} data bits:" if known["period_bits"] > 1 else "for each data bit:",
            f"{'distance':>8}  {'error events':>14}  {'wrong data bits':>16}",
        ]
        rows = zip(known["distance"], known["events"], known["data_bits"], strict=True)
        lines += [f"{distance:>8}  {events:>14,}  {bits:>16,}" for distance, events, bits in rows]
        if bounds:
            lines.append(f"{'Eb/N0':>8}  {'union bound on the BER':>22}")
            lines += [f"{value:>5g} dB  {bound:>22.3e}" for value, bound in bounds.items() if bound is not None]
        data("\n".join(lines) + "\n")


def _rows(found: list[ErrorRate]) -> list[dict[str, Any]]:
    return [
        {
            "ebn0_db": one.ebn0_db,
            "ber": one.ber.value,
            "ber_low": one.ber.low,
            "ber_high": one.ber.high,
            "per": one.per.value,
            "per_low": one.per.low,
            "per_high": one.per.high,
            "packet_bits": one.packet_bits,
            "bits": one.bits,
            "wrong_bits": one.wrong_bits,
            "events": one.events,
        }
        for one in found
    ]


def _print(title: str, found: list[ErrorRate], seed: int) -> None:
    lines = [
        title,
        f"{'Eb/N0':>8}  {'BER':>9}  {'95 % interval':>20}  {'PER':>9}  {'95 % interval':>20}  {'events':>7}  {'bits':>8}",
    ]
    for one in found:
        ber_ends, per_ends = (f"{rate.low:.2e} to {rate.high:.2e}" for rate in (one.ber, one.per))
        lines.append(
            f"{one.ebn0_db:>5g} dB  {one.ber.value:9.3e}  {ber_ends:>20}  {one.per.value:9.3e}  {per_ends:>20}  "
            f"{one.events:>7}  {one.bits:8.2e}"
        )
    lines.append(f"packets of {found[0].packet_bits} bits; seed {seed}" if found else "nothing was decoded")
    data("\n".join(lines) + "\n")


def _write(table: dict[str, Any], found: list[ErrorRate], seed: int, *, json: str | None, csv: str | None) -> None:
    import csv as csv_text
    import json as json_text

    from farlink import __version__
    from farlink.output import whole_file

    rows = _rows(found)
    content = {"farlink": __version__, "coding": table, "seed": seed, "rows": rows}
    page = io.StringIO()
    if rows:
        writer = csv_text.DictWriter(page, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    for option, name, text in (
        ("json", json, json_text.dumps(content, allow_nan=False, indent=1) + "\n"),
        ("csv", csv, page.getvalue()),
    ):
        if name == "-":
            data(text)
        elif name:
            with whole_file(name) as temporary:
                temporary.write_text(text, encoding="utf-8")
            note(f"{option}: {name}")


def _draw(title: str, found: list[ErrorRate], path: Path) -> None:
    from farlink.output import whole_file
    from farlink.plot.error_rate import error_rate

    points = [(one.ebn0_db, one.ber.value, one.ber.low, one.ber.high) for one in found]
    packets = [(one.ebn0_db, one.per.value, one.per.low, one.per.high) for one in found]
    figure = error_rate({"bit errors": points, f"packets of {found[0].packet_bits} bits": packets}, title=title)
    with whole_file(path) as temporary:
        figure.savefig(temporary, format=path.suffix.removeprefix("."), dpi=150)
    note(f"picture: {path}")


def _numbers(text: str) -> list[float]:
    from farlink.errors import FarlinkError

    try:
        return [float(one) for one in text.split(",")]
    except ValueError as error:
        raise FarlinkError(f"--ebn0-db {text}: not numbers with commas between them", "for example: --ebn0-db 3,4,5") from error
