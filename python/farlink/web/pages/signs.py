"""Signs of states: a shape, a colour and a word each, so that none of them is needed to tell them apart."""

from __future__ import annotations

from html import escape

# State -> class of its colour, and its shape in a square of 16.
_SIGNS = {
    "connected": ("ok", '<circle cx="8" cy="8" r="6.5" fill="currentColor"/>'),
    "silent": (
        "busy",
        '<circle cx="8" cy="8" r="6" fill="none" stroke="currentColor" stroke-width="2"/>'
        '<path d="M8 2a6 6 0 0 1 0 12z" fill="currentColor"/>',
    ),
    "connecting": ("busy", '<path d="M3 2l11 6-11 6z" fill="currentColor"/>'),
    "waiting": ("idle", '<circle cx="8" cy="8" r="5.5" fill="none" stroke="currentColor" stroke-width="2"/>'),
    "dropped": ("bad", '<path d="M2 3h12l-6 11z" fill="currentColor"/>'),
    "failed": ("bad", '<path d="M3 3l10 10M13 3L3 13" stroke="currentColor" stroke-width="3" fill="none"/>'),
    "blocked": (
        "bad",
        '<rect x="1.5" y="1.5" width="13" height="13" fill="currentColor"/>'
        '<rect class="gap" x="4" y="6.5" width="8" height="3"/>',
    ),
    "held": ("held", '<path d="M3 2h4v12H3zM9 2h4v12H9z" fill="currentColor"/>'),
    "ended": ("idle", '<path d="M2 7h12v2.5H2z" fill="currentColor"/>'),
    "unknown": (
        "idle",
        '<path d="M5 5.5a3 3 0 1 1 4 2.8c-.7.3-1 .8-1 1.7" fill="none" stroke="currentColor" stroke-width="2"/>'
        '<circle cx="8" cy="13.2" r="1.4" fill="currentColor"/>',
    ),
}
COLOURS = {state: colour for state, (colour, _) in _SIGNS.items()}
"""State -> class of its colour."""


def sign(state: str) -> str:
    """HTML of a state."""
    colour, shape = _SIGNS.get(state, _SIGNS["unknown"])
    drawn = f'<svg class="shape" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">{shape}</svg>'
    return f'<span class="sign {colour}">{drawn}{escape(state)}</span>'
