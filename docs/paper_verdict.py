"""The verdict at the head of a paper's page, from the rows below it; and the summary and appendices of a long page."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Mapping

# Pages with more lines become a summary, and an appendix for each item.
MOST_LINES = 800
_ROW = re.compile(
    r"^\| .* \| (?P<printed>.*) \| (?P<shown>.*) \| \*{0,2}(?P<said>agrees|fitted|undecided|differs|misprint)\*{0,2} \|$",
    re.MULTILINE,
)
# Of fewer numbers, shares say little.
_FEW = 20
_WORDS = {
    "agrees": ("agrees", "agree"),
    "fitted": ("is fitted", "are fitted"),
    "undecided": ("is undecided", "are undecided"),
    "differs": ("differs", "differ"),
    "misprint": ("is a misprint", "are misprints"),
}


def counts(section: str) -> Counter[str]:
    """How often each verdict stands in the table of an item."""
    return Counter(row["said"] for row in _ROW.finditer(section))


def in_words(found: Mapping[str, int]) -> str:
    """Counts of verdicts: `102 agree, 3 are fitted`."""
    return ", ".join(f"{found[said]} {words[found[said] != 1]}" for said, words in _WORDS.items() if found.get(said))


def verdict(sections: Mapping[str, str]) -> str:
    """What was compared, how far apart it is and where it falls short: at most five lines.

    Parameters
    ----------
    sections
        The text of each item, by its key.
    """
    by_item = {key: counts(text) for key, text in sections.items()}
    every = sum(by_item.values(), Counter[str]())
    said = f"**Verdict.** {every.total()} printed numbers and claims, each beside farlink's: {in_words(every)}."
    far = _distances(sections)
    if len(far) >= _FEW:
        half, most = (_percent(far[min(len(far) - 1, int(share * len(far)))]) for share in (0.5, 0.9))
        said += (
            f" Where both are numbers ({len(far)}), half are within {half} of the printed one and nine in ten within {most}, "
            "fitted ones included."
        )
    worst = sorted((key for key in by_item if by_item[key]["differs"]), key=lambda key: -by_item[key]["differs"])
    if worst:
        shown = ", ".join(f"{key} ({by_item[key]['differs']} of {by_item[key].total()})" for key in worst[:3])
        said += f" What differs most: {shown}{f', and {len(worst) - 3} more' if len(worst) > 3 else ''}."
    return textwrap.fill(said, 128, break_on_hyphens=False, break_long_words=False)


def _distances(sections: Mapping[str, str]) -> list[float]:
    """Relative differences of numbers from printed ones, the least first; misprints are left out."""
    found = []
    for text in sections.values():
        for row in _ROW.finditer(text):
            numbers = [re.fullmatch(r"(-?[\d.]+(?:e-?\d+)?)(?: ± \S+)?", row[name]) for name in ("printed", "shown")]
            if row["said"] != "misprint" and all(numbers):
                printed, ours = (float(number[1]) for number in numbers if number)
                if printed:
                    found.append(abs(ours / printed - 1))
    return sorted(found)


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"


def arranged(key: str, head: str, sections: Mapping[str, str], tail: str) -> dict[str, str]:
    """Pages by their names in `docs/validation`: one, or a summary and appendices.

    Parameters
    ----------
    key
        Of the paper.
    head
        What stands before the items.
    sections
        Of each item its text, headings included.
    tail
        What stands behind them.
    """
    whole = "\n".join([head.rstrip("\n") + "\n", *sections.values(), tail]).rstrip("\n") + "\n"
    if whole.count("\n") <= MOST_LINES:
        return {f"{key}.md": whole}
    mark, title = head.splitlines()[:2]
    pages, summary = {}, [head.rstrip("\n") + "\n"]
    for name, text in sections.items():
        heading, _, rest = text.partition("\n")
        sentence = rest.strip().partition("\n")[0]
        summary += [heading, "", sentence, "", f"{in_words(counts(text)).capitalize()}: [{name}]({key}/{name}.md).", ""]
        up = re.sub(r"\]\((?!https?:|#)([^)]+)\)", r"](../\1)", text.replace(f"## {name}\n", "", 1))
        pages[f"{key}/{name}.md"] = f"{mark}\n# {name}\n\nAn appendix of [{title[2:]}](../{key}.md).\n{up.rstrip()}\n"
    return {f"{key}.md": "\n".join([*summary, tail]).rstrip("\n") + "\n", **pages}


def parts(page: str) -> tuple[str, dict[str, str], str]:
    """Head, sections with a table of verdicts, and what stands behind them, of a page in one piece."""
    first, *rest = re.split(r"^(?=## )", page, flags=re.MULTILINE)
    head, sections, tail = first, {}, ""
    for text in rest:
        if counts(text):
            sections[text[3 : text.index("\n")]] = text
        elif sections:
            tail += text
        else:
            head += text
    return head, sections, tail
