"""Libraries of the benchmark of codecs that Debian lacks or has too old: built here, from sources named by the user or fetched.

A library that cannot be had gives None, and stderr says why and what would help.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ISAL_TAG = "v2.32.1"
ISAL_URL = "https://github.com/intel/isa-l"
AFF3CT_TAG = "v3.0.2"
AFF3CT_URL = "https://github.com/aff3ct/aff3ct"
# Those files of AFF3CT that its Reed-Solomon codec needs: the whole takes a quarter of an hour.
AFF3CT_FILES = (
    "Module/Decoder/RS/**/Decoder_RS*.cpp",
    "Module/Decoder/Decoder.cpp",
    "Module/Encoder/RS/Encoder_RS.cpp",
    "Module/Module.cpp",
    "Module/Task.cpp",
    "Tools/Code/RS/RS_polynomial_generator.cpp",
    "Tools/Exception/**/*.cpp",
    "Tools/Math/Galois.cpp",
    "Tools/Perf/common/hard_decide.cpp",
    "Tools/system_functions.cpp",
)


@dataclass(frozen=True)
class Built:
    """Compiler flags of a library, or its finished program, and the library's version."""

    version: str
    flags: tuple[str, ...] = ()
    program: Path | None = None


def isal(work: Path) -> Built | None:
    """ISA-L from source.

    `FARLINK_ISAL` names an installed one (a folder with `include/isa-l.h`) or a git repository, a path or an address, of which
    the tag `ISAL_TAG` is built; without it, that tag is fetched from `ISAL_URL`.
    """
    named = os.environ.get("FARLINK_ISAL", ISAL_URL)
    prefix = Path(named).expanduser()
    if (prefix / "include" / "isa-l.h").exists():
        return Built(
            isal_version(prefix / "include" / "isa-l.h"),
            (f"-I{prefix}/include", f"-L{prefix}/lib", "-lisal", f"-Wl,-rpath,{prefix}/lib"),
        )
    source = work / f"isa-l-{ISAL_TAG}"
    library, header = source / "bin" / "isa-l.a", source / "isa-l.h"
    if not library.exists():
        shutil.rmtree(source, ignore_errors=True)
        clone = ["git", "clone", "-q", "-c", "advice.detachedHead=false", "--depth", "1", "--branch", ISAL_TAG]
        address = prefix.resolve().as_uri() if prefix.exists() else named
        if (wrong := _ran([*clone, address, str(source)])) is not None:
            _say("ISA-L from source", wrong, f"FARLINK_ISAL=a git repository of ISA-L that has {ISAL_TAG}, or an installed one")
            return None
        (source / "isa-l").symlink_to("include")
        make = ["make", "-s", "-f", "Makefile.unx", "-C", str(source), "lib", "isa-l.h"]
        if (wrong := _ran(make)) is not None:
            library.unlink(missing_ok=True)
            _say("ISA-L from source", wrong, "apt-get install gcc make nasm")
            return None
    return Built(isal_version(header), (f"-I{source}", str(library)))


def isal_version(header: Path) -> str:
    """What ISA-L's header says, or nothing if there is none."""
    text = header.read_text() if header.exists() else ""
    return ".".join(number for _, number in re.findall(r"#define ISAL_(MAJOR|MINOR|PATCH)_VERSION (\d+)", text))


def aff3ct(work: Path) -> Built | None:
    """The flags that compile AFF3CT's Reed-Solomon codec with a program.

    `FARLINK_AFF3CT` names a checkout with its submodules `lib/MIPP` and `lib/rang`; without it, `AFF3CT_TAG` is fetched from
    `AFF3CT_URL`.
    """
    named = os.environ.get("FARLINK_AFF3CT")
    source = Path(named).expanduser() if named else work / f"aff3ct-{AFF3CT_TAG}"
    include = [source / part for part in ("include", "src", "lib/MIPP/src", "lib/rang/include")]
    if not named and not all(path.is_dir() for path in include):
        shutil.rmtree(source, ignore_errors=True)
        clone = ["git", "clone", "-q", "-c", "advice.detachedHead=false", "--depth", "1", "--branch", AFF3CT_TAG]
        modules = ["--recurse-submodules=lib/MIPP", "--recurse-submodules=lib/rang", "--shallow-submodules"]
        if (wrong := _ran([*clone, *modules, AFF3CT_URL, str(source)])) is not None:
            _say("AFF3CT", wrong, f"FARLINK_AFF3CT=a checkout of AFF3CT {AFF3CT_TAG} with its submodules")
            return None
    if missing := [path for path in include if not path.is_dir()]:
        _say("AFF3CT", f"there is no {missing[0]}", "git submodule update --init lib/MIPP lib/rang in the checkout of AFF3CT")
        return None
    files = [str(path) for pattern in AFF3CT_FILES for path in sorted((source / "src").glob(pattern))]
    described = subprocess.run(["git", "-C", str(source), "describe", "--tags"], capture_output=True, text=True, check=False)
    return Built(described.stdout.strip().removeprefix("v"), ("-std=c++11", "-w", *(f"-I{path}" for path in include), *files))


def klauspost(source: Path, work: Path) -> Built | None:
    """The program of klauspost/reedsolomon, a Go module, which go fetches from its proxy."""
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        _say("klauspost/reedsolomon", "there is no Go compiler", "Go 1.24 or later in PATH")
        return None
    program = work / "erasure_klauspost"
    if (wrong := _ran([go, "build", "-C", str(source), "-o", str(program), "."])) is not None:
        _say("klauspost/reedsolomon", wrong, "Go 1.24 or later, and a proxy of Go modules (GOPROXY)")
        return None
    found = re.search(r"klauspost/reedsolomon v(\S+)", (source / "go.mod").read_text())
    return Built(found[1] if found else "", program=program)


def _ran(command: list[str]) -> str | None:
    """None, or why it failed: its last line."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return f"there is no {command[0]}"
    if done.returncode == 0:
        return None
    lines = [*done.stdout.strip().splitlines(), *done.stderr.strip().splitlines()] or [
        f"{command[0]} exits with {done.returncode}"
    ]
    return next((line for line in lines if "error" in line.lower() or "not found" in line), lines[-1])


def _say(library: str, why: str, remedy: str) -> None:
    print(f"{library} is left out: {why.strip()} ({remedy})", file=sys.stderr)
