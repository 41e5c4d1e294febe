"""Libraries that the benchmark of codecs builds from source: those that the user names; a missing one comes with a remedy."""

from __future__ import annotations

import importlib.util
import sys

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


def test_a_checkout_of_aff3ct_without_submodules_is_named_with_a_remedy(monkeypatch, tmp_path, capsys):
    for folder in ("include", "src", "lib/MIPP/src"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.setenv("FARLINK_AFF3CT", str(tmp_path))

    assert codec_sources.aff3ct(tmp_path / "work") is None
    assert capsys.readouterr().err == (
        f"AFF3CT is left out: there is no {tmp_path}/lib/rang/include "
        "(git submodule update --init lib/MIPP lib/rang in the checkout of AFF3CT)\n"
    )


def test_tables_of_a_report_leave_those_of_other_groups(monkeypatch):
    spec = importlib.util.spec_from_file_location("bench_codecs", ROOT / "benches" / "codecs.py")
    bench = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "bench_codecs", bench)
    spec.loader.exec_module(bench)
    rates = {"ISA-L 2.32.1, avx512-gfni": 16e9, "reed-solomon-simd": 8e9, "farlink, avx2": 4e9}
    runs = [{"group": "erasure", "case": "encode", "codec": codec, "bits": bits, "cpu_s": 1.0} for codec, bits in rates.items()]
    machine = {"processor": "P", "cores": 2, "load_average": 1.0, "versions": {"zfec": "1", "fec": "2"}}
    report = {"machine": machine, "rounds": 5, "seconds": 0.1, "runs": [{**one, "error_rate": 0.0} for one in runs]}

    page = bench.page_with_tables(
        "<!-- table viterbi -->\nold\n<!-- end -->\n<!-- table erasure -->\nold\n<!-- end -->\n", report
    )

    assert page.startswith("<!-- table viterbi -->\nold\n<!-- end -->\n<!-- table erasure -->\n| GB/s | encode |\n")
    assert (
        "| farlink, avx2: times the fastest peer with AVX2 | 0.5 |\n| farlink, avx2: times the fastest peer | 0.25 |\n" in page
    )
    assert page.endswith(
        "\nP, one core of 2, load 1.0 at the start; medians of 5 alternating rounds of 0.1 CPU s.\nzfec 1.\n<!-- end -->\n"
    )
