"""Closed forms beside the packet engine, and beside the fluid engine, on random scenarios that they accept.

The bounds are near what these scenarios give, and within those of sixty others in `docs/validation/model-engine.md`.
The differences are recorded as properties of the test.
"""

import numpy as np
import pytest
from tests.conftest import program_of_docs

import farlink
from farlink.engines.model.forms import FORMS
from farlink.errors import ScenarioError

# Scenarios, runs of each, the largest differences allowed (below, above), and the largest median of their sizes.
FAMILIES = {
    "TCP, bulk": (10, 4, -0.1, 0.25, 0.07),
    "TCP, a file": (16, 30, -0.2, 0.2, 0.02),
    "ARQ, bulk": (12, 4, -0.01, 0.06, 0.005),
    "UDP, constant rate": (6, 2, -0.005, 0.005, 0.002),
    "AeroTP, bulk": (8, 2, -0.01, 0.01, 0.002),
    "AeroTP, a file": (12, 10, -0.25, 0.2, 0.05),
}


@pytest.fixture(scope="module")
def draws():
    return program_of_docs("model_draws")


def means(data, quantity, **options):
    summary = farlink.run(data, **options).summary()
    return {entry["engine"]: entry[quantity]["mean"] for entry in summary if entry["flow"] == "all"}


@pytest.mark.parametrize("family", FAMILIES)
def test_random_scenarios_are_near_packets(family, draws, record_property):
    count, runs, lowest, highest, median = FAMILIES[family]
    quantity = draws.FAMILIES[family][1]
    differences = []
    for data in draws.drawn(family, count, seed=7):
        if not isinstance(data, ScenarioError):
            found = means(data, quantity, engine="model,packet", runs=runs)
            differences.append(found["model"] / found["packet"] - 1)

    record_property("differences", [round(float(one), 4) for one in differences])
    assert len(differences) == count
    assert lowest <= min(differences), differences
    assert max(differences) <= highest, differences
    assert np.median(np.abs(differences)) <= median, differences


def test_every_family_of_forms_is_drawn(draws):
    drawn = set()
    for family in draws.FAMILIES:
        (data,) = [data for data in draws.drawn(family, 1, seed=1) if not isinstance(data, ScenarioError)]
        drawn.add((data["transport"]["t"]["kind"], data["flow"]["f"]["traffic"]["kind"]))

    assert drawn == set(FORMS)


# Segments per second, round trip in s, queue, loss, flows, and changes to Reno with an acknowledgement for each segment.
POINTS = {
    "losses": (1000, 0.2, 100, 3e-3, 2, {}),
    "losses, sack": (1000, 0.2, 100, 3e-3, 2, {"variant": "sack"}),
    "losses, delayed acknowledgements": (1000, 0.2, 100, 3e-3, 2, {"delayed_ack": True}),
    "a short queue": (500, 0.2, 20, 1e-6, 3, {}),
    "a long queue": (500, 0.2, 150, 1e-6, 3, {}),
    "a window that limits": (1000, 0.2, 100, 1e-4, 3, {"max_window_segments": 30}),
}


@pytest.mark.parametrize("name", POINTS)
def test_three_engines_agree_on_long_flows(name, record_property):
    rate, round_trip_s, queue, loss, flows, transport = POINTS[name]
    data = {
        "duration_s": 2000 * round_trip_s,
        "measure": {"warmup_s": 200 * round_trip_s},
        "link": {
            "rate_bps": rate * 8000,
            "delay_s": (round_trip_s - 1.04 / rate) / 2,
            "queue_packets": queue,
            "channel": {"kind": "loss", "loss": loss},
        },
        "transport": {"tcp": {"kind": "tcp", "variant": "reno", "segment_bytes": 960, "delayed_ack": False, **transport}},
        "flow": {"bulk": {"transport": "tcp", "count": flows, "traffic": {"kind": "bulk"}}},
    }

    found = means(data, "goodput_bps", engine=["model", "fluid", "packet"], runs=8)

    record_property("over packets", {name: found[name] / found["packet"] - 1 for name in ("model", "fluid")})
    assert found["model"] == pytest.approx(found["packet"], rel=0.05)
    assert found["model"] == pytest.approx(found["fluid"], rel=0.08)
