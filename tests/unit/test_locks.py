"""The versions that the checks run with stand in the project, and fit what it asks for."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]


def pinned() -> dict[str, list[Version]]:
    """Versions of `constraints.txt` by name; several if they depend on the version of Python."""
    found: dict[str, list[Version]] = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if line and not line.lstrip().startswith("#"):
            requirement = Requirement(line)
            (specifier,) = requirement.specifier
            assert specifier.operator == "==", f"constraints.txt: {line!r} names no single version; remedy: make lock"
            found.setdefault(canonicalize_name(requirement.name), []).append(Version(specifier.version))
    return found


def wanted() -> list[Requirement]:
    """What the project and each of its extras ask for, and what is needed to build it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"].values()
    texts = [
        *project["build-system"]["requires"],
        *project["project"]["dependencies"],
        *(text for some in extras for text in some),
    ]
    return [one for one in map(Requirement, texts) if canonicalize_name(one.name) != "farlink"]


@pytest.mark.parametrize("requirement", wanted(), ids=str)
def test_every_requirement_has_a_locked_version_that_fits(requirement):
    versions = pinned().get(canonicalize_name(requirement.name), [])

    assert versions, f"{requirement.name} is not in constraints.txt; remedy: make lock"
    assert all(version in requirement.specifier for version in versions)


def test_all_installs_of_the_makefile_are_bound_by_the_lock():
    lines = (ROOT / "Makefile").read_text().splitlines()

    free = [line for line in lines if re.search(r"pip\b.* install|\$\(PIP\) install", line) and "--no-deps" not in line]

    assert [line.split(":=")[0].strip() for line in free] == ["PIP_INSTALL"]


def test_compiler_that_is_named_is_not_older_than_the_oldest_allowed():
    named = tomllib.loads((ROOT / "rust-toolchain.toml").read_text())["toolchain"]["channel"]
    oldest = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]

    assert Version(named) >= Version(oldest)
    assert f"rust:{named}-" in (ROOT / ".github" / "workflows" / "checks.yml").read_text()
