"""Parameters as commands for synthetic and measured traces take and list them."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farlink.channels.parameter import Parameter, Value


def setting(text: str) -> tuple[str, str]:
    """Key and value of ``--set KEY=VALUE``.

    Raises
    ------
    TraceError
        If it is not of that form.

    Examples
    --------
    >>> setting("tau_s=0.005")
    ('tau_s', '0.005')
    """
    from farlink.errors import TraceError

    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise TraceError(f"--set {text}: not KEY=VALUE", "write for example --set tau_s=0.005")
    return key.strip(), value.strip()


def table(known: Mapping[str, Parameter], values: Mapping[str, Value] | None = None, starred: Container[str] = ()) -> str:
    """A line per parameter: value, meaning and rule.

    Parameters
    ----------
    known
        The parameters.
    values
        Their values; the defaults if None.
    starred
        Names that get a star.
    """
    shown = {key: _shown(one.default if values is None else values[key]) for key, one in known.items()}
    widths = max(map(len, shown)), max(map(len, shown.values()))
    return "".join(
        f"{'*' if key in starred else ' '} {key:<{widths[0]}}  {shown[key]:<{widths[1]}}  {one.meaning}; {one.rule}\n"
        for key, one in known.items()
    )


def _shown(value: Value) -> str:
    if isinstance(value, float):
        return f"{value:g}" if value == value else "(none)"
    return str(value) or "(none)"
