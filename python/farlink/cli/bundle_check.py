"""`farlink bundle check`: every mistake of a bundle.toml, and the options that pppd gets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farlink.cli.messages import data, note, refused, user_errors

if TYPE_CHECKING:
    from farlink.operator.config import Bundle, Checked

EXAMPLES = """
[bold]Examples[/bold]

farlink bundle check bundle.toml

farlink bundle check bundle.toml --show-options

farlink bundle check bundle.toml --json | jq '.mistakes[].message'
"""


def check(
    config: Annotated[Path, typer.Argument(metavar="FILE", help="The bundle, a TOML file.")],
    json: Annotated[bool, typer.Option("--json", help="Write what is found as JSON.")] = False,
    show_options: Annotated[bool, typer.Option("--show-options", help="Write the options of pppd for each line.")] = False,
) -> None:
    """Name every mistake of FILE with its line and column; exit with 2 if there is one."""
    with user_errors():
        from farlink.errors import ArgumentError
        from farlink.operator.config import check as look_through
        from farlink.operator.pppd import Pppd

        if json and show_options:
            raise ArgumentError("--json and --show-options both want standard output", "give one of them")
        checked = look_through(config)
        if json:
            _write_json(config, checked)
        elif checked.bundle is not None:
            data(_shown(checked.bundle))
            if show_options:
                for name, text in Pppd(Path("/run/farlink"), profiles_folder=config.parent).files(checked.bundle).items():
                    data(f"\n== {name} ==\n{text}")
        if checked.bundle is None:
            _refuse(config, checked, is_told=json)
        for missing in _missing_here(checked.bundle):
            note(f"note: {missing}")


def _shown(bundle: Bundle) -> str:
    from farlink.text_table import table

    rows = [(line.name, line.role, line.number or "-", line.port, line.profile, f"{line.rate_bps:g}") for line in bundle.lines]
    head = ("line", "role", "number", "port", "profile", "bit/s")
    return f"Bundle {bundle.name}: {bundle.use} of {len(rows)} lines\n" + table(head, rows) + "\n"


def _refuse(config: Path, checked: Checked, *, is_told: bool) -> None:
    from farlink.errors import OperatorError

    if not is_told:
        for one in checked.mistakes:
            refused(OperatorError(f"{config}, line {one.line}, column {one.column}: {one.message}", one.remedy))
    raise typer.Exit(2)


def _write_json(config: Path, checked: Checked) -> None:
    import json as json_text
    from dataclasses import asdict

    from farlink import __version__

    found = {
        "farlink": __version__,
        "file": str(config),
        "mistakes": [asdict(one) for one in checked.mistakes],
        "bundle": None if checked.bundle is None else asdict(checked.bundle),
        "notes": _missing_here(checked.bundle),
    }
    data(json_text.dumps(found, indent=1, default=str) + "\n")


def _missing_here(bundle: Bundle | None) -> list[str]:
    """What this machine lacks: the file is right all the same."""
    import shutil

    if bundle is not None and bundle.back_end != "pppd":
        return []
    found = []
    if shutil.which("pppd", path="/usr/sbin:/sbin:/usr/bin:/usr/local/sbin") is None:
        found.append("pppd is not installed here: apt install ppp")
    if not Path("/dev/ppp").exists():
        found.append(
            "this kernel has no PPP (/dev/ppp is missing), so pppd cannot start: modprobe ppp_generic, or another kernel"
        )
    return found
