"""Every mistake of a bundle.toml is named at once, with its line and column; what pppd gets is what pppd knows."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from farlink import _core
from farlink.errors import OperatorError
from farlink.operator.config import check, load
from farlink.operator.config.bundle import BUDGET_KEYS, BUNDLE_BUDGET_KEYS, LIMIT_KEYS, LINE_KEYS, PPP_KEYS, TOP_KEYS
from farlink.operator.config.kinds import KINDS, traits_of
from farlink.operator.config.toml_places import places
from farlink.operator.live.loop import dialler_config
from farlink.operator.pppd import Pppd
from farlink.operator.pppd import options as pppd_options
from tests.conftest import ROOT

CANARY = "canary-password"
GOOD = """\
name = "camp"
use = 2
user = "camp"
secrets = "secrets.toml"

[ppp]
local = "10.64.64.1"
remote = "10.64.64.2"

[limits]
attempts = 5

[budget]
airtime_s_per_day = 20000

[[line]]
name = "kansas"
port = "PORT0"
profile = "iridium-9522b"
number = "00881600005123"

[[line]]
name = "iowa"
port = "PORT1"
profile = "iridium-9522b"
number = "00881600005124"
least_signal = 3
"""


@pytest.fixture
def ports():
    """The names of two ttys."""
    pairs = [os.openpty() for _ in range(2)]
    yield [os.ttyname(near) for _, near in pairs]
    for pair in pairs:
        for end in pair:
            os.close(end)


@pytest.fixture
def bundle(tmp_path, ports):
    """Write a bundle.toml, and its secrets."""

    def write(
        *edits: tuple[str, str], text: str = GOOD, secrets: str = f'password = "{CANARY}"\n[pin]\nkansas = "1234"\n'
    ) -> Path:
        for old, new in edits:
            assert old in text
            text = text.replace(old, new)
        for at, port in enumerate(ports):
            text = text.replace(f"PORT{at}", port)
        (tmp_path / "secrets.toml").write_text(secrets)
        (tmp_path / "secrets.toml").chmod(0o600)
        (tmp_path / "bundle.toml").write_text(text)
        return tmp_path / "bundle.toml"

    return write


def found(path: Path) -> list[tuple[int, int, str]]:
    checked = check(path)
    assert (checked.bundle is None) == bool(checked.mistakes)
    return [(one.line, one.column, f"{one.message} | {one.remedy}") for one in checked.mistakes]


def test_a_good_file_is_taken(bundle, ports):
    config, secrets = load(bundle())

    assert [line.port for line in config.lines] == ports
    assert (config.use, config.ppp.local, config.budget.airtime_s_per_day) == (2, "10.64.64.1", 20000)
    assert (config.ppp.echo_interval_s, config.ppp.echo_failures, config.ppp.echo_adaptive) == (15, 4, True)
    assert secrets.texts() == (CANARY, "1234")
    assert CANARY not in repr(secrets)


@pytest.mark.published("Zaghloul, Table 3.2")
def test_preset_of_the_thesis(bundle):
    ppp = load(bundle(("use = 2", 'use = 2\npreset = "zaghloul-2005"'), ('"10.64.64.2"', '"10.64.64.2"\nipcp_restart_s = 9')))[
        0
    ].ppp

    assert 10 <= ppp.auth_restart_s <= 15
    assert 10 <= ppp.lcp_restart_s <= 15
    assert (ppp.lcp_tries, ppp.echo_interval_s, ppp.echo_failures, ppp.connect_delay_s) == (10, 30, 2, 5.0)
    assert ppp.ipcp_restart_s == 9


# Edit -> line and column of its mistake, and what is said.
MISTAKES = {
    "hook": (("use = 2", 'use = 2\nhook = "nothing"'), (3, 8), ["hook: ", "is no program", "chmod +x"]),
    "back end": (("use = 2", 'use = 2\nback_end = "ppd"'), (3, 12), ["back_end: 'ppd' is not one of", "did you mean 'pppd'"]),
    "unknown key": (("use = 2", "uze = 2"), (2, 1), ["uze", "did you mean 'use'"]),
    "unknown key of a line": (("least_signal = 3", "lest_signal = 3"), (27, 1), ["line[1].lest_signal", "'least_signal'"]),
    "unknown kind": (('"kansas"', '"kansas"\nkind = "att"'), (18, 8), ["line[0].kind: 'att' is not one of at", "mean 'at'"]),
    "unknown table": (("[limits]", "[limit]"), (10, 1), ["limit", "'limits'"]),
    "unknown preset": (("use = 2", 'preset = "zaghlul-2005"'), (2, 10), ["zaghlul-2005", "'zaghloul-2005'"]),
    "unknown profile": (
        ('"iridium-9522b"\nnumber = "00881600005123"', '"iridum-9522b"\nnumber = "00881600005123"'),
        (19, 11),
        ["iridum-9522b", "'iridium-9522b'"],
    ),
    "profile of no file": (
        ('"iridium-9522b"\nnumber = "00881600005123"', '"own.toml"\nnumber = "00881600005123"'),
        (19, 11),
        ["own.toml"],
    ),
    "port missing": (('port = "PORT0"\n', ""), (16, 1), ["line[0].port is missing"]),
    "port not there": (("PORT0", "/dev/serial/by-id/none"), (18, 8), ["/dev/serial/by-id/none", "no such file"]),
    "port no device": (("PORT0", "/etc/passwd"), (18, 8), ["/etc/passwd: not a device"]),
    "port used twice": (("PORT1", "PORT0"), (24, 8), ["line[1].port", "line[0]"]),
    "name used twice": (('"iowa"', '"kansas"'), (23, 8), ["line[1].name", "line[0]"]),
    "number with letters": (("00881600005124", "0088I600005124"), (26, 10), ["line[1].number", "0088I600005124", "digits"]),
    "number missing": (('number = "00881600005124"\n', ""), (22, 1), ["line[1].number is missing", "answer"]),
    "number of an answering line": (('"00881600005124"', '"00881600005124"\nrole = "answer"'), (26, 10), ["dials nothing"]),
    "failed longer than its longest": (
        ("attempts = 5", "failed_s = 900"),
        (11, 12),
        ["longest_failed_s: 600 is less than failed_s, 900"],
    ),
    "blocked shorter than failed": (
        ("attempts = 5", "blocked_s = 60"),
        (11, 13),
        ["blocked_s: 60 is less than longest_failed_s, 600"],
    ),
    "more than there are": (("use = 2", "use = 3"), (2, 7), ["use: 3 of 2 lines"]),
    "money without a price": (("airtime_s_per_day = 20000", "money_per_day = 9"), (14, 17), ["money_per_min"]),
    "unknown rule of the primary": (("use = 2", 'primary = "pases-on"'), (2, 11), ["pases-on", "did you mean 'passes-on'"]),
    "rank that is none": (("least_signal = 3", "rank = 1.5"), (27, 8), ["line[1].rank: 1.5", "whole number from 0 to 1000"]),
    "day's limit above the month's": (
        ("airtime_s_per_day = 20000", "airtime_s_per_day = 20000\nairtime_s_per_month = 10000"),
        (14, 21),
        ["budget.airtime_s_per_day: 20000 is more than airtime_s_per_month, 10000", "never reached"],
    ),
    "more than all lines may have": (
        ("[budget]", "[bundle_budget]\nairtime_s_per_day = 10000\n\n[budget]"),
        (17, 21),
        ["budget.airtime_s_per_day: 20000 is more than all lines may have, 10000"],
    ),
    "more than a day has": (
        ("[budget]", "[bundle_budget]\nairtime_s_per_day = 200000\n\n[budget]"),
        (14, 21),
        ["200000", "a day of 2 lines has 172800"],
    ),
    "month's money of all without a price": (
        ("[budget]", "[bundle_budget]\nmoney_per_month = 100\n\n[budget]"),
        (14, 19),
        ["bundle_budget.money_per_month", "no line that dials has a price", "money_per_min"],
    ),
    "a line's money without a price": (
        ("least_signal = 3", "budget = { money_per_day = 3 }"),
        (27, 28),
        ["line[1].budget.money_per_day without money_per_min"],
    ),
    "unknown key of a line's budget": (
        ("least_signal = 3", "[line.budget]\nairtime_s_per_dy = 3"),
        (28, 1),
        ["line[1].budget.airtime_s_per_dy", "did you mean 'airtime_s_per_day'"],
    ),
    "a line's budget that is no table": (("least_signal = 3", "budget = 3"), (27, 10), ["line[1].budget: 3 is not a table"]),
    "callers of a line that dials": (("least_signal = 3", 'callers = ["1"]'), (27, 11), ["line[1].callers", "takes no calls"]),
    "callers that are none": (("least_signal = 3", "callers = [1]"), (27, 11), ["line[1].callers", "881600005001"]),
    "echo below a full queue": (
        ('"10.64.64.2"', '"10.64.64.2"\necho_interval_s = 5'),
        (9, 19),
        ["20 s, and a full queue takes 30 s (6 packets of 1500 bytes at 2400 bit/s)", "healthy calls would be killed"],
    ),
    "MRRU below that of IPv6": (('"10.64.64.2"', '"10.64.64.2"\nipv6 = true\nmrru_bytes = 1279'), (10, 14), ["1279", "1280"]),
    "one address for both ends": (('"10.64.64.2"', '"10.64.64.1"'), (8, 10), ["10.64.64.1"]),
    "no address": (('"10.64.64.2"', '"10.64.64.256"'), (8, 10), ["an IPv4 address"]),
    "two lines on one SIM": (('"iowa"', '"iowa"\nsim = "8988169312345"'), (24, 7), ["...2345", "line[0]", "one call"]),
    "signal that the modem never has": (("least_signal = 3", "least_signal = 6"), (27, 16), ["6", "0 to 5"]),
    "no secrets": (('"secrets.toml"', '"none.toml"'), (4, 11), ["none.toml", "No such file"]),
    "wrong type": (("use = 2", 'use = "two"'), (2, 7), ["'two'", "whole number"]),
    "no TOML": (("use = 2", "use = "), (2, 7), ["not valid TOML"]),
    "twice": (("use = 2", "use = 2\nuse = 3"), (3, 1), ["use", "twice"]),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_each_mistake_is_named_with_its_place(bundle, name):
    edit, place, words = MISTAKES[name]
    more = [('"kansas"', '"kansas"\nsim = "8988169312345"')] if name == "two lines on one SIM" else []
    if more:
        place = (place[0] + 1, place[1])

    (line, column, said), *others = found(bundle(edit, *more))
    others = [one for one in others if not one[2].startswith("user: there is no password")]

    for word in words:
        assert word in said
    assert (line, column) == place
    assert not others


ANSWERS = ('number = "00881600005124"', 'role = "answer"')
LAST = "least_signal = 3"
MISTAKES_OF_TWO = {
    "rank that decides nothing": (
        [("use = 2", 'primary = "none"'), (LAST, "rank = 3")],
        (27, 8),
        "line[1].rank: 3 decides nothing, as all lines are used and none is the primary one",
    ),
    "price of an answering line": (
        [ANSWERS, (LAST, "budget = { money_per_min = 1 }")],
        (27, 28),
        "line[1].budget.money_per_min: an answering line pays nothing",
    ),
    "a modem that does not say who calls": (
        [('"iridium-9522b"\nnumber = "00881600005124"\nleast_signal = 3', '"hayes"\nrole = "answer"\ncallers = ["1"]')],
        (27, 11),
        "line[1].callers: a Hayes-compatible modem does not say who calls",
    ),
    "a modem that answers by itself": (
        [('"iridium-9522b"\nnumber = "00881600005124"\nleast_signal = 3', '"own.toml"\nrole = "answer"\ncallers = ["1"]')],
        (27, 11),
        "line[1].callers: a Own answers by itself",
    ),
}


@pytest.mark.parametrize("name", MISTAKES_OF_TWO)
def test_what_is_wrong_only_together_is_named(bundle, tmp_path, name):
    edits, place, words = MISTAKES_OF_TWO[name]
    (tmp_path / "own.toml").write_text('title = "Own"\ninit = ["ATS0=1"]\nanswer = "auto"\nnames_callers = true\n')

    assert [(line, column, said.partition(" | ")[0]) for line, column, said in found(bundle(*edits))] == [(*place, words)]


def test_ranks_budgets_and_callers_reach_the_dialler(bundle):
    path = bundle(
        ("use = 2", 'use = 1\nprimary = "stays-lost"'),
        ("[budget]", "[bundle_budget]\nairtime_s_per_month = 90000\nmoney_per_day = 40\n\n[budget]\nmoney_per_min = 1.5"),
        (LAST, "rank = 2\n[line.budget]\nairtime_s_per_month = 50000\nmoney_per_min = 0.5"),
    )
    config, _ = load(path)
    given = dialler_config(config, traits_of(config, Path()))
    told = json.loads(given)
    _core.BundleDialler(given)

    assert (told["use"], told["primary"], [line["rank"] for line in told["lines"]]) == (1, "stays-lost", [0, 2])
    assert (told["budget"]["airtime_s_per_month"], told["budget"]["money_per_day"]) == (90000, 40)
    budgets = [{key: value for key, value in line["budget"].items() if value is not None} for line in told["lines"]]
    assert budgets == [
        {"airtime_s_per_day": 20000, "money_per_min": 1.5},
        {"airtime_s_per_day": 20000, "airtime_s_per_month": 50000, "money_per_min": 0.5},
    ]
    answering = [("use = 2", "use = 1"), ANSWERS, (LAST, 'callers = ["00881600005001", "camp"]')]
    assert load(bundle(*answering))[0].lines[1].callers == ("00881600005001", "camp")


def test_all_mistakes_are_named_at_once(bundle):
    """Those of one place that exclude each other are left out."""
    names = [
        "unknown key",
        "unknown profile",
        "number with letters",
        "echo below a full queue",
        "port used twice",
        "no address",
    ]

    said = found(bundle(*[MISTAKES[name][0] for name in names]))

    assert len(said) == len(names)
    assert said == sorted(said)
    with pytest.raises(OperatorError, match=r"bundle.toml, line 2, column 1: .*\(and 5 more\)"):
        load(bundle(*[MISTAKES[name][0] for name in names]))


def test_port_that_may_not_be_read(bundle, monkeypatch):
    """Root may read all, so the system is asked through a stand-in."""
    path = bundle()
    monkeypatch.setattr(os, "access", lambda *_: False)

    said = found(path)

    assert [one[:2] for one in said] == [(18, 8), (24, 8)]
    assert "usermod -aG" in said[0][2]


def test_secrets_that_others_may_read(bundle, tmp_path):
    path = bundle()
    (tmp_path / "secrets.toml").chmod(0o640)

    ((line, column, said),) = found(path)

    assert (line, column) == (4, 11)
    assert "mode 0640" in said
    assert "chmod 600" in said


@pytest.mark.parametrize(
    ("secrets", "words"),
    [
        ('password = "{}"\n[pin]\nkansa = "1234"', "did you mean 'kansas'"),
        ('password = "{}"\n[pin]\nkansas = "{}"', "4 to 8 digits"),
        ('pasword = "{}"', "did you mean 'password'"),
        ("password = {}", "not valid TOML (at line 1)"),
        ("password = 'a\"{}'", "without quotes"),
        ('password = "@/{}"', "which pppd takes for the name of a file"),
        ("", "there is no password"),
    ],
)
def test_mistakes_of_secrets_show_none(bundle, secrets, words):
    said = found(bundle(secrets=secrets.replace("{}", CANARY)))

    assert words in str(said)
    assert CANARY not in str(said)


def test_a_pin_in_the_place_of_a_name_is_not_shown(bundle):
    said = str(found(bundle(secrets='password = "x"\n[pin]\n8265 = "kansas"')))
    assert "pin.****: there is no such line" in said
    assert "8265" not in said


def test_a_user_that_is_everybody_for_pppd_is_refused(bundle):
    ((_, _, said),) = found(bundle(('user = "camp"', 'user = "*"')))
    assert "everybody" in said


def test_check_as_a_command(farlink, bundle):
    done = farlink("bundle", "check", bundle())
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "Bundle camp: 2 of 2 lines")

    wrong = bundle(("use = 2", "uze = 2"), ("00881600005124", "0088I600005124"))
    done = farlink("bundle", "check", wrong)
    assert (done.returncode, done.stdout) == (2, "")
    assert [line.partition(": ")[0] for line in done.stderr.splitlines()] == ["error", "hint"] * 2
    assert "bundle.toml, line 2, column 1: uze" in done.stderr

    done = farlink("bundle", "check", wrong, "--json")
    assert done.returncode == 2
    assert [(one["line"], one["column"]) for one in json.loads(done.stdout)["mistakes"]] == [(2, 1), (26, 10)]
    done = farlink("bundle", "check", bundle(), "--json")
    assert (done.returncode, json.loads(done.stdout)["bundle"]["name"]) == (0, "camp")
    assert CANARY not in done.stdout + done.stderr
    done = farlink("bundle", "check", bundle(), "--show-options")
    assert "multilink\nmrru 1500\n" in done.stdout
    assert CANARY not in done.stdout


PPPD = shutil.which("pppd", path="/usr/sbin:/sbin")


@pytest.mark.parametrize("preset", ["farlink", "zaghloul-2005"])
@pytest.mark.parametrize(
    "edit",
    [("use = 2", "use = 2"), ('"10.64.64.2"', '"10.64.64.2"\nipv6 = true\ncompression = true'), ('local = "10.64.64.1"\n', "")],
)
@pytest.mark.parametrize("role", ["dial", "answer"])
def test_pppd_knows_every_option(bundle, tmp_path, preset, edit, role):
    """``pppd file X dryrun`` ends with 2 at an unknown option; where the kernel has no PPP, 4 is as far as it goes."""
    if PPPD is None:
        pytest.skip("pppd is not installed, so its options were not tried: apt install ppp")
    answer = [('number = "00881600005123"', 'role = "answer"'), ('number = "00881600005124"', 'role = "answer"')]
    config, secrets = load(
        bundle(edit, ('name = "camp"', f'name = "camp"\npreset = "{preset}"'), *(answer if role == "answer" else []))
    )
    written = Pppd(tmp_path, secrets_folder=tmp_path).write(config, secrets)

    for path in written[:2]:
        done = subprocess.run([PPPD, "file", path, "logfd", "1", "dryrun"], capture_output=True, text=True, timeout=60)
        assert done.returncode in (0, 4), done.stderr + done.stdout
        assert "persist" not in path.read_text().replace("nopersist", "")
        broken = path.with_suffix(".broken")
        broken.write_text(path.read_text() + "multilinc\n")
        assert subprocess.run([PPPD, "file", broken, "dryrun"], capture_output=True, timeout=60).returncode == 2


@pytest.mark.parametrize("role", ["dial", "answer"])
def test_the_answering_end_waits_for_the_first_request_and_asks_for_chap(bundle, role):
    """`connect-delay` works with a connect script only, which would hang up: the dialling operator waits before it starts pppd.

    `auth` alone asks for EAP first, which no restart here is for.
    """
    answer = [('number = "00881600005123"', 'role = "answer"'), ('number = "00881600005124"', 'role = "answer"')]
    config, _ = load(bundle(*(answer if role == "answer" else [])))

    for text in Pppd(Path("/run/farlink")).files(config).values():
        rows = text.splitlines()
        assert ("silent" in rows, "require-chap" in rows) == (role == "answer",) * 2
        assert "connect-delay" not in text
        # A dead line stays in the bundle, and takes its share, while pppd asks it in vain to terminate: each time a restart.
        assert "lcp-max-terminate 1" in rows


def test_secrets_of_others_stay_and_ours_are_private(bundle, tmp_path):
    config, secrets = load(bundle())
    (tmp_path / "chap-secrets").write_text('other * "kept" *\n')
    for _ in range(2):
        written = Pppd(tmp_path, secrets_folder=tmp_path).write(config, secrets)

    assert (tmp_path / "chap-secrets").read_text() == (
        f'other * "kept" *\n# farlink camp begins\n"camp" * "{CANARY}" *\n# farlink camp ends\n'
    )
    for path in written:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert CANARY not in "".join(Pppd(tmp_path).files(config).values())


def test_long_names_of_bundles_have_short_endpoints(bundle):
    config, _ = load(bundle(('name = "camp"', f'name = "{"c" * 32}"')))

    (endpoint,) = {row for row in pppd_options._multilink(config) if row.startswith("endpoint local:")}
    assert len(endpoint.partition(":")[2].split(".")) == 20


KEY = st.text(max_size=4)
VALUE = st.recursive(
    st.integers() | st.text(max_size=5) | st.booleans() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEY, inner, max_size=3),
    max_leaves=8,
)


def leaves(value, path=()):
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*path, key))
    else:
        yield path, value


@given(st.dictionaries(KEY, VALUE, max_size=4), st.booleans())
def test_places_are_where_values_stand(tables, is_multiline):
    text = tomli_w.dumps(tables, multiline_strings=is_multiline)
    lines = text.split("\n")

    found = places(text)

    for path, value in leaves(tomllib.loads(text)):
        line, column = found.values[path]
        shown = lines[line - 1][column - 1 :]
        if isinstance(value, str):
            assert shown[0] in "\"'"
        else:
            assert shown.startswith(("true", "false") if isinstance(value, bool) else tomli_w.dumps({"a": value})[4:8].strip())


BAD = (
    st.none()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=6)
    | st.booleans()
    | st.lists(st.integers(), max_size=2)
)


@given(data=st.data())
def test_no_value_ends_in_a_traceback(tmp_path_factory, data):
    """Any value in any place: refused with a place in the file, or taken."""
    path = tmp_path_factory.mktemp("fuzz") / "bundle.toml"
    tables = tomllib.loads(GOOD)
    places_of = [(tables, key) for key in tables] + [(tables["line"][0], key) for key in tables["line"][0]]
    places_of += [(tables["ppp"], key) for key in ("local", "mru_bytes", "ipv6", "echo_interval_s", "nonsense")]
    for table, key in data.draw(st.lists(st.sampled_from(places_of), max_size=4)):
        table[key] = data.draw(BAD.filter(lambda value: value is not None))
    path.write_text(tomli_w.dumps(tables), encoding="utf-8")

    lines = path.read_text(encoding="utf-8").count("\n")
    checked = check(path)

    assert checked.mistakes, "its ports are not there"
    assert all(1 <= one.line <= max(lines, 1) and one.column >= 1 for one in checked.mistakes)


@given(st.binary(max_size=200) | st.text(alphabet="[]{}\"='.,#\n ab1\\", max_size=60).map(str.encode))
def test_no_text_ends_in_a_traceback(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("fuzz") / "bundle.toml"
    path.write_bytes(content)

    with suppress(OperatorError):  # no UTF-8
        assert check(path).bundle is None


def test_the_files_of_the_guide_are_right(bundle):
    guide = (ROOT / "docs" / "guides" / "bundle-operator.md").read_text(encoding="utf-8")
    text, secrets = (block.partition("```")[0] for block in guide.split("```toml\n")[1:])
    for at, name in enumerate(("A9007", "A9008")):
        text = text.replace(f"/dev/serial/by-id/usb-FTDI_{name}-if00-port0", f"PORT{at}")

    config, _ = load(bundle(text=text, secrets=secrets))
    assert [line.name for line in config.lines] == ["kansas", "iowa"]

    (ship,) = re.findall(r"^```toml ship.toml\n(.*?)^```$", guide, flags=re.MULTILINE | re.DOTALL)
    mistakes = check(bundle(text=ship)).mistakes
    assert [one.message.rpartition(": ")[2] for one in mistakes] == ["no such file or directory"] * 3
    for key in (*TOP_KEYS, *LINE_KEYS, *KINDS["at"].keys, *PPP_KEYS, *LIMIT_KEYS, *BUDGET_KEYS, *BUNDLE_BUDGET_KEYS):
        assert f"`{key}`" in guide or f"`[{key}]`" in guide or f"`[[{key}]]`" in guide, key
