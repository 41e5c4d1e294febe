"""Papers: their tables and figures as scenarios, with the printed values. A new one is a file here and a line in `PAPERS`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from farlink.errors import FarlinkError
from farlink.near_names import instead
from farlink.papers.item import Item, Paper

__all__ = ["PAPERS", "PaperError", "chosen_items", "load", "ready_items"]

# Key of a paper -> module that holds it, as `PAPER`.
PAPERS = {
    "brodbekier": "farlink.papers.brodbekier",
    "celandroni": "farlink.papers.celandroni",
    "epple": "farlink.papers.epple",
    "pathapati": "farlink.papers.pathapati",
    "zaghloul": "farlink.papers.zaghloul",
}


class PaperError(FarlinkError):
    """There is no such paper, or no such item in it."""


def load(key: str) -> Paper:
    """The paper of that key.

    Raises
    ------
    PaperError
        If there is none; it names the nearest.

    Examples
    --------
    >>> load("brodbekier").key
    'brodbekier'
    """
    if key not in PAPERS:
        raise PaperError(f"no paper {key!r}", instead(key, PAPERS))
    paper: Paper = import_module(PAPERS[key]).PAPER
    return paper


def chosen_items(paper: Paper, keys: Sequence[str]) -> list[Item]:
    """Items of a paper by their keys, in the order of the paper; all that can be computed if no key is given.

    Raises
    ------
    PaperError
        If there is no such item, or it cannot be computed yet.
    """
    if not keys:
        return ready_items(paper)
    known = [item.key for item in paper.items]
    for key in keys:
        if key not in known:
            raise PaperError(f"{paper.key} has no item {key!r}", instead(key, known))
        if paper.item(key).not_yet:
            ready = ", ".join(item.key for item in ready_items(paper))
            raise PaperError(f"{key} cannot be computed yet: {paper.item(key).not_yet}", f"this version computes {ready}")
    return [item for item in paper.items if item.key in keys]


def ready_items(paper: Paper) -> list[Item]:
    """The items that can be computed."""
    return [item for item in paper.items if not item.not_yet]
