"""Words that several parts of tuning say."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


def nearest(name: str, known: Sequence[str]) -> str:
    """What to write instead of a name that is none.

    Examples
    --------
    >>> nearest("qspk", ["bpsk", "qpsk"]), nearest("zzz", ["bpsk", "qpsk"])
    ("did you mean 'qpsk'?", 'give one of bpsk, qpsk')
    """
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"give one of {', '.join(known)}"
