"""A transition in words, for tables that people read."""

from __future__ import annotations

from farlink.operator.journal.rows import Transition


def signal_words(one: Transition) -> str:
    """Its signal; empty if it has none.

    Examples
    --------
    >>> signal_words(Transition(1, "kansas", "alive", 0.0, 0.0, "boot", bars=4))
    '4 bars'
    """
    return f"{one.bars} bars" if one.bars is not None else "" if one.snr_db is None else f"{one.snr_db:g} dB"


def cause_words(one: Transition) -> str:
    """Its cause, whether it was made as a test, and who called.

    Examples
    --------
    >>> cause_words(Transition(1, "kansas", "connecting", 0.0, 0.0, "boot", "answering", caller="881600005001"))
    'answering (from 881600005001)'
    """
    return one.cause + (" (injected)" if one.is_injected else "") + (f" (from {one.caller})" if one.caller else "")
