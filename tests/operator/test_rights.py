"""What the operator may do: without root, with what it lacks for pppd named; and no core has its secrets."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from farlink.operator.config import Bundle, Line, Secrets
from farlink.operator.pppd import Pppd, needs, needs_of
from tests.operator.live_world import CANARY, FARLINK, PATIENCE_S, until, world_in

NOBODY = 65534
PPPD = shutil.which("pppd", path="/usr/sbin:/sbin")
CAMP = Bundle("camp", (Line("kansas", "/dev/ttyS0", "hayes", number="123"),), 1, user="camp")


def as_nobody(*groups: str) -> list[str]:
    """What starts a command without root's rights."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv, to start an operator as another user")
    command = [
        "setpriv",
        f"--reuid={NOBODY}",
        f"--regid={NOBODY}",
        f"--groups={','.join(groups)}" if groups else "--clear-groups",
    ]
    command += ["--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all"]
    return [*command, "--"]


@pytest.fixture
def interpreter() -> list[str]:
    """The same for a command of Python's. One that only root can reach needs the right to search folders, and no other."""
    prefix = as_nobody()
    # It starts another of its kind, as the operator does for its links.
    probe = [sys.executable, "-c", "import os, sys; os.execv(sys.executable, [sys.executable, '-c', ''])"]
    if subprocess.run([*prefix, *probe], capture_output=True).returncode != 0:
        prefix = [one.replace("-all", "-all,+dac_read_search") for one in prefix]
    done = subprocess.run([*prefix, *probe], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"this Python cannot be started by another user: {done.stderr}")
    return prefix


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of nobody's."""
    made = Path(tempfile.mkdtemp(prefix="farlink-nobody-"))
    os.chown(made, NOBODY, NOBODY)
    yield made
    shutil.rmtree(made)


def test_without_root_the_stand_in_does_all_that_is_done_with_root(folder, interpreter):
    with world_in(folder, interpreter) as made:
        configs = [made.configure(name, 1) for name in ("far", "near")]
        for path in folder.iterdir():
            os.chown(path, NOBODY, NOBODY)
        made.bank(1)
        far, near = (made.start(config) for config in configs)
        until(lambda: near.state("near-1") == "connected" == far.state("far-1"), lambda: near.log + far.log)
        status = dict(
            line.split(":\t", 1) for line in Path(f"/proc/{near.process.pid}/status").read_text().splitlines() if ":\t" in line
        )
        assert set(status["Uid"].split()) == set(status["Gid"].split()) == {str(NOBODY)}
        assert int(status["CapEff"], 16) & ~(1 << 2) == 0, "at most the right to reach Python"
        for command in (
            ["hold", near.config, "near-1"],
            ["release", near.config],
            ["status", near.config],
            ["down", near.config],
        ):
            done = subprocess.run(
                [*interpreter, *FARLINK, "bundle", *command], capture_output=True, text=True, timeout=PATIENCE_S
            )
            assert done.returncode == 0, (command, done.stderr)
        assert near.process.wait(PATIENCE_S) == 0
        assert near.children() == []
        assert len(near.of("near-1", "connected")) >= 1
        assert CANARY not in near.log + far.log
        assert far.end() == 0


def test_check_says_what_a_user_lacks_for_pppd_and_what_to_do(folder, interpreter):
    port = folder / "port"
    port.symlink_to("/dev/null")
    line = f'[[line]]\nname = "kansas"\nport = "{port}"\nprofile = "hayes"\nnumber = "12"\n'
    text = f'name = "camp"\njournal = "/camp.journal"\n{line}'
    (folder / "camp.toml").write_text(text)
    done = subprocess.run(
        [*interpreter, *FARLINK, "bundle", "check", folder / "camp.toml"], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, "the file is right all the same"
    notes = [line for line in done.stderr.splitlines() if line.startswith("note: ")]
    assert "note: this user may not write the journal in /: name another place with journal, or chown it" in notes
    (peer,) = (note for note in notes if "/etc/ppp/peers/farlink-camp@kansas is missing" in note)
    assert f"sudo farlink bundle check {folder}/camp.toml --install" in peer
    if PPPD is not None:
        (group,) = (note for note in notes if "may not start" in note)
        assert "usermod -aG dip" in group
    done = subprocess.run(
        [*interpreter, *FARLINK, "bundle", "check", folder / "camp.toml", "--install"],
        **{"capture_output": True, "text": True, "timeout": PATIENCE_S},
    )
    assert (done.returncode, "which root alone may" in done.stderr) == (2, True)


def test_root_needs_neither_groups_nor_installed_options(tmp_path, monkeypatch):
    program = tmp_path / "pppd"
    program.write_text("")
    program.chmod(0o750)
    compiler = Pppd(tmp_path / "run", secrets_folder=tmp_path)
    given = {"program": str(program), "device": Path("/dev/null")}
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert needs_of(CAMP, compiler, **given) == []
    assert [str(one) for one in needs_of(CAMP, compiler, **{**given, "device": tmp_path / "none"})] == [
        f"this kernel has no PPP ({tmp_path}/none is missing), so pppd cannot start: modprobe ppp_generic, or another kernel"
    ]
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    said = [one.message for one in needs_of(CAMP, compiler, **given)]
    assert any("is not setuid root" in one for one in said)
    assert any("farlink-camp@kansas is missing" in one for one in said)
    assert all(one.remedy for one in needs._rights(program))


def test_options_are_installed_for_those_who_are_not_root(tmp_path):
    (tmp_path / "peers").mkdir()
    compiler = Pppd(tmp_path, secrets_folder=tmp_path)
    assert compiler.differing(CAMP) == ["kansas"]
    written = compiler.install(CAMP, Secrets(CANARY))
    assert [path.name for path in written] == ["farlink-camp@kansas", "chap-secrets", "pap-secrets"]
    assert compiler.differing(CAMP) == []
    assert CANARY not in written[0].read_text()
    assert [path.stat().st_mode & 0o777 for path in written] == [0o640, 0o600, 0o600]
    written[0].write_text(written[0].read_text().replace("1500", "1400"))
    assert compiler.differing(CAMP) == ["kansas"], "the file has changed since"


def test_pppd_takes_the_installed_options_of_a_user_who_may_not_give_them(tmp_path):
    """`noauth` and `linkname` are root's alone, in a file of the user's; those that root has installed are taken."""
    import grp

    try:
        prefix = " ".join(as_nobody(str(grp.getgrnam("dip").gr_gid))).replace("--bounding-set=-all ", "")
    except KeyError:
        pytest.skip("there is no group dip")
    if PPPD is None or shutil.which("unshare") is None:
        pytest.skip("needs pppd and unshare")
    (tmp_path / "peers").mkdir()
    (tmp_path / "peers").chmod(0o755)
    above = [path for path in tmp_path.parents if path.is_relative_to(tempfile.gettempdir())][:-1]
    for path in (tmp_path, *above):
        path.chmod(path.stat().st_mode | 0o055)
    written = Pppd(tmp_path, secrets_folder=tmp_path).install(CAMP, Secrets(CANARY))
    own = tmp_path / "own.options"
    own.write_text(written[0].read_text())
    own.chmod(0o644)
    mount = f"mount --bind {tmp_path}/peers /etc/ppp/peers"
    done = [
        subprocess.run(
            ["unshare", "-m", "sh", "-c", f"{mount} && exec {prefix} {PPPD} {options} logfd 1 dryrun"],
            **{"capture_output": True, "text": True, "timeout": PATIENCE_S},
        )
        for options in ("call farlink-camp@kansas", f"file {own}")
    ]
    if "mount:" in done[0].stderr:
        pytest.skip(f"no mounts here: {done[0].stderr}")
    assert done[0].returncode in (0, 4), done[0]
    assert done[1].returncode == 2, done[1]
    assert "requires root privilege" in done[1].stdout + done[1].stderr


ABORTED = """
import resource, os, sys
resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
os.chdir(sys.argv[1])
os.execvp(sys.argv[2], sys.argv[2:])
"""


def test_no_core_is_made_of_an_operator_and_nobody_else_reads_its_memory(tmp_path):
    """Of a Python of the same user, under the same limit, one is made."""
    if os.geteuid() != 0 and resource.getrlimit(resource.RLIMIT_CORE)[1] != resource.RLIM_INFINITY:
        pytest.skip("this user may make no cores anyway")
    unlimited = [sys.executable, "-c", ABORTED, str(tmp_path)]
    control = subprocess.Popen([*unlimited, sys.executable, "-c", f"import os; secret = '{CANARY}'; os.abort()"])
    has_cores = os.WCOREDUMP(os.waitpid(control.pid, 0)[1])
    cores = [path for path in tmp_path.iterdir() if path.name.startswith("core")]
    with world_in(tmp_path) as made:
        made.bank(1)
        made.prefix = unlimited
        near = made.start(made.configure("near", 1))
        until(near.lines, lambda: near.log)
        limits = Path(f"/proc/{near.process.pid}/limits").read_text()
        assert re.search(r"Max core file size +1 +1 +bytes", limits), "what it starts inherits this"
        assert Path(f"/proc/{near.process.pid}/mem").stat().st_uid == 0, "another process of its user may not open it"
        near.process.send_signal(signal.SIGABRT)
        status = os.waitpid(near.process.pid, 0)[1]
        assert os.WTERMSIG(status) == signal.SIGABRT
        assert not os.WCOREDUMP(status)
        assert [path for path in tmp_path.iterdir() if path.name.startswith("core")] == cores
    if not has_cores:
        pytest.skip("this machine makes no core of any process, so that there was none says nothing")


def test_files_of_lines_have_names_that_no_other_line_has_and_former_ones_go(tmp_path):
    """Line `b-c` of bundle `a`, and line `c` of `a-b`, had one file, which each start wrote anew."""
    (tmp_path / "peers").mkdir()
    pairs = [("a", "b-c"), ("a-b", "c")]
    bundles = [Bundle(name, (Line(line, "/dev/ttyS9", "hayes", number="12"),), 1) for name, line in pairs]
    compiler = Pppd(tmp_path, secrets_folder=tmp_path)
    foreign = tmp_path / "peers" / "farlink-a-b-c"
    foreign.write_text("# c of a-b, compiled by farlink: changes are lost\n/dev/ttyS9\n")
    (tmp_path / "a-b-c.options").write_text("# of a person\n")
    written = [path for bundle in bundles for act in (compiler.write, compiler.install) for path in act(bundle, Secrets())]

    assert len(set(written)) == 4
    assert not foreign.exists()
    assert (tmp_path / "a-b-c.options").read_text() == "# of a person\n"
    assert [compiler.differing(bundle) for bundle in bundles] == [[], []]
    for content in (b"\xff\xfe", b""):
        foreign.write_bytes(content)
        compiler.install(bundles[0], Secrets())
        assert foreign.read_bytes() == content
