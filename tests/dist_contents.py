"""What lies in the wheels and the source distribution of a folder: files, licence, bill of materials, build, C library.

Usage:  python -m tests.dist_contents FOLDER

The shared libraries are read by `readelf` (binutils), which knows every architecture.
"""

from __future__ import annotations

import email
import json
import platform
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]
INFO = f"farlink-{VERSION}.dist-info"
CORE = "farlink/_core.abi3.so"
# The C library that manylinux_2_28 promises, and what else it lets an extension load (PEP 600, auditwheel's policy).
GLIBC = (2, 28)
MAY_LOAD = re.compile(r"lib(c|m|dl|rt|pthread|gcc_s)\.so\.\d|ld-linux-[\w-]+\.so\.\d")
# What the ELF header calls the machine of a tag.
MACHINES = {"x86_64": "Advanced Micro Devices X86-64", "aarch64": "AArch64"}
# Of the crates in a bill of materials; all of them stand in Cargo.lock.
CRATES = ("farlink-core", "farlink-fec", "farlink-sim", "farlink-net", "pyo3", "numpy", "rayon")


def files_of_package() -> dict[str, bytes]:
    """Files of the Python package and scenarios, by their names in a wheel."""
    package, shipped = ROOT / "python" / "farlink", ROOT / "scenarios"
    found = {path: path.relative_to(package.parent) for path in package.rglob("*")}
    found |= {path: Path("farlink/scenarios") / path.relative_to(shipped) for path in shipped.rglob("*")}
    built = (".pyc", ".so")
    return {str(name): path.read_bytes() for path, name in found.items() if path.is_file() and path.suffix not in built}


def readelf(option: str, library: bytes) -> str:
    """What readelf says of a shared library."""
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        file.write(library)
        file.flush()
        command = ["readelf", "--wide", option, file.name]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def glibc_of(library: bytes) -> tuple[int, int]:
    """The newest version of the C library that a symbol asks for."""
    wanted = re.findall(r"GLIBC_(\d+)\.(\d+)", readelf("--version-info", library))
    return max((int(major), int(minor)) for major, minor in wanted)


def build_of(library: bytes) -> str:
    """`_core.__build__`, by loading the library, which is this machine's."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / Path(CORE).name).write_bytes(library)
        command = [sys.executable, "-c", "import _core; print(_core.__build__)"]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def tag_of(path: Path) -> str | None:
    """The machine in the name of a wheel; nothing if the name is not that of this version for manylinux_2_28."""
    name = re.fullmatch(rf"farlink-{re.escape(VERSION)}-cp311-abi3-manylinux_2_28_(\w+)\.whl", path.name)
    return name[1] if name and name[1] in MACHINES else None


def wrong_with_wheel(path: Path) -> Iterator[str]:
    """What a wheel lacks or has too much of."""
    if (machine := tag_of(path)) is None:
        yield f"the name is not that of version {VERSION} for manylinux_2_28 and one of {', '.join(MACHINES)}"
        return
    with zipfile.ZipFile(path) as wheel:
        files = {file: wheel.read(file) for file in wheel.namelist() if not file.endswith("/")}
    expected = files_of_package()
    yield from wrong_with_files(expected, {file: files[file] for file in expected if file in files})
    foreign = files.keys() - expected.keys() - {CORE}
    yield from (f"{file} does not belong there" for file in sorted(foreign) if not file.startswith(f"{INFO}/"))
    yield from wrong_with_metadata(files)
    yield from wrong_with_bill([json.loads(text) for file, text in files.items() if file.startswith(f"{INFO}/sboms/")])
    yield from wrong_with_library(files.get(CORE, b""), machine)


def wrong_with_files(expected: dict[str, bytes], found: dict[str, bytes]) -> Iterator[str]:
    """Files that are missing or differ from the project's."""
    yield from (f"{file} is missing" for file in sorted(expected.keys() - found.keys()))
    yield from (f"{file} differs from the project's" for file in sorted(found) if found[file] != expected[file])


def wrong_with_metadata(files: dict[str, bytes]) -> Iterator[str]:
    """Version, licence, extras and command."""
    if files.get(f"{INFO}/licenses/LICENSE") != (ROOT / "LICENSE").read_bytes():
        yield "the licence is missing or another one"
    metadata = email.message_from_bytes(files.get(f"{INFO}/METADATA", b""))
    if (metadata["Version"], metadata["License-Expression"]) != (VERSION, PROJECT["license"]):
        yield f"version {metadata['Version']}, licence {metadata['License-Expression']}"
    if set(metadata.get_all("Provides-Extra", [])) != set(PROJECT["optional-dependencies"]):
        yield "the extras are not those of pyproject.toml"
    if b"farlink=farlink.cli:main" not in files.get(f"{INFO}/entry_points.txt", b"").replace(b" ", b""):
        yield "there is no command farlink"


def wrong_with_bill(bills: list[dict[str, Any]]) -> Iterator[str]:
    """What the software bill of materials (CycloneDX) lacks: crates, in the versions of Cargo.lock."""
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    known = {(package["name"], package["version"]) for package in lock}
    components = [one for bill in bills if bill.get("bomFormat") == "CycloneDX" for one in bill.get("components", [])]
    listed = {(one["name"], one["version"]) for one in components if one.get("purl", "").startswith("pkg:cargo/")}
    named = {name for name, _ in listed} | {bill.get("metadata", {}).get("component", {}).get("name") for bill in bills}
    yield from (f"the bill of materials has {crate} {version}, Cargo.lock not" for crate, version in sorted(listed - known))
    yield from (f"the bill of materials lacks {crate}" for crate in CRATES if crate not in named)


def wrong_with_library(library: bytes, machine: str) -> Iterator[str]:
    """The machine that the extension is for, the C library that it needs, and other libraries that it loads."""
    if not library:
        yield f"{CORE} is missing"
        return
    if MACHINES[machine] not in readelf("--file-header", library):
        yield f"{CORE} is not for {machine}"
    if (needs := glibc_of(library)) > GLIBC:
        yield f"{CORE} needs glibc {needs[0]}.{needs[1]}"
    loaded = re.findall(r"\(NEEDED\).*\[(.+)\]", readelf("--dynamic", library))
    yield from (f"{CORE} loads {name}" for name in loaded if not MAY_LOAD.fullmatch(name))


def wrong_with_sources(path: Path) -> Iterator[str]:
    """What a source distribution lacks: what a build reads, and what a wheel has."""
    with tarfile.open(path) as archive:
        members = {one.name.partition("/")[2]: archive.extractfile(one) for one in archive.getmembers() if one.isfile()}
        files = {name: member.read() for name, member in members.items() if member}
    crates = [*(ROOT / "crates").glob("*/src/**/*.rs"), *(ROOT / "crates").glob("*/Cargo.toml")]
    own = [ROOT / name for name in ("Cargo.lock", "LICENSE", PROJECT["readme"])]
    expected = {f"python/{name}": text for name, text in files_of_package().items()}
    expected |= {str(file.relative_to(ROOT)): file.read_bytes() for file in [*crates, *own]}
    # Manifests are written anew, without the crates that are left out.
    expected |= {name: files[name] for name in expected if name.endswith("Cargo.toml") and name in files}
    yield from wrong_with_files(expected, {name: files[name] for name in expected if name in files})
    yield from (f"{name} is missing" for name in ("Cargo.toml", "PKG-INFO", "pyproject.toml") if name not in files)
    foreign = ("target/", ".venv/", "dist/", "out/")
    yield from (f"{name} does not belong there" for name in files if name.startswith(foreign))


def wrong_with_builds(wheels: list[Path]) -> Iterator[str]:
    """Wheels that are not of the build of this machine's wheel."""
    libraries = {path: zipfile.ZipFile(path).read(CORE) for path in wheels}
    own = next((library for path, library in libraries.items() if tag_of(path) == platform.machine()), None)
    if own is None:
        yield f"there is no wheel for {platform.machine()}"
        return
    build = build_of(own)
    print(f"build {build}")
    yield from (f"{path.name} is not of build {build}" for path, library in libraries.items() if build.encode() not in library)


def main() -> None:
    """Look at a folder."""
    folder = Path(sys.argv[1])
    wheels, archives = sorted(folder.glob("farlink-*.whl")), sorted(folder.glob("farlink-*.tar.gz"))
    if not wheels and not archives:
        sys.exit(f"error: there is nothing in {folder}\nhint: make dist")
    looks: list[tuple[Path, Callable[[Path], Iterator[str]]]] = [
        *((path, wrong_with_wheel) for path in wheels),
        *((path, wrong_with_sources) for path in archives),
    ]
    wrong = []
    for path, look in looks:
        found = [f"{path.name}: {what}" for what in look(path)]
        wrong += found
        needs = "{}.{}".format(*glibc_of(zipfile.ZipFile(path).read(CORE))) if path in wheels and not found else ""
        if not found:
            print(f"{path.name}: complete, {path.stat().st_size / 1e6:.1f} MB{needs and f', glibc {needs}'}")
    wrong += wrong_with_builds(wheels) if wheels and not wrong else []
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
