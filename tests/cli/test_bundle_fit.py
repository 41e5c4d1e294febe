"""`farlink bundle fit`, as a user types it. All logs are synthetic and seeded."""

from __future__ import annotations

import json
import math
import tomllib

import numpy as np
import pytest
from tests.conftest import assert_refused

from farlink.channels.calls import journal
from farlink.channels.calls.journal import Event

pytest.importorskip("scipy.stats")

BEGIN_S = 1_783_166_400.0
FEW = ("--replicates", "49")


def synthetic(path, *, links=3, span_s=86_400.0, mean_s=3000.0, redial_s=30.0, seed=1):
    """A bundle whose links drop at a constant rate; every fifth dial fails."""
    rng = np.random.default_rng(seed)
    events = []
    for index in range(1, links + 1):
        time_s, name = rng.uniform(0, 30), f"modem-{index}"
        while time_s < span_s:
            events.append(Event(BEGIN_S + time_s, name, "connecting"))
            time_s += 20 + rng.exponential(redial_s)
            if rng.random() < 0.2:
                events.append(Event(BEGIN_S + time_s, name, "failed", "BUSY"))
                continue
            events.append(Event(BEGIN_S + time_s, name, "connected", bars=5))
            time_s += rng.exponential(mean_s)
            events.append(Event(BEGIN_S + time_s, name, "dropped", "NO CARRIER"))
            time_s += 5
    kept = [event for event in sorted(events, key=lambda event: event.time_s) if event.time_s < BEGIN_S + span_s]
    return journal.write(kept, path)


@pytest.fixture
def bundle(tmp_path):
    return synthetic(tmp_path / "journal.jsonl")


def test_fit_writes_report_picture_and_scenario(farlink, bundle, tmp_path):
    pytest.importorskip("matplotlib")

    done = farlink("bundle", "fit", bundle, *FEW, "--plot", "drops.png", "-o", "drops.toml")

    assert done.returncode == 0, done.stderr
    for words in ("modem-1", "modem-2", "modem-3", "all links", "bundle", "exponential", "weibull", "two-state-markov"):
        assert words in done.stdout
    assert "NO CARRIER" in done.stdout
    assert "links are up on average" in done.stdout
    assert (tmp_path / "drops.png").read_bytes().startswith(b"\x89PNG")
    assert "picture: drops.png" in done.stderr
    scenario = tomllib.loads((tmp_path / "drops.toml").read_text())
    channel = scenario["link"]["channel"]
    assert channel["kind"] == "call-drops"
    assert (channel["up"]["distribution"], channel["redial"]["distribution"]) == ("exponential", "weibull")
    assert channel["up"]["mean_s"] == pytest.approx(3000, rel=0.4)
    redial = channel["redial"]
    assert redial["scale_s"] * math.gamma(1 + 1 / redial["shape"]) == pytest.approx(5 + 50 / 0.8, rel=0.3)
    assert (tmp_path / "drops.toml").read_text() in done.stdout


def test_the_process_runs_as_a_scenario(farlink, bundle, tmp_path):
    assert farlink("bundle", "fit", bundle, *FEW, "-o", "drops.toml").returncode == 0
    (tmp_path / "dialled.toml").write_text(
        "duration_s = 36000\n[link]\nrate_bps = 2400\ndelay_s = 0.7\n"
        + (tmp_path / "drops.toml").read_text()
        + '[transport.udp]\nkind = "udp"\n'
        '[flow.f]\ntransport = "udp"\ntraffic = { kind = "cbr", rate_bps = 1200, payload_bytes = 100 }\n'
    )

    done = farlink("run", "dialled.toml", "--json", "-", "--runs", "10")

    assert done.returncode == 0, done.stderr
    # Up 3000 s, down 5 + 50 / 0.8 s: 2.2 % of the time; a fit to 87 drops is within 40 % of either.
    (summary,) = [entry for entry in json.loads(done.stdout)["summary"] if entry["flow"] == "f"]
    assert 0.01 < summary["loss_fraction"]["mean"] < 0.05


def test_json_has_the_whole_report(farlink, bundle):
    done = farlink("bundle", "fit", bundle, *FEW, "--json", "-")

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [part["name"] for part in found["parts"]] == ["modem-1", "modem-2", "modem-3", "all links", "bundle"]
    whole = found["parts"][3]
    assert whole["drops"] == sum(part["drops"] for part in found["parts"][:3])
    assert 0 < whole["failed"] < whole["dials"]
    exponential, weibull, markov = whole["times"]["up"]["fits"]
    low, high = exponential["mean_ci_s"]
    assert low < 3000 < high
    assert weibull["intervals"]["shape"][0] < 1 < weibull["intervals"]["shape"][1]
    assert markov["distribution"] == "two-state-markov"
    assert exponential["tests"]["anderson_darling"]["is_accepted"] is True
    assert exponential["tests"]["chi_square_equal"]["bins"] > 3
    assert found["availability"]["any_up"] > found["availability"]["all_up"] > 0.8
    assert found["logs"] == [{"name": "journal.jsonl", "format": "journal", "lines": len(bundle.read_text().splitlines())}]


def test_same_seed_gives_the_same_output(farlink, bundle):
    first, again = (farlink("bundle", "fit", bundle, *FEW, "--link", "modem-1", "--json", "-").stdout for _ in range(2))

    assert first == again
    assert '"modem-1"' in first


def test_one_link_of_a_log(farlink, bundle):
    done = farlink("bundle", "fit", bundle, *FEW, "--link", "modem-2", "--json", "-")

    assert [part["name"] for part in json.loads(done.stdout)["parts"]] == ["modem-2"]


def test_csv_in_and_json_in_a_file(farlink, tmp_path):
    rows = [f"{BEGIN_S + 700 * n},m,connected\n{BEGIN_S + 700 * n + 600},m,dropped\n" for n in range(10)]
    (tmp_path / "events.csv").write_text("time,link,event\n" + "".join(rows))

    done = farlink("bundle", "fit", "events.csv", *FEW, "--json", "fit.json")

    assert done.returncode == 0, done.stderr
    times = json.loads((tmp_path / "fit.json").read_text())["parts"][0]["times"]
    assert times["up"]["fits"][0]["mean_s"] == 600
    assert times["redial"]["fits"][0]["mean_s"] == 100
    assert "mean_s = 600" in done.stdout
    assert "json: fit.json" in done.stderr


def test_handovers_come_as_a_table(farlink, tmp_path):
    """A call of two hours whose modem answers every 4 s, but 7 s late at five handovers."""
    lines, time_s = [f"{BEGIN_S},m,connected,"], 0.0
    for number in range(1, 1700):
        time_s += 7.0 if number in (150, 300, 600, 900, 1050) else 4.0
        lines.append(f"{BEGIN_S + time_s},m,snr,8")
    lines.append(f"{BEGIN_S + time_s + 4},m,dropped,")
    lines += [f"{BEGIN_S + 8000},m,connected,", f"{BEGIN_S + 8900},m,dropped,"]
    (tmp_path / "snr.csv").write_text("time,link,event,snr_db\n" + "\n".join(lines) + "\n")

    done = farlink("bundle", "fit", "snr.csv", *FEW, "--json", "-")

    assert done.returncode == 0, done.stderr
    table = json.loads(done.stdout)["handovers"]["m"]
    assert [row["is_observed"] for row in table] == [True, True, False, True, False, True, True]
    assert table[0]["time"] == "2026-07-04T12:10:03Z"
    causes = {cause["name"]: cause for cause in json.loads(done.stdout)["causes"]}
    assert causes["SNR below 0 dB for 16 s"]["drops"] == 0


def test_few_drops_are_marked(farlink, tmp_path):
    text = "time,link,event\n" + "".join(
        f"{BEGIN_S + 100 * n},m,connected\n{BEGIN_S + 100 * n + 60},m,dropped\n" for n in range(3)
    )
    (tmp_path / "few.csv").write_text(text)

    done = farlink("bundle", "fit", "few.csv", *FEW)

    assert done.returncode == 0, done.stderr
    assert "not fitted: needs 5 drops, there are 3" in done.stdout
    assert "not fitted: needs 20 drops, there are 3" in done.stdout
    assert "needs 15 drops" in done.stdout
    assert "needs 8 drops" in done.stdout

    (tmp_path / "one.csv").write_text(
        f"time,link,event\n{BEGIN_S},m,connected\n{BEGIN_S + 60},m,dropped\n{BEGIN_S + 90},m,connected\n"
    )
    done = farlink("bundle", "fit", "one.csv", *FEW)
    assert_refused(done, ["m: neither up nor redial times can be fitted", "needs 2 drops, there are 1"])


def test_picture_of_every_kind_of_log(farlink, tmp_path):
    pytest.importorskip("matplotlib")
    slocum = "glider_sn, 7\nlog file,open time,disconnect\n" + "".join(
        f"{n}.log,2023-12-{13 + n // 10}T{n % 10:02d}:00:00,{n % 3 == 0}\n" for n in range(60)
    )
    (tmp_path / "slocum.csv").write_text(slocum)

    done = farlink("bundle", "fit", "slocum.csv", *FEW, "--plot", "drops.svg", "--pause-s", "1e5")

    assert done.returncode == 0, done.stderr
    assert "# up: not fitted" in done.stdout
    assert b"<svg" in (tmp_path / "drops.svg").read_bytes()


WRONG = {
    "drop before connect": (
        "bad.csv",
        [],
        ["bad.csv, line 2", "m is dropped and was not connected", "a line that it is connected"],
    ),
    "no drop": ("calm.csv", [], ["calm.csv: no drop in lines 1 to 3: 1 call, 60 min connected", "above 20 min"]),
    "no such file": ("none.csv", [], ["none.csv: No such file"]),
    "no such link": ("good.csv", ["--link", "x"], ["no link 'x'", "links: m"]),
    "no such format": ("good.csv", ["--format", "cvs"], ["no format of logs 'cvs'", "did you mean 'csv'?"]),
    "picture of another kind": ("good.csv", ["--plot", "a.gif"], ["no picture has the suffix '.gif'", ".png"]),
    "folder that is not there": ("good.csv", ["-o", "no/fit.toml"], ["directory no does not exist"]),
    "replicates too few to reject": ("good.csv", ["--replicates", "19"], ["--replicates: 19", "39 to 100000"]),
    "pause of no length": ("good.csv", ["--pause-s", "0"], ["--pause-s: 0"]),
    "pause that is no number": ("good.csv", ["--pause-s", "nan"], ["--pause-s: nan"]),
    "seed below 0": ("good.csv", ["--seed", "-1"], ["seed: -1"]),
}


@pytest.mark.parametrize(("name", "options", "said"), WRONG.values(), ids=WRONG)
def test_wrong_input_is_refused(farlink, tmp_path, name, options, said):
    good = "".join(f"{BEGIN_S + 100 * n},m,connected\n{BEGIN_S + 100 * n + 60},m,dropped\n" for n in range(12))
    (tmp_path / "good.csv").write_text("time,link,event\n" + good)
    (tmp_path / "bad.csv").write_text(f"time,link,event\n{BEGIN_S},m,dropped\n")
    (tmp_path / "calm.csv").write_text(f"time,link,event\n{BEGIN_S},m,connected\n{BEGIN_S + 3600},m,ended\n")
    before = sorted(path.name for path in tmp_path.iterdir())

    assert_refused(farlink("bundle", "fit", name, *FEW, *options), said)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_help_has_examples(farlink):
    done = farlink("bundle", "fit", "--help")

    assert "farlink bundle fit journal.jsonl" in done.stdout
    assert "farlink bundle" in farlink("bundle", "--help").stdout
