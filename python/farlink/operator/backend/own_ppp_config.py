"""The configuration of farlink's own PPP, compiled from a bundle: what `farlink bundle ppp` would read."""

from __future__ import annotations

import json
from pathlib import Path

from farlink.operator.config.bundle import Bundle
from farlink.operator.config.secrets_file import Secrets

_LONGEST_DEVICE = 15


def device_of(bundle: Bundle) -> str:
    """The TUN device of a bundle.

    Examples
    --------
    >>> from farlink.operator.config.bundle import Line
    >>> device_of(Bundle("greenland-2005", (Line("a"),), 1))
    'fl-greenland-20'
    """
    return f"fl-{bundle.name}"[:_LONGEST_DEVICE]


def config_text(bundle: Bundle, secrets: Path) -> str:
    """The configuration; `secrets` is the file of `secrets_text`."""
    ppp = bundle.ppp
    rows = [f"# {bundle.name}, compiled by farlink: changes are lost", f"name = {_text(_name_of(bundle))}"]
    if bundle.user:
        rows.append(f"secrets = {_text(str(secrets))}")
    # The answering end asks who calls; the dialling one says it.
    rows.append(f"require = {json.dumps(['chap'] if bundle.user and _answers(bundle) else [])}")
    rows.append(f"device = {_text(device_of(bundle))}")
    rows += [f"{key} = {_text(value)}" for key, value in (("local", ppp.local), ("remote", ppp.remote)) if value]
    rows += [f"ipv6 = {str(ppp.ipv6).lower()}", f"mru_bytes = {ppp.mru_bytes}", f"mrru_bytes = {ppp.mrru_bytes}"]
    rows += [f"restart_s = {ppp.lcp_restart_s}", f"tries = {ppp.lcp_tries}"]
    rows += [f"echo_interval_s = {ppp.echo_interval_s}", f"echo_failures = {ppp.echo_failures}"]
    for line in bundle.ppp_lines:
        rows += ["[[line]]", f"name = {_text(line.name)}", f"rate_bps = {line.rate_bps:g}"]
    return "".join(f"{row}\n" for row in rows)


def secrets_text(bundle: Bundle, secrets: Secrets) -> str:
    """Its secrets."""
    if not bundle.user:
        return ""
    if _answers(bundle):
        return f"[peer]\n{_text(bundle.user)} = {_text(secrets.password)}\n"
    return f"own = {_text(secrets.password)}\n"


def _answers(bundle: Bundle) -> bool:
    """Whether it is the end that is called; a mixed bundle with a user is refused (`rules.of_back_end`)."""
    return all(line.role == "answer" for line in bundle.ppp_lines)


def _name_of(bundle: Bundle) -> str:
    """The end that dials has the user's name; the far end has another one, since both ends of a line must differ."""
    if not bundle.user or not _answers(bundle):
        return bundle.user or bundle.name
    return bundle.name if bundle.name != bundle.user else f"{bundle.name}-answers"


def _text(value: str) -> str:
    """A string of TOML: those of JSON are strings of TOML, too."""
    return json.dumps(value, ensure_ascii=True)
