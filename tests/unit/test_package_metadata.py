"""What an index of packages and a citation say of farlink: links lead to files of the project, versions are the project's."""

from __future__ import annotations

import re
import tomllib

import pytest
from tests.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PACKAGE = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]
# Of the Citation File Format 1.2.0, what a citation of software has to have and what else is used.
CITATION = {
    "type": "object",
    "required": ["authors", "cff-version", "message", "title"],
    "additionalProperties": False,
    "properties": {
        "cff-version": {"const": "1.2.0"},
        "message": {"type": "string", "minLength": 1},
        "title": {"type": "string", "minLength": 1},
        "type": {"enum": ["software", "dataset"]},
        "authors": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["name"],
                "additionalProperties": False,
                "properties": {"name": {"type": "string", "minLength": 1}, "website": {"type": "string", "format": "uri"}},
            },
        },
        "version": {"type": "string", "minLength": 1},
        "license": {"type": "string", "minLength": 1},
        "repository-code": {"type": "string", "pattern": "^https://"},
        "abstract": {"type": "string", "minLength": 1},
        "keywords": {"type": "array", "minItems": 1, "uniqueItems": True, "items": {"type": "string"}},
    },
}


def links(text: str) -> list[str]:
    return re.findall(r"\]\(([^)\s]+)\)", re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE))


def test_links_of_the_packages_readme_hold_anywhere():
    text = (ROOT / PROJECT["readme"]).read_text(encoding="utf-8")
    raw = PACKAGE["repository"].replace("github.com", "raw.githubusercontent.com")

    assert len(links(text)) == len(links((ROOT / "README.md").read_text(encoding="utf-8")))
    for link in links(text):
        assert link.startswith("https://")
        for kind, is_kind in (("blob", "is_file"), ("tree", "is_dir")):
            if link.startswith(f"{PACKAGE['repository']}/{kind}/main/"):
                path = ROOT / link.removeprefix(f"{PACKAGE['repository']}/{kind}/main/").partition("#")[0]
                assert getattr(path, is_kind)(), link
        if link.endswith(".svg"):
            assert (ROOT / link.removeprefix(f"{raw}/main/")).is_file()


def test_addresses_are_those_of_the_repository():
    for name, address in PROJECT["urls"].items():
        assert address.startswith(PACKAGE["repository"]), name
        file = address.removeprefix(PACKAGE["repository"]).removeprefix("/blob/main/")
        assert (ROOT / file).exists(), name


def test_classifiers_say_what_the_project_says():
    assert f"Programming Language :: Python :: {PROJECT['requires-python'].removeprefix('>=')}" in PROJECT["classifiers"]
    assert len(set(PROJECT["classifiers"])) == len(PROJECT["classifiers"])
    # A licence is named by its key of SPDX only (PEP 639).
    assert not [one for one in PROJECT["classifiers"] if one.startswith("License")]


def test_citation_is_valid_and_of_this_version():
    yaml, jsonschema = pytest.importorskip("yaml"), pytest.importorskip("jsonschema")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))

    jsonschema.validate(citation, CITATION)
    assert (citation["version"], citation["license"]) == (PACKAGE["version"], PROJECT["license"])
    assert citation["repository-code"] == PACKAGE["repository"]
    assert citation["keywords"] == PROJECT["keywords"]
