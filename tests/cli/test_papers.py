"""`farlink papers` as a user types it."""

from __future__ import annotations

import json
import re
import signal
import time
import tomllib

import pytest
from tests.conftest import assert_refused

KEYS = ["paper", "item", "cell", "printed", "engine", "value", "ci95", "verdict", "note"]


def test_list_names_papers_and_items(farlink):
    done = farlink("papers")

    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "brodbekier" in done.stdout
    assert re.search(r"figure-2 .*about \d+ s", done.stdout)
    assert re.search(r"figure-5 .*STP.*about \d+ s", done.stdout)


def test_table_goes_to_standard_output_and_the_count_to_standard_error(farlink):
    done = farlink("papers", "brodbekier", "--item", "equation-1", "--quick")

    assert done.returncode == 0, done.stderr
    assert "0.45" in done.stdout
    assert "0.5507" in done.stdout
    assert "misprint" in done.stdout
    assert done.stderr == "2 checks: 2 misprint\n"


def test_json_has_the_documented_keys(farlink):
    done = farlink("papers", "brodbekier", "--item", "figure-2", "--quick", "--json", "-")

    checks = json.loads(done.stdout)
    assert len(checks) == 21
    for check in checks:
        assert list(check) == KEYS
        assert check["paper"] == "brodbekier"
        assert check["item"] == "figure-2"
        assert check["engine"] == "packet"
        assert check["verdict"] in ("agrees", "differs", "undecided", "misprint")
        assert check["value"] > 0 or "less 1" in check["cell"]
        assert check["ci95"] >= 0
        assert check["note"]
    assert done.returncode == (0 if all(check["verdict"] == "agrees" for check in checks) else 1)


def test_one_run_has_no_interval_so_nothing_is_decided(farlink):
    done = farlink("papers", "brodbekier", "--item", "figure-2", "--runs", "1", "--json", "-")

    checks = json.loads(done.stdout)
    assert {check["verdict"] for check in checks} == {"undecided"}
    assert {check["ci95"] for check in checks} == {None}
    assert done.returncode == 1
    assert "more --runs" in done.stderr


def test_same_seed_gives_the_same_bytes(farlink):
    arguments = ("papers", "brodbekier", "--item", "equation-1", "--quick", "--json", "-", "--seed")
    first, again, other = (farlink(*arguments, seed).stdout for seed in (3, 3, 4))

    assert first == again
    assert first != other


def test_every_output_at_once(farlink, tmp_path):
    outputs = ["--json", "b.json", "--report", "b.html", "--figures", "pictures", "--scenarios", "scenarios"]

    done = farlink("papers", "brodbekier", "--item", "figure-2", "--quick", *outputs)

    assert done.returncode in (0, 1), done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.html", "b.json", "pictures", "scenarios"]
    assert (tmp_path / "pictures" / "figure-2.png").read_bytes()[1:4] == b"PNG"
    scenario = tomllib.loads((tmp_path / "scenarios" / "figure-2.toml").read_text())
    assert scenario["link"]["delay_s"] == 0.25
    assert scenario["seed"] == 1
    page = (tmp_path / "b.html").read_text()
    assert page.count("<svg ") == 1
    assert "agrees" in page
    assert [ref for ref in re.findall(r"(?:src|href)=\"(?!#|data:)([^\"]*)\"", page) if not ref.startswith("#")] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["brodbekir"], ["'brodbekir'", "did you mean 'brodbekier'?"]),
        (["zzz"], ["'zzz'", "give one of brodbekier"]),
        (["brodbekier", "--item", "figure2"], ["'figure2'", "did you mean 'figure-2'?"]),
        (["brodbekier", "--runs", "0"], ["--runs 0"]),
        (["brodbekier", "--seed", "-1"], ["seed: -1"]),
        (["brodbekier", "--threads", "0"], ["threads: 0"]),
        (["brodbekier", "--json", "no/such/directory.json"], ["no/such"]),
        (["brodbekier", "--report", "x", "--json", "x"], ["overwrite"]),
        (["--json", "-"], ["no paper", "farlink papers brodbekier"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_bad_arguments_are_refused(arguments, said, farlink, tmp_path):
    assert_refused(farlink("papers", *arguments), said)
    assert list(tmp_path.iterdir()) == []


def test_interrupt_keeps_the_finished_items(started, tmp_path):
    items = ["--item", "equation-1", "--item", "figure-2", "--runs", "400", "--json", "out.json"]
    process = started("papers", "brodbekier", *items)
    assert process.stdout is not None
    heard = process.stdout.readline()
    time.sleep(2)
    if process.poll() is not None:
        pytest.fail("it was over before it could be interrupted")
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)

    assert heard.startswith("equation-1")
    assert process.returncode == 130
    assert "1 of 2 items finished and kept" in stderr
    assert "Traceback" not in stderr
    assert "figure-2" not in stdout
    assert {check["item"] for check in json.loads((tmp_path / "out.json").read_text())} == {"equation-1"}
