"""The build fingerprint is the same for the same sources, wherever and whenever they were built."""

from __future__ import annotations

import hashlib
import re

from tests.conftest import ROOT

from farlink import _core
from farlink.folders import fingerprint


def files():
    crates = ("farlink-core", "farlink-fec", "farlink-py", "farlink-sim")
    sources = [path for crate in crates for path in (ROOT / "crates" / crate / "src").rglob("*.rs")]
    return {path.relative_to(ROOT).as_posix(): path for path in [*sources, ROOT / "Cargo.lock"]}


def test_the_build_fingerprint_depends_only_on_the_sources():
    digest = hashlib.sha256()
    found = files()
    for name in sorted(found):
        content = found[name].read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{len(name)}\0{name}\0{len(content)}\0".encode())
        digest.update(content)

    assert re.fullmatch("[0-9a-f]{64}", _core.__build__)
    assert _core.__build__ == digest.hexdigest()


def test_python_packages_have_a_build_fingerprint(monkeypatch):
    before = fingerprint("farlink.channels")
    assert fingerprint("farlink.channels", "farlink.channels.importers") != before

    fingerprint.cache_clear()
    monkeypatch.setattr(_core, "__build__", "0" * 64)
    assert fingerprint("farlink.channels") != before
    fingerprint.cache_clear()
