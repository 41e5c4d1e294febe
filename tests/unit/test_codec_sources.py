"""Libraries that the benchmark of codecs builds from source: those that the user names; a missing one comes with a remedy."""

from __future__ import annotations

import pytest
from benches import codec_sources
from tests.conftest import ROOT

HEADER = "#define ISAL_MAJOR_VERSION 2\n#define ISAL_MINOR_VERSION 31\n#define ISAL_PATCH_VERSION 0\n"


def test_an_installed_isal_is_taken_as_it_is(monkeypatch, tmp_path):
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "isa-l.h").write_text(HEADER)
    monkeypatch.setenv("FARLINK_ISAL", str(tmp_path))

    built = codec_sources.isal(tmp_path / "work")

    assert built is not None
    assert built.version == "2.31.0"
    assert {f"-I{tmp_path}/include", f"-L{tmp_path}/lib", "-lisal"} <= set(built.flags)
    assert not (tmp_path / "work").exists()


@pytest.mark.parametrize("named", ["missing", "."])
def test_an_isal_that_cannot_be_had_is_named_with_a_remedy(monkeypatch, tmp_path, capsys, named):
    monkeypatch.setenv("FARLINK_ISAL", str(tmp_path / named))

    assert codec_sources.isal(tmp_path / "work") is None

    said = capsys.readouterr().err
    assert said.startswith("ISA-L from source is left out: ")
    assert "FARLINK_ISAL=a git repository of ISA-L that has v" in said


def test_without_go_its_library_is_left_out(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(codec_sources.shutil, "which", lambda *_, **__: None)

    assert codec_sources.klauspost(ROOT / "benches" / "codecs" / "go", tmp_path) is None
    assert capsys.readouterr().err == (
        "klauspost/reedsolomon is left out: there is no Go compiler (Go 1.24 or later in PATH)\n"
    )


def test_a_go_that_fails_says_why(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(codec_sources.shutil, "which", lambda *_, **__: "false")

    assert codec_sources.klauspost(tmp_path, tmp_path) is None
    assert "false exits with 1 (Go 1.24 or later, and a proxy of Go modules (GOPROXY))" in capsys.readouterr().err
