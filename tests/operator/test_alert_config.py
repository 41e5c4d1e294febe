"""Mistakes of ``[alerts]`` and of its URLs are named with their place, and no URL is shown."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from farlink.operator.alerts import CAUSES
from farlink.operator.config import check, load
from tests.conftest import ROOT

TEXT = """\
name = "camp"
back_end = "stand-in"
secrets = "secrets.toml"

[[line]]
name = "kansas"
port = "PORT0"
profile = "iridium-9522b"
number = "00881600005123"

[alerts]
after_s = 60

[alerts.standby]
port = "PORT1"
profile = "sim7600"
number = "+4930123456"
"""
SECRET = "canary-url-77aa"
URLS = f'[pin]\nstandby = "4711"\n[alerts]\noffice = "json://u:{SECRET}@example.org/{SECRET}"\n'


@pytest.fixture
def written(tmp_path: Path):
    pairs = [os.openpty() for _ in range(2)]

    def write(text: str = TEXT, secrets: str = URLS) -> Path:
        for at, (_, slave) in enumerate(pairs):
            text = text.replace(f"PORT{at}", os.ttyname(slave))
        (tmp_path / "secrets.toml").write_text(secrets)
        (tmp_path / "secrets.toml").chmod(0o600)
        (tmp_path / "camp.toml").write_text(text)
        return tmp_path / "camp.toml"

    yield write
    for pair in pairs:
        for file in pair:
            os.close(file)


def test_a_good_file_is_taken(written):
    bundle, secrets = load(written())
    assert (bundle.alerts.after_s, bundle.alerts.severity) == (60, "warning")
    assert bundle.alerts.standby is not None
    assert (bundle.alerts.standby.way, bundle.alerts.standby.number) == ("sms", "+4930123456")
    assert list(secrets.alert_urls) == ["office"]
    assert secrets.pins == {"standby": "4711"}
    assert SECRET not in repr(secrets)
    assert SECRET not in repr(bundle)
    assert secrets.hidden(f"cannot reach {secrets.alert_urls['office']}") == "cannot reach ***"


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("after_s = 60", "after_s = -1", 12, "alerts.after_s: -1 is not a number from 0 to 604800"),
        ("after_s = 60", 'severity = "bad"', 12, "alerts.severity: 'bad' is not one of info, warning, critical"),
        ("after_s = 60", "afters = 60", 12, "alerts.afters: there is no such key | did you mean 'after_s'?"),
        ("after_s = 60", 'urls_from = "none.toml"', 12, "none.toml: No such file"),
        ("after_s = 60", "urls_from = 5", 12, "alerts.urls_from: 5 is not a path"),
        ('"PORT1"', '"PORT0"', 15, "alerts.standby.port: PORT0 is that of line[0], too"),
        ('"PORT1"', '"/dev/none"', 15, "alerts.standby.port: /dev/none: no such file or directory"),
        ('"sim7600"', '"hayes"', 16, "alerts.standby.profile: a Hayes-compatible modem sends no short messages"),
        ('"sim7600"', '"sim760"', 16, "alerts.standby.profile: there is no profile 'sim760'"),
        ('"+4930123456"', '"*99#"', 17, "alerts.standby.number: *99# is no number of a telephone"),
        ('"+4930123456"', f'"{"1" * 21}"', 17, f"alerts.standby.number: {'1' * 21} is no number of a telephone"),
        ('"+4930123456"', '"office"', 17, "alerts.standby.number: 'office' is not a number to dial"),
        ('number = "+4930123456"', "", 14, "alerts.standby.number is missing"),
        ('name = "kansas"', 'name = "standby"', 6, "line[0].name: standby is the name of the line of [alerts.standby]"),
    ],
)
def test_mistakes_are_named_with_their_place(written, old, new, line, said):
    assert old in TEXT
    config = written(TEXT.replace(old, new))
    found = [(one.line, f"{one.message} | {one.remedy}") for one in check(config).mistakes]
    port = os.path.realpath(config.read_text().split('port = "')[1].split('"')[0])
    assert any(said in text.replace(port, "PORT0") for _, text in found), found
    assert any(at == line for at, text in found if said in text.replace(port, "PORT0")), found


def test_alerts_that_are_no_table_are_refused(written):
    config = written("alerts = 5\n" + TEXT.split("[alerts]", maxsplit=1)[0])
    assert "alerts: 5 is not a table" in str(check(config).mistakes)


@pytest.mark.parametrize(
    ("secrets", "said"),
    [
        ("alerts = 5\n", "alerts: not a table"),
        (f'[alerts]\n"json://{SECRET}/" = "office"\n', "alerts, URL 1: its name is none of up to 32 letters"),
        (f'[alerts]\noffice = "{SECRET}"\n', "alerts.office: not a URL"),
        ("[alerts]\noffice = 5\n", "alerts.office: not a URL"),
        (f'[alerts]\noffice = "json://{SECRET}\\n"\n', "alerts.office: not a URL"),
        (f'[alerts]\noffice = "json://{SECRET}{"x" * 2000}"\n', "alerts.office: not a URL"),
        ("[alerts]\n" + "".join(f'n{at} = "json://{SECRET}"\n' for at in range(20)), "alerts: 20 URLs"),
        (f'[alert]\noffice = "json://{SECRET}"\n', "alert: there is no such key"),
        (f'[alerts]\noffice = "json://{SECRET}\n', "not valid TOML"),
    ],
)
def test_mistakes_of_urls_are_named_without_them(written, secrets, said):
    found = str(check(written(secrets=secrets)).mistakes)
    assert said in found
    assert SECRET not in found


def test_a_call_needs_a_url_to_which_messages_go(written):
    config = written(TEXT.replace("[alerts.standby]\n", '[alerts.standby]\nway = "call"\n'), secrets="")
    assert "a call carries messages to URLs, and there is none" in str(check(config).mistakes)
    assert "/secrets.toml has no URL" in str(
        check(written(TEXT.replace("after_s = 60", 'urls_from = "secrets.toml"'), secrets="")).mistakes
    )


def test_urls_may_stand_in_a_file_of_their_own_which_others_may_not_read(written, tmp_path):
    config = written(TEXT.replace("after_s = 60", 'urls_from = "urls.toml"'), secrets='[alerts]\nnot_used = "json://a"\n')
    (tmp_path / "urls.toml").write_text('[alerts]\noffice = "json://b"\n')
    (tmp_path / "urls.toml").chmod(0o644)
    assert "others may read or write it" in str(check(config).mistakes)
    (tmp_path / "urls.toml").chmod(0o600)
    assert load(config)[1].alert_urls == {"office": "json://b"}


def test_the_guide_has_every_cause_and_its_files_are_right(tmp_path):
    guide = (ROOT / "docs" / "guides" / "bundle-alerts.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \| (\w+) \|", guide, re.MULTILINE)
    told = {name: severity for names, severity in rows for name in re.findall("`(.*?)`", names)}
    assert told == {one.name: one.severity for one in CAUSES.values()}
    (config,) = re.findall(r"^```toml camp.toml\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    (secrets,) = re.findall(r"^```toml\n# secrets.toml\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    (tmp_path / "camp.toml").write_text(config)
    (tmp_path / "secrets.toml").write_text(secrets)
    (tmp_path / "secrets.toml").chmod(0o600)
    bundle, read = load(tmp_path / "camp.toml", needs_ports=False)
    assert bundle.alerts.standby is not None
    apprise = pytest.importorskip("apprise")
    for name, url in read.alert_urls.items():
        assert apprise.Apprise.instantiate(url) is not None, name
