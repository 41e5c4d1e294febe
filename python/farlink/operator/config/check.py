"""Every mistake of a ``bundle.toml`` at once, each with its line and column."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from farlink.errors import OperatorError
from farlink.operator.config import alert_rules, budget_rules, rules, secrets_file
from farlink.operator.config import alerts as alert_keys
from farlink.operator.config.alerts import AlertRules
from farlink.operator.config.broken import Broken
from farlink.operator.config.bundle import (
    BUDGET_KEYS,
    BUNDLE_BUDGET_KEYS,
    LIMIT_KEYS,
    LINE_KEYS,
    PPP_KEYS,
    PRESETS,
    TOP_KEYS,
    Budget,
    Bundle,
    BundleBudget,
    Limits,
    Line,
    Ppp,
)
from farlink.operator.config.kinds import KINDS, Kind, Row
from farlink.operator.config.secrets_file import Secrets
from farlink.operator.config.toml_places import Path as KeyPath
from farlink.operator.config.toml_places import Place, Places, places
from farlink.operator.tables import Key, mistakes_of, name_of
from farlink.untrusted import printable, read_text, toml_tables


@dataclass(frozen=True, order=True)
class Mistake:
    """A fault, its line in the file (from 1), and the remedy."""

    line: int
    column: int
    message: str
    remedy: str


@dataclass(frozen=True)
class Checked:
    """A file that was looked through.

    Attributes
    ----------
    mistakes
        In the order of their places.
    bundle
        What it says; None if there is a mistake.
    secrets
        Those of the bundle.
    """

    mistakes: tuple[Mistake, ...]
    bundle: Bundle | None
    secrets: Secrets


def load(path: str | Path, *, needs_ports: bool = True) -> tuple[Bundle, Secrets]:
    """The bundle of a file, and its secrets.

    Parameters
    ----------
    path
        A ``bundle.toml``.
    needs_ports
        Whether a port that is missing, or may not be opened, is a mistake.

    Raises
    ------
    OperatorError
        If the file has mistakes: the first is named, and how many there are.
    """
    checked = check(path, needs_ports=needs_ports)
    if checked.bundle is None:
        first = checked.mistakes[0]
        more = f" (and {len(checked.mistakes) - 1} more)" if len(checked.mistakes) > 1 else ""
        message = f"{path}, line {first.line}, column {first.column}: {first.message}{more}"
        raise OperatorError(message, f"{first.remedy}; `farlink bundle check` names all")
    return checked.bundle, checked.secrets


def check(path: str | Path, *, needs_ports: bool = True) -> Checked:
    """Look through a file.

    Parameters
    ----------
    path
        A ``bundle.toml``. Paths in it are relative to its folder.
    needs_ports
        Whether a port that is missing, or may not be opened, is a mistake.

    Raises
    ------
    OperatorError
        If it cannot be read.
    """
    path = Path(path)
    try:
        text = read_text(path, OperatorError)
    except OSError as error:
        raise OperatorError(f"cannot read {path}: {error.strerror}", "give the path of a bundle.toml") from error
    except UnicodeDecodeError as error:
        raise OperatorError(f"{path} is not a text file in UTF-8", "save it as UTF-8") from error
    try:
        tables = toml_tables(text)
    except ValueError as error:
        place = re.search(r"at line (\d+)(?:, column (\d+))?", str(error))
        line, column = (int(place[1]), int(place[2] or 1)) if place else (text.count("\n") + 1, 1)
        said = re.sub(r" \(at (?:line.*|end of document)\)", "", str(error))
        mistake = Mistake(line, column, f"not valid TOML: {printable(said)}", "strings need quotes, keys need '='")
        return Checked((mistake,), None, Secrets())
    return _Check(path, tables, places(text.replace("\r\n", "\n")), needs_ports=needs_ports).checked()


class _Check:
    def __init__(self, path: Path, tables: dict[str, Any], places: Places, *, needs_ports: bool) -> None:
        self._path = path
        self._needs_ports = needs_ports
        self._tables = tables
        self._places = places
        self._found: list[Mistake] = []

    def checked(self) -> Checked:
        top = self._valid(self._tables, TOP_KEYS, ())
        preset = PRESETS[top.get("preset", "farlink")]
        parts = {
            name: {**preset.get(name, {}), **self._valid(top.get(name, {}), keys, (name,))}
            for name, keys in (
                ("ppp", PPP_KEYS),
                ("limits", LIMIT_KEYS),
                ("budget", BUDGET_KEYS),
                ("bundle_budget", BUNDLE_BUDGET_KEYS),
            )
        }
        ppp, limits, budget = Ppp(**parts["ppp"]), Limits(**parts["limits"]), Budget(**parts["budget"])
        kinds = [_kind(row) for row in top.get("line", [])]
        rows = [self._valid(row, _keys(kinds[at]), ("line", at)) for at, row in enumerate(top.get("line", []))]
        own = [self._valid(row.get("budget", {}), BUDGET_KEYS, ("line", at, "budget")) for at, row in enumerate(rows)]
        dialled = [row for kind, row in zip(kinds, rows, strict=True) if kind and kind.has_ppp]
        self._break(rules.of_ppp(ppp, dialled))
        self._break(rules.of_back_end(top.get("back_end", "pppd"), top.get("user", ""), ppp, dialled))
        if rows:
            self._break(rules.of_limits(limits, top.get("use"), len(rows)))
            self._break(rules.of_primary(top.get("primary", "passes-on"), top.get("use", len(rows)), rows))
            self._break(budget_rules.of_budgets(parts["budget"], own, parts["bundle_budget"], rows))
        if "hook" in top:
            self._break(rules.of_hook(self._path.parent / top["hook"]))
        given = top.get("line", [])
        seen = [Row(at, row, given[at], self._path.parent, self._needs_ports) for at, row in enumerate(rows)]
        self._break(rules.of_lines([(kind, row) for kind, row in zip(kinds, seen, strict=True) if kind is not None]))
        secrets = self._secrets(top, [row for kind, row in zip(kinds, rows, strict=True) if not kind or kind.has_pin])
        alerts = self._alerts(top, rows, secrets)
        if self._found:
            return Checked(tuple(sorted(set(self._found))), None, secrets)
        bundle = Bundle(
            name=top["name"],
            lines=tuple(self._line(*one, parts["budget"]) for one in zip(kinds, rows, own, strict=True)),
            use=top.get("use", len(rows)),
            primary=top.get("primary", "passes-on"),
            user=top.get("user", ""),
            secrets=self._path.parent / top["secrets"] if "secrets" in top else None,
            journal=self._path.parent / top.get("journal", f"{top['name']}.journal"),
            back_end=top.get("back_end", "pppd"),
            hook=self._path.parent / top["hook"] if "hook" in top else None,
            keep_days=top.get("keep_days", 366.0),
            ppp=ppp,
            limits=limits,
            budget=budget,
            bundle_budget=BundleBudget(**parts["bundle_budget"]),
            alerts=alerts,
        )
        return Checked((), bundle, secrets)

    def _line(self, kind: Kind | None, row: dict[str, Any], own: dict[str, Any], common: dict[str, Any]) -> Line:
        budget = Budget(**{**common, **own}) if "budget" in row else None
        return Line(**{**(kind.settings(row) if kind else row), "budget": budget})

    def _valid(self, table: Mapping[str, Any], keys: Mapping[str, Key], path: KeyPath) -> dict[str, Any]:
        """The valid values of a table; mistakes of the others are noted."""
        shown = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
        for one in mistakes_of(table, keys, inside=f"{shown}." if shown else ""):
            at = (*path, one.key)
            place = (
                self._places.key(path) if not one.key else self._places.value(at) if one.key in keys else self._places.key(at)
            )
            self._note(place, one.message, one.remedy)
        return {key: value for key, value in table.items() if key in keys and keys[key].is_allowed(value)}

    def _break(self, broken: Iterable[Broken]) -> None:
        for one in broken:
            is_table = isinstance(one.path[-1], int)
            path = one.other if one.path not in self._places.values and one.other else one.path
            self._note(self._places.key(path) if is_table else self._places.value(path), one.message, one.remedy)

    def _alerts(self, top: Mapping[str, Any], rows: list[dict[str, Any]], secrets: Secrets) -> AlertRules:
        given = self._valid(top.get("alerts", {}), alert_keys.KEYS, ("alerts",))
        standby = None
        if "standby" in given:
            standby = self._valid(given["standby"], alert_rules.STANDBY_KEYS, ("alerts", "standby"))
        folder = self._path.parent
        alerts = alert_rules.read(given, standby, folder)
        has_urls = bool(secrets.alert_urls)
        self._break(alert_rules.of_alerts(alerts, rows, folder, has_urls=has_urls, needs_ports=self._needs_ports))
        return alerts

    def _secrets(self, top: Mapping[str, Any], rows: list[dict[str, Any]]) -> Secrets:
        secrets = Secrets()
        names = [row["name"] for row in rows if "name" in row] + [alert_keys.STANDBY]
        table = top.get("alerts", {})
        urls_from = table.get("urls_from")
        # Both may be one file, which is read once.
        files = {("secrets",): top.get("secrets"), ("alerts", "urls_from"): urls_from if isinstance(urls_from, str) else None}
        for where, name in files.items():
            if name is None or (where != ("secrets",) and name == top.get("secrets")):
                continue
            found, mistakes = secrets_file.read(self._path.parent / name, names)
            secrets = found if where == ("secrets",) else replace(secrets, alert_urls=found.alert_urls)
            for one in mistakes:
                self._note(self._places.value(where), one.message, one.remedy)
            if mistakes:
                return secrets
        if "user" in top and not secrets.password:
            remedy = 'write password = "..." into the file that `secrets` names'
            self._note(self._places.value(("user",)), "user: there is no password for it", remedy)
        return secrets

    def _note(self, place: Place, message: str, remedy: str) -> None:
        self._found.append(Mistake(*place, message, remedy))


def _kind(row: Mapping[str, Any]) -> Kind | None:
    name = row.get("kind", "at")
    return KINDS.get(name) if isinstance(name, str) else None


def _keys(kind: Kind | None) -> dict[str, Key]:
    """Keys of a line. Of one whose kind is a mistake, those of all kinds are known, and none is missing."""
    if kind is not None:
        own = dict(kind.keys)
    else:
        own = {name: replace(key, is_needed=False) for one in KINDS.values() for name, key in one.keys.items()}
    return {**LINE_KEYS, **own, "kind": name_of(KINDS)}
