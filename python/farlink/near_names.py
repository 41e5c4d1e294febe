"""Suggestions for an unknown name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], *, likeness: float = 0.5) -> str | None:
    """The known name that is most like another one.

    Parameters
    ----------
    name
        What was given.
    known
        Names that there are.
    likeness
        Least likeness, from 0 for any to 1 for the same (`difflib.SequenceMatcher.ratio`).

    Returns
    -------
    str or None
        None if no name is so much like it.
    """
    of_lower = {one.lower(): one for one in known}
    near = difflib.get_close_matches(name.lower(), of_lower, n=1, cutoff=likeness)
    return of_lower[near[0]] if near else None


def instead(name: str, known: Iterable[str], *, likeness: float = 0.5) -> str:
    """Remedy for an unknown name: the nearest name, or all names.

    Parameters
    ----------
    name, known, likeness
        As in `nearest`.

    Examples
    --------
    >>> instead("qspk", ["bpsk", "qpsk"]), instead("zzz", ["bpsk", "qpsk"])
    ("did you mean 'qpsk'?", 'give one of bpsk, qpsk')
    """
    names = list(known)
    near = nearest(name, names, likeness=likeness)
    return f"did you mean {near!r}?" if near else f"give one of {', '.join(names)}"
