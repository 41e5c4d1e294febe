"""A scenario of a bundle of IP paths from its configuration and its logs."""

import pytest

import farlink
from farlink.errors import FarlinkError, JournalError
from farlink.net.expected_paths import Given, expected_paths
from farlink.net.ship_logs import Down, PathLog, Sample, read_journal, read_metrics
from farlink.scenario import from_data

CONFIG = """
peer = "shore"
[tun]
addresses = ["10.77.0.2/24"]
[[path]]
name = "starlink"
interface = "eth1"
[[path]]
name = "iridium.1"
serial = "/dev/ttyUSB0"
rate_bps = 2400
standby = true
classes = [0]
probe_bytes_a_day = 20e3
[[class]]
number = 0
dscp = [46]
policy = "redundant"
[limits]
spill_s = 0.5
"""
START = 1_783_166_400


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "ship.toml"
    path.write_text(CONFIG)
    return path


def metrics(path, samples):
    with path.open("w") as file:
        for after_s, values in samples:
            print(f"# at {START + after_s}\n# TYPE farlink_bundle_path_up gauge", file=file)
            for name, of_path in values.items():
                for key, value in of_path.items():
                    print(f'farlink_bundle_path_{key}{{path="{name}"}} {value}', file=file)
    return path


def test_what_is_given_and_what_the_configuration_says(config):
    found = expected_paths(config, given={"starlink": Given(5e6, 0.014), "iridium.1": Given(None, 0.7)})

    starlink, iridium = found.data["link"]["paths"]["members"]
    assert (starlink["rate_bps"], starlink["delay_s"], starlink["queue_bytes"]) == (5e6, 0.014, 62_500)
    assert iridium["name"] == "iridium-1"
    assert (iridium["standby"], iridium["classes"], iridium["headers_bytes"], iridium["mtu_bytes"]) == (True, [0], 6, 1178)
    assert found.data["link"]["paths"]["classes"] == [{"number": 0, "policy": "redundant"}]
    assert found.data["link"]["paths"]["limits"] == {"spill_s": 0.5}
    assert set(found.data["flow"]) == {"bulk", "call-0"}
    rows = farlink.run(from_data(found.data), set={"duration_s": 3}).rows
    assert rows["flow"] == ["bulk", "call-0", "all", "link.paths.starlink", "link.paths.iridium-1"]
    assert 4e6 < rows["goodput_bps"][3] < 5e6


def test_logs_become_traces_losses_and_times_without_the_path(config, tmp_path):
    of_starlink = [(20e6, 0.03, 0.01), (40e6, 0.04, 0.02)]
    keys = ("rate_bits_per_second", "round_trip_seconds", "queue_seconds")
    values = [dict(zip(keys, numbers, strict=True)) | {"loss_ratio": 0.01} for numbers in of_starlink]
    samples = [(10 * at, {"starlink": of_path}) for at, of_path in enumerate(values)]
    saved = metrics(tmp_path / "metrics.txt", samples)
    journal = tmp_path / "ship.log"
    journal.write_text(
        f"{START + 5}.5 ship farlink[7]: down: starlink: nothing comes back over it\n"
        f"{START + 6} ship farlink[7]: left-out: iridium.1: it loses too many packets\n"
        f"{START + 7} ship systemd[1]: something else: up: to nobody\n"
        f"{START + 8}.25 ship farlink[7]: up: starlink: carries packets\n"
        f"{START + 15} ship farlink[7]: down: starlink: there is no way over it at present\n"
    )

    found = expected_paths(config, journal=journal, metrics=saved, given={"iridium.1": Given(2400, 0.7)})

    starlink, _ = found.data["link"]["paths"]["members"]
    assert found.data["duration_s"] == 15
    assert starlink["unplugged"] == [{"from_s": 5.5, "to_s": 8.25, "noticed_by": "nobody"}]
    assert starlink["channel"] == {"kind": "loss", "loss": 0.01} == starlink["return"]["channel"]
    assert found.traces["starlink-rate.csv"] == "time_s,rate_bps\n0,2e+07\n10,4e+07\n16,4e+07\n"
    assert starlink["delay_s"] == 0.01
    for name, text in found.traces.items():
        (tmp_path / name).write_text(text)
    rows = farlink.run(from_data(found.data, base=tmp_path), set={"duration_s": 12}).rows
    assert rows["lines_up_fraction"][3] < 0.9


def test_the_rate_of_a_path_counts_while_it_is_in_use():
    def log(*samples):
        of = [(at_s, {"rate_bits_per_second": rate, "sent_bytes_total": sent}) for at_s, rate, sent in samples]
        return PathLog(samples=[Sample(*one) for one in of])

    assert log((0, 8e6, 0), (10, 9e6, 1e7), (20, 5e6, 1.1e7)).rates() == [(10, 9e6)]
    assert log((0, 8e6, 0), (10, 9e6, 1e3)).rates() == [(0, 9e6)]
    assert PathLog().rates() == []


def test_a_path_that_is_down_at_the_end_stays_so(tmp_path):
    journal = tmp_path / "log"
    journal.write_text(f"{START} ship farlink[7]: down: lte: the other end does not use it\n")

    downs, span = read_journal(journal)

    assert downs == {"lte": [Down(START, float("inf"), "far")]}
    assert span == (START, START)


def test_of_several_peers_that_of_the_configuration_counts(tmp_path):
    journal, metrics = tmp_path / "log", tmp_path / "metrics"
    journal.write_text(
        f"{START} shore farlink[7]: north: down: lte: x\n{START + 1} shore farlink[7]: south: down: lte: x\n"
        f"{START + 3} shore farlink[7]: north: up: lte: x\n"
    )
    samples = "".join(
        f'farlink_bundle_path_up{{peer="{peer}",path="lte"}} {value}\n' for peer, value in (("north", 1), ("south", 0))
    )
    metrics.write_text(f"# at {START}\n{samples}")

    downs, _ = read_journal(journal, peer="north")
    assert downs == {"lte": [Down(START, START + 3, "nobody")]}
    assert read_metrics(metrics, peer="north") == {"lte": [Sample(START, {"up": 1.0})]}
    with pytest.raises(JournalError, match="no line tells"):
        read_journal(journal, peer="west")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing here\n", "no line tells"),
        (f"{START + 1} s f[1]: up: lte: x\n{START} s f[1]: up: lte: x\n", "the time goes back"),
    ],
)
def test_a_journal_that_tells_nothing_is_refused(text, message, tmp_path):
    path = tmp_path / "log"
    path.write_text(text)

    with pytest.raises(JournalError, match=message):
        read_journal(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# at 1783166400\n", "no line is a metric"),
        ('farlink_bundle_path_up{path="a"} 1\n', "before the first time"),
        ("# at 1783166400\n# at 1783166400\n", "the time goes back"),
        ('# at 1783166400\nfarlink_bundle_path_up{path="a"} nan\n', "no line is a metric"),
    ],
)
def test_metrics_without_sense_are_refused(text, message, tmp_path):
    path = tmp_path / "metrics"
    path.write_text(text)

    with pytest.raises(JournalError, match=message):
        read_metrics(path)


def test_what_is_not_known_is_named(config, tmp_path):
    with pytest.raises(JournalError, match="the rate of path 'starlink' is not known"):
        expected_paths(config)
    with pytest.raises(JournalError, match="no path 'starlnk'") as refused:
        expected_paths(config, given={"starlnk": Given(1e6, 0.1)})
    assert "starlink" in refused.value.remedy
    for text in ("", "path = 3", "[[path]]\nrate_bps = 1", "path = [", "[path]\nname = 'x'"):
        config.write_text(text)
        with pytest.raises(FarlinkError):
            expected_paths(config)
    with pytest.raises(JournalError, match="cannot be read"):
        expected_paths(tmp_path / "none.toml")
