"""`farlink trace show` of a capture and `farlink bundle fit --replay`, as a user types them."""

from __future__ import annotations

import json
import tomllib

import pytest
from tests.conftest import assert_refused

pytest.importorskip("scipy.stats")
pytest.importorskip("matplotlib")

BEGIN_S = 1_783_166_400
DOWN = [(40.0, 52.5), (90.0, 93.0), (130.0, 160.0)]

SCENARIO = """
title = "A file over a line that drops"
duration_s = 400
runs = 1
[link]
rate_bps = 19200
delay_s = 0.5
{channel}
[transport.sack]
kind = "tcp"
variant = "sack"
max_window_segments = 8
[flow.f]
transport = "sack"
traffic = {{ kind = "file", bytes = 3e5 }}
"""
CALLS = """[link.channel]
kind = "call-drops"
up = { distribution = "exponential", mean_s = 60 }
redial = { distribution = "constant", value_s = 10 }
"""


@pytest.fixture
def log(tmp_path):
    """A link that is dialled at 0, up from 0 on, and down three times."""
    rows = [(0.0, "connected")]
    for begin, end in DOWN:
        rows += [(begin, "dropped"), (end, "connected")]
    rows += [(300.0, "dropped")]
    text = "".join(f"{BEGIN_S + time_s},modem-1,{event}\n" for time_s, event in rows)
    path = tmp_path / "log.csv"
    path.write_text("time,link,event\n" + text)
    return path


def run(farlink, tmp_path, channel):
    (tmp_path / "s.toml").write_text(SCENARIO.format(channel=channel))
    done = farlink("run", "s.toml", "--pcap", "captures", "--json", "result.json")
    assert done.returncode == 0, done.stderr
    return tmp_path / "captures" / "point-000-run-0.pcapng"


def test_a_log_is_replayed_and_its_drops_are_drawn(farlink, tmp_path, log):
    done = farlink("bundle", "fit", log, "--replicates", "49", "--replay", "replay.toml")
    assert done.returncode == 0, done.stderr
    assert "replay: replay.toml" in done.stderr
    text = (tmp_path / "replay.toml").read_text()
    link = tomllib.loads(text)["link"]
    assert link["channel"] == {"kind": "outage", "schedule": [list(spell) for spell in DOWN]}
    assert link["return"]["channel"] == link["channel"]

    capture = run(farlink, tmp_path, text)
    done = farlink("trace", "show", capture, "--drops", log, "-o", "drops.png")

    assert done.returncode == 0, done.stderr
    assert "Drops       3, of 1 link; 3 with something sent again" in done.stdout
    assert "10.0.0.1:49152 → 10.0.0.2:40000" in done.stdout
    assert "Data        300 kB" in done.stdout
    assert "the first event of the log is put there" in done.stderr
    assert (tmp_path / "drops.png").read_bytes().startswith(b"\x89PNG")
    # Nothing new arrives while the link is down.
    from farlink.capture import connections, files

    read = files.read(capture)
    flow = connections.chosen(connections.connections(read), read).forward
    for begin, end in DOWN:
        inside = (flow.acknowledged_time_s > begin + 0.5) & (flow.acknowledged_time_s < end)
        assert not inside.any()


def test_a_capture_of_a_random_process_is_drawn_without_a_log(farlink, tmp_path):
    capture = run(farlink, tmp_path, CALLS)

    done = farlink("trace", "show", capture, "--span", "20:120", "-o", "part.svg")

    assert done.returncode == 0, done.stderr
    assert "sent again" in done.stdout
    assert "Drops" not in done.stdout
    assert b"<svg" in (tmp_path / "part.svg").read_bytes()


def test_log_and_capture_clocks_are_aligned(farlink, tmp_path, log):
    capture = run(farlink, tmp_path, CALLS)

    moved = farlink("trace", "show", capture, "--drops", log, "--offset-s", -BEGIN_S - 100, "-o", "a.png")
    assert moved.returncode == 0, moved.stderr
    # The first two drops end before the capture begins.
    assert "Drops       1, of 1 link" in moved.stdout

    done = farlink("trace", "show", capture, "--drops", log, "--offset-s", "0")
    assert_refused(done, ["no time in common", f"--offset-s -{BEGIN_S} makes them begin together"])


def test_losses_of_aerotp_are_counted_beside_the_drops_of_a_log(farlink, tmp_path, log):
    assert farlink("bundle", "fit", log, "--replicates", "49", "--replay", "replay.toml").returncode == 0
    description = SCENARIO.format(channel=(tmp_path / "replay.toml").read_text())
    old = '"tcp"\nvariant = "sack"\nmax_window_segments = 8'
    assert old in description
    (tmp_path / "s.toml").write_text(description.replace(old, '"aerotp"\nrate_bps = 15000'))
    assert farlink("run", "s.toml", "--pcap", "captures").returncode == 0

    done = farlink("trace", "show", "captures/point-000-run-0.pcapng", "--drops", log, "-o", "lost.svg")

    assert done.returncode == 0, done.stderr
    assert "1 AeroTP connection\n" in done.stdout
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("Lost")]
    # Lost are those that are sent while the line is down, and those that a drop overtakes on the way.
    lost, _, _, _, down = line.replace(",", " ").split()[1:6]
    assert 0 < int(down) <= int(lost), line
    assert "sent while a link was down or in the second before" in line
    assert "Drops       3, of 1 link" in done.stdout
    assert b"<svg" in (tmp_path / "lost.svg").read_bytes()


def test_several_links_are_replayed_as_a_bundle(farlink, tmp_path):
    rows = [(0, "a", "connected"), (1, "b", "connected"), (50, "a", "dropped"), (60, "a", "connected"), (70, "b", "dropped")]
    rows += [(75, "b", "connected"), (90, "a", "dropped"), (95, "a", "connected"), (99, "b", "dropped")]
    (tmp_path / "two.csv").write_text("time,link,event\n" + "".join(f"{BEGIN_S + t},{link},{e}\n" for t, link, e in rows))

    done = farlink("bundle", "fit", "two.csv", "--replicates", "49", "--replay", "-")

    assert done.returncode == 0, done.stderr
    bundle = tomllib.loads(done.stdout)["link"]["bundle"]
    # Both clocks count from the first event of either file.
    assert bundle == {"lines": 2, "calls": {"schedule": [[[50, 60], [90, 95]], [[0, 1], [70, 75]]]}}
    rest = 'duration_s = 100\nruns = 1\n[transport.udp]\nkind = "udp"\n[flow.a]\ntransport = "udp"\n'
    rest += 'traffic = { kind = "cbr", rate_bps = 1e3, payload_bytes = 100 }\n'
    (tmp_path / "played.toml").write_text(f"{rest}[link]\nrate_bps = 2400\ndelay_s = 0.5\n{done.stdout}")
    run = farlink("run", "played.toml", "--json", "-")
    assert run.returncode == 0, run.stderr
    assert '"call_drops"' in run.stdout


def test_json_of_a_fit_is_complete_with_a_replay(farlink, tmp_path, log):
    done = farlink("bundle", "fit", log, "--replicates", "49", "--json", "-", "--replay", "r.toml")

    assert json.loads(done.stdout)["parts"]
    assert (tmp_path / "r.toml").is_file()
    both = farlink("bundle", "fit", log, "--json", "-", "--replay", "-")
    assert_refused(both, ["both want standard output"])


def test_a_log_without_call_ends_cannot_be_replayed(farlink, tmp_path):
    rows = "".join(f"{n}.log,2023-12-{13 + n // 10}T{n % 10:02d}:00:00,{n % 3 == 0}\n" for n in range(60))
    (tmp_path / "slocum.csv").write_text("glider_sn, 7\nlog file,open time,disconnect\n" + rows)

    done = farlink("bundle", "fit", "slocum.csv", "--replicates", "49", "--pause-s", "1e5", "--replay", "r.toml")

    assert_refused(done, ["slocum-7: the log has no time at which a call ended", "-o FILE"])


WRONG = {
    "not a capture": (["log.csv", "--drops", "log.csv"], ["log.csv: --drops is for captures", "pcap"]),
    "no such file": (["none.pcapng"], ["none.pcapng: No such file"]),
    "cut off": (["cut.pcap"], ["cut.pcap: cut off at byte 30", "first packet"]),
    "picture of another kind": (["cut.pcap", "-o", "a.gif"], ["no picture has the suffix '.gif'"]),
    "offset without a log": (["cut.pcap", "--offset-s", "3"], ["--offset-s", "--drops LOG"]),
    "link without a log": (["cut.pcap", "--link", "m"], ["--link chooses links of a log", "--drops LOG"]),
    "link that is none": (["whole.pcap", "--drops", "log.csv", "--link", "x"], ["there is no link 'x'", "modem-1"]),
    "offset that is no number": (["cut.pcap", "--drops", "log.csv", "--offset-s", "nan"], ["--offset-s: nan"]),
    "span backwards": (["cut.pcap", "--span", "9:3"], ["--span: '9:3'", "600:1200"]),
    "span behind the end": (["whole.pcap", "--span", "9:30"], ["--span: 9:30 is behind the end"]),
    "span of one": (["cut.pcap", "--span", "9"], ["--span: '9'"]),
    "log that is none": (["whole.pcap", "--drops", "s.txt"], ["s.txt: no known log of calls"]),
    "no such connection": (["whole.pcap", "--stream", "7"], ["there is no connection 7", "0 to 0"]),
}


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize(("arguments", "said"), WRONG.values(), ids=WRONG)
def test_wrong_input_is_refused(farlink, tmp_path, arguments, said):
    head = b"\xd4\xc3\xb2\xa1\2\0\4\0" + bytes(8) + b"\xff\xff\0\0\x65\0\0\0"
    (tmp_path / "cut.pcap").write_bytes(head + bytes(6))
    packet = (
        bytes.fromhex("4500003200000000400600000a0000010a000002")
        + bytes.fromhex("13880050000000010000000050100000")
        + bytes(14)
    )
    (tmp_path / "whole.pcap").write_bytes(head + bytes(8) + b"\x32\0\0\0\x32\0\0\0" + packet)
    (tmp_path / "s.txt").write_text("hello\n")

    assert_refused(farlink("trace", "show", *arguments), said)
