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

sudo farlink bundle check bundle.toml --install

farlink bundle check bundle.toml --json | jq '.mistakes[].message'
"""


def check(
    config: Annotated[Path, typer.Argument(metavar="FILE", help="The bundle, a TOML file.")],
    json: Annotated[bool, typer.Option("--json", help="Write what is found as JSON.")] = False,
    show_options: Annotated[bool, typer.Option("--show-options", help="Write what pppd, or farlink's own PPP, gets.")] = False,
    install: Annotated[
        bool, typer.Option("--install", help="As root: write into /etc/ppp what pppd needs of an operator who is not root.")
    ] = False,
) -> None:
    """Name every mistake of FILE with its line and column; exit with 2 if there is one.

    What this machine and this user lack to operate it is said as a note, with the remedy.
    """
    with user_errors():
        from farlink.errors import ArgumentError
        from farlink.operator.config import check as look_through
        from farlink.operator.core_dumps import forbid_core_dumps

        forbid_core_dumps()
        if json and show_options:
            raise ArgumentError("--json and --show-options both want standard output", "give one of them")
        checked = look_through(config, needs_ports=not install)
        if json:
            _write_json(config, checked)
        elif checked.bundle is not None:
            data(_shown(checked.bundle))
            if show_options:
                for name, text in _options(config, checked.bundle).items():
                    data(f"\n== {name} ==\n{text}")
        if checked.bundle is None:
            _refuse(config, checked, is_told=json)
        if install:
            _install(config, checked)
        for missing in _missing_here(config, checked.bundle, has_urls=bool(checked.secrets.alert_urls)):
            note(f"note: {missing}")


def _options(config: Path, bundle: Bundle) -> dict[str, str]:
    """Name -> what the back end gets."""
    from farlink.operator.backend.of_bundle import folder
    from farlink.operator.backend.own_ppp_config import config_text
    from farlink.operator.pppd import Pppd

    if bundle.back_end == "farlink" and bundle.ppp_lines:
        name = f"{bundle.name}.ppp.toml"
        return {name: config_text(bundle, folder() / f"{bundle.name}.ppp.secrets.toml")}
    return Pppd(Path("/run/farlink"), profiles_folder=config.parent).files(bundle)


def _shown(bundle: Bundle) -> str:
    from farlink.operator.config.kinds import KINDS
    from farlink.text_table import table

    rows = [
        (
            *(line.name, line.kind, line.role, line.number or "-", KINDS[line.kind].device(line), line.profile or "-"),
            f"{line.rate_bps:g}" if line in bundle.ppp_lines else "-",
        )
        for line in bundle.lines
    ]
    head = ("line", "kind", "role", "number", "device", "profile", "bit/s")
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
        "notes": _missing_here(config, checked.bundle, has_urls=bool(checked.secrets.alert_urls)),
    }
    data(json_text.dumps(found, indent=1, default=str) + "\n")


def _install(config: Path, checked: Checked) -> None:
    import os

    from farlink.errors import ArgumentError
    from farlink.operator.pppd import Pppd

    bundle = checked.bundle
    if bundle is None or bundle.back_end != "pppd":
        raise ArgumentError("--install is for bundles whose back_end is pppd", "leave it out")
    if os.geteuid() != 0:
        raise ArgumentError(
            "--install writes into /etc/ppp, which root alone may", f"sudo farlink bundle check {config} --install"
        )
    for path in Pppd(Path("/run/farlink"), profiles_folder=config.parent).install(bundle, checked.secrets):
        note(f"written: {path}")


def _missing_here(config: Path, bundle: Bundle | None, *, has_urls: bool) -> list[str]:
    """Needs that this machine or this user lacks: the file is right all the same."""
    import os
    from importlib.util import find_spec

    from farlink.operator.backend.of_bundle import folder
    from farlink.operator.backend.own_ppp import needs_of_own_ppp
    from farlink.operator.config.kinds import KINDS
    from farlink.operator.pppd import Need, Pppd, needs_of

    if bundle is None:
        return []
    found = []
    where = bundle.journal.absolute().parent
    if not os.access(where, os.W_OK):
        found.append(Need(f"this user may not write the journal in {where}", "name another place with journal, or chown it"))
    if bundle.back_end == "pppd" and bundle.ppp_lines:
        found += needs_of(bundle, Pppd(folder(), profiles_folder=config.parent))
    if bundle.back_end == "farlink" and bundle.ppp_lines:
        found += needs_of_own_ppp()
    if has_urls and find_spec("apprise") is None:
        found.append(Need("alerts go to URLs by Apprise, which is not installed", "pip install 'farlink[alerts]'"))
    of_lines = [f"{line.name}: {said}" for line in bundle.lines for said in KINDS[line.kind].notes(line)]
    return [str(one).replace(" FILE ", f" {config} ") for one in found] + of_lines
