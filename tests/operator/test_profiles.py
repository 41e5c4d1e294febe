"""Profiles of modems: those of farlink are whole, mistakes are all named."""

from __future__ import annotations

import pytest

from farlink.errors import OperatorError
from farlink.operator.at.profiles import load, names


@pytest.mark.parametrize("name", ["iridium-9522b", "a3la", "iridium-9505a", "hayes", "sim7600"])
def test_each_profile_loads(name):
    assert name in names()
    profile = load(name)
    # Results are sent, in words; of Iridium's modems with Data After Voice.
    assert any("V1" in line and "Q0" in line for line in profile.init)
    assert ("AT+CBST=71,0,1" in profile.init) == (profile.signal == "bars")


def test_every_mistake_is_named_with_what_to_do(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('titel = "x"\ninit = ["ATZ", "ls"]\nhang_up = "dt"\ndial = "ATDT"\ndial_limit_s = 0\nregisters = 1\n')

    with pytest.raises(OperatorError) as refused:
        load(str(path))

    for said in (
        "titel: there is no such key",
        "title is missing",
        "init: ",
        "hang_up: 'dt'",
        "dial: 'ATDT'",
        "dial_limit_s: 0",
    ):
        assert said in refused.value.message
    assert "registers: 1 is not true or false" in refused.value.message
    assert "did you mean 'title'?" in refused.value.remedy
    assert "did you mean 'dtr'?" in refused.value.remedy


def test_a_least_signal_above_the_scale_is_refused(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('title = "x"\ninit = ["ATZ"]\nsignal = "bars"\nleast_signal = 9\n')

    with pytest.raises(OperatorError, match="least_signal: 9 is not a whole number from 0 to 5"):
        load(str(path))


@pytest.mark.parametrize(("text", "said"), [("init = [", "not valid TOML"), (None, "cannot read a profile")])
def test_a_file_that_is_none_is_refused(tmp_path, text, said):
    path = tmp_path / "mine.toml"
    if text is not None:
        path.write_text(text)

    with pytest.raises(OperatorError, match=said):
        load(str(path))


def test_an_unknown_profile_is_named_with_the_nearest():
    with pytest.raises(OperatorError) as refused:
        load("iridium")

    assert "did you mean 'iridium-9505a'?" in refused.value.remedy or "iridium-9522b" in refused.value.remedy
