"""The Rust files of a crate have no dependency cycles."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.rust_cycles import cycles, read

CRATES = sorted(Path(__file__).resolve().parents[2].glob("crates/*/src"))


@pytest.mark.parametrize("source", CRATES, ids=lambda source: source.parent.name)
def test_no_rust_files_depend_on_each_other_in_a_cycle(source):
    assert len(read(source)) > 5

    remedy = "move what they share to a file of its own, or a method to the file of the type that it needs"
    assert cycles(source) == [], f"files that use each other: {remedy}"


def crate(folder: Path, **files: str) -> Path:
    """Files of a crate, named by module with two underscores for a folder."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.rs"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "back",
    [
        "use crate::one::One;",
        "use super::one::One;",
        "use super::{five::Five, one::{self, One}};",
        "pub(crate) use crate::one;",
        "fn f() -> crate::one::One { todo!() }",
        "#[cfg(test)]\nmod tests { fn f() {} }\nfn f() { super::one::f() }",
        "#[cfg(test)]\nuse super::four;\nuse super::one::One;",
    ],
)
def test_a_cycle_is_found_in_every_notation(tmp_path, back):
    source = crate(
        tmp_path,
        lib="mod one; mod two; mod three; mod four; mod five;",
        one="use crate::two::Two;",
        two="use super::three::Three;",
        three=back,
    )
    crate(source, four="use crate::one::One;", five="")

    assert cycles(source) == [["one", "three", "two"]]


def test_a_reexported_name_counts_for_the_file_that_defines_it(tmp_path):
    source = crate(
        tmp_path,
        lib="mod link; mod path;",
        link__mod="mod rate; mod delay; pub use rate::Rate; pub use delay::*;",
        link__rate="use crate::path::Path;",
        link__delay="pub struct Delay;",
        path="use crate::link::{Delay as OneWay, Rate};",
    )

    assert cycles(source) == [["link::rate", "path"]]


def test_each_cycle_is_one_group(tmp_path):
    source = crate(
        tmp_path,
        lib="",
        a="use crate::b::B;",
        b="use crate::{a::A, c::C};",
        c="use crate::d::D;",
        d="use crate::{c::C, e::E};",
        e="",
    )

    assert cycles(source) == [["a", "b"], ["c", "d"]]


@pytest.mark.parametrize(
    "back",
    [
        "// use crate::one::One;",
        "/* use crate::one::One; */",
        'const WHAT: &str = "crate::one::One";',
        "#[cfg(test)]\nuse crate::one::One;",
        "#[cfg(test)]\nmod tests {\n    use crate::one::One;\n    fn f() { if true { g(); } }\n}",
        "#[cfg(test)]\n#[rustfmt::skip]\nfn f() { crate::one::f(); }",
        "use std::one::One;",
    ],
)
def test_strings_comments_and_tests_are_not_dependencies(tmp_path, back):
    source = crate(tmp_path, lib="mod one; mod two;", one="use crate::two::Two;", two=back)

    assert cycles(source) == []


@pytest.mark.parametrize(("attribute", "found"), [("", [["one", "probe"]]), ("#[cfg(test)]", [])])
def test_a_file_only_for_tests_is_ignored(tmp_path, attribute, found):
    source = crate(
        tmp_path, lib=f"mod one; {attribute}\nmod probe;", one="use crate::probe::Probe;", probe="use crate::one::One;"
    )

    assert cycles(source) == found


def test_a_file_and_its_submodules_are_one_module(tmp_path):
    source = crate(tmp_path, lib="mod one;", one="mod parts; use parts::Part;", one__parts="use super::One;")

    assert cycles(source) == []
