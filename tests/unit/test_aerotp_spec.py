"""Each numbered sentence of a specification is cited by code or a test, and nothing else is."""

from __future__ import annotations

import re

from tests.conftest import ROOT

PAGES = [ROOT / "docs" / name for name in ("aerotp.md", "sessions.md", "gateway-protocol.md", "bundle-protocol.md")]
CORE = ROOT / "crates" / "farlink-core"
NET = ROOT / "crates" / "farlink-net"
ENGINE = ROOT / "crates" / "farlink-sim" / "src" / "engine"
SOURCES = [
    *CORE.glob("src/protocol/aerotp/**/*.rs"),
    *CORE.glob("src/wire/aerotp/**/*.rs"),
    *CORE.glob("tests/aerotp*.rs"),
    CORE / "src" / "scenario" / "gateway.rs",  # near-reliable: what gateways do
    *CORE.glob("src/gateway/*.rs"),
    ENGINE / "chain.rs",
    *NET.glob("src/**/*.rs"),
]


def numbered() -> list[str]:
    return [number for page in PAGES for number in re.findall(r"\*\*\[([A-Z]\d+)\]\*\*", page.read_text(encoding="utf-8"))]


def cited() -> dict[str, list[str]]:
    places: dict[str, list[str]] = {}
    for path in SOURCES:
        for comment in re.findall(r"//.*", path.read_text(encoding="utf-8")):
            for number in re.findall(r"`\[([A-Z]\d+)\]`", comment):
                places.setdefault(number, []).append(path.name)
    return places


def test_sentence_numbers_are_unique():
    assert sorted(set(numbered())) == sorted(numbered())


def test_every_cited_sentence_exists():
    unknown = {number: places for number, places in cited().items() if number not in numbered()}

    assert unknown == {}


def test_every_sentence_is_cited():
    assert [number for number in numbered() if number not in cited()] == []
