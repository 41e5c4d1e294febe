"""Prepare the documentation site and check it: `make site`.

Usage:  python docs/build_site.py pages FOLDER     pages, navigation and `mkdocs.yml` for zensical or MkDocs, in FOLDER
        python docs/build_site.py check FOLDER     every link of FOLDER/html leads somewhere, and no page asks another machine

Pages are those of `docs`, without programs and data. The navigation is that of `docs/README.md`: its sections are the tabs of
the site. The reference of Python is written by griffe, and stands in the site only. Links to files of the project that are no
pages become their names.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PYTHON = "reference/python.md"
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]\n]*)\]\((?P<target>[^)\s]+)\)")
# The name of the file that a block of code is, and how the site shows it.
_FILE, _NAMED = re.compile(r"^```(\w+) (\S+)$", re.MULTILINE), r'```\1 title="\2"'
# Where a list follows its sentence at once: the site's Markdown wants an empty line between.
_LIST = re.compile(r"(?<=\S)\n(?=- )")
# Attributes by which a browser asks for something by itself.
_LOADS = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "video": "src", "audio": "src"}
# A link to the page itself, or to one that the reader may choose, loads nothing.
_RELATIONS = {"canonical", "prev", "next", "edit"}


def pages(folder: Path) -> None:
    """Write all that the generator needs."""
    shutil.rmtree(folder, ignore_errors=True)
    there = folder / "docs"
    shutil.copytree(DOCS, there, ignore=shutil.ignore_patterns("*.py", "__pycache__", "coverage"))
    for page in there.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        page.write_text(_within(text, DOCS / page.relative_to(there).parent), encoding="utf-8")
    (there / PYTHON).write_text(_program("api_pages").page(), encoding="utf-8")
    navigation = "nav:\n" + "\n".join(_navigation(sections()))
    (folder / "mkdocs.yml").write_text(
        (ROOT / "mkdocs.yml").read_text(encoding="utf-8") + "\n" + navigation + "\n", encoding="utf-8"
    )


def sections() -> dict[str, list[tuple[str, str]]]:
    """Titles and pages of each section of `docs/README.md`, in its order."""
    found: dict[str, list[tuple[str, str]]] = {}
    for line in (DOCS / "README.md").read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"\*\*(\w+)\*\*", line):
            found[heading[1]] = []
        elif line.startswith("- ["):
            # The first link is the page's; a second one of another page belongs to it.
            for link in _LINK.finditer(line):
                target = link["target"]
                known = {page for entries in found.values() for _, page in entries}
                if (
                    target.endswith(".md")
                    and target not in known
                    and (link.start() == 2 or _is_listed_nowhere_else(target, line))
                ):
                    title = link["text"].replace("`", "")
                    list(found.values())[-1].append((title[0].upper() + title[1:], target))
    found["Reference"].append(("Python", PYTHON))
    return found


def _is_listed_nowhere_else(target: str, line: str) -> bool:
    others = (DOCS / "README.md").read_text(encoding="utf-8").replace(line, "")
    return f"]({target})" not in others


def _navigation(found: dict[str, list[tuple[str, str]]]) -> Iterator[str]:
    yield "  - Documentation: README.md"
    for section, entries in found.items():
        yield f"  - {section}:"
        for title, page in entries:
            parts = _parts(page)
            if not parts:
                yield f"      - {json.dumps(title, ensure_ascii=False)}: {page}"
                continue
            yield from (f"      - {json.dumps(title, ensure_ascii=False)}:", f"          - {page}")
            yield from (f"          - {json.dumps(name, ensure_ascii=False)}: {part}" for name, part in parts)


def _parts(page: str) -> list[tuple[str, str]]:
    """Titles and names of the pages in the folder beside a page, in the order in which it links to them."""
    folder = DOCS / page.removesuffix(".md")
    found: dict[str, str] = {}
    if folder.is_dir():
        for link in _LINK.finditer((DOCS / page).read_text(encoding="utf-8")):
            part = DOCS / page.rpartition("/")[0] / link["target"].partition("#")[0]
            if part.parent == folder and part.is_file():
                name = part.relative_to(DOCS).as_posix()
                heading = re.search(r"^# (.*)$", part.read_text(encoding="utf-8"), re.MULTILINE)
                found.setdefault(name, heading[1].replace("`", "") if heading else part.stem)
    return [(heading, name) for name, heading in found.items()]


def _within(text: str, folder: Path) -> str:
    """A page whose links to files of the project that are no pages are their names."""

    def local(link: re.Match[str]) -> str:
        target = link["target"].partition("#")[0]
        if not target or re.match(r"[a-z]+:", target):
            return link[0]
        path = Path(os.path.normpath(folder / target))
        is_page = (
            path.is_relative_to(DOCS) and path.suffix != ".py" and not path.is_dir() and "coverage" not in path.parent.name
        )
        if is_page:
            return link[0]
        name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else target
        shown = link["text"]
        return shown if name in shown else f"{shown} (`{name}`)"

    blocks = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(
        _FILE.sub(_NAMED, block) if block.startswith("```") else _LINK.sub(local, _LIST.sub("\n\n", block)) for block in blocks
    )


class _Page(HTMLParser):
    """Links, anchors and what a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors.update(given[name] for name in ("id", "name") if given.get(name))
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        source = given.get(_LOADS.get(tag, ""), "")
        if source and not _RELATIONS & set(given.get("rel", "").split()):
            self.loads.append(source)


def check(html: Path) -> list[str]:
    """What is wrong with a site: a line each."""
    read: dict[Path, _Page] = {}
    wrong = [f"{path.relative_to(html)}: a program is in the site" for path in html.rglob("*.py")]
    for path in sorted(html.rglob("*.html")):
        read[path] = _Page()
        text = path.read_text(encoding="utf-8")
        read[path].feed(text)
        if "```" in text:
            wrong.append(f"{path.relative_to(html)}: a block of code is shown as text")
    for path, page in read.items():
        if path.name == "404.html":
            continue
        wrong += [f"{path.relative_to(html)}: loads {source} from elsewhere" for source in page.loads if _is_elsewhere(source)]
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            there = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
            there = there / "index.html" if there.is_dir() else there
            if not there.is_file():
                wrong.append(f"{path.relative_to(html)}: {link} leads nowhere")
            elif parts.fragment and there in read and unquote(parts.fragment) not in read[there].anchors:
                wrong.append(f"{path.relative_to(html)}: {link} names no heading there")
    return wrong


def _is_elsewhere(source: str) -> bool:
    return bool(urlsplit(source).netloc) or urlsplit(source).scheme in ("http", "https")


def _program(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Do what the command line says."""
    if len(sys.argv) != 3 or sys.argv[1] not in ("pages", "check"):
        sys.exit(__doc__)
    if sys.argv[1] == "pages":
        pages(Path(sys.argv[2]))
    elif wrong := check(Path(sys.argv[2]) / "html"):
        print(*wrong, sep="\n", file=sys.stderr)
        sys.exit(f"error: {len(wrong)} faults of the site")


if __name__ == "__main__":
    main()
