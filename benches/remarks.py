"""Finds settings that ruin a result without a remark: random sane scenarios, each run again with one key changed.

    .venv/bin/python benches/remarks.py [FIRST_SEED] [SCENARIOS] [CHANGES_EACH] > out/remarks.jsonl

Rates are from 2.4 kb/s to 10 Gb/s, one-way delays from 1 ms to 100 s, some 1000 s. The key is drawn from the schema among those
that the scenario's tables can have, its value over a wide range. A line of standard output is a change that halves the goodput
or makes the 99th percentile of the delay five times as long, although every flow is `ok` and no note names the key; standard
error counts them by key. Remarks on a scenario before its change go to standard output as well: none is expected.
"""

from __future__ import annotations

import collections
import copy
import json
import math
import random
import sys
import time
from typing import Any

from farlink import _core

SCHEMA: dict[str, Any] = json.loads(_core.schema())
MOST_CPU_S = 0.4
PATIENCE_S = 2.0
# These keys change the path, the load or the requested service, so a worse result is their natural effect.
NATURAL = {
    *("rate_bps", "delay_s", "channel", "coding", "duration_s", "restart", "crash", "start_s", "start_spread_s"),
    *("traffic", "count", "lines", "members", "calls", "arq", "kind", "class", "correction", "split", "transport"),
}


def main() -> None:
    """Draw, change, compare, print."""
    first, scenarios, changes = [*(int(text) for text in sys.argv[1:]), *(1, 200, 20)[len(sys.argv) - 1 :]]
    tried: collections.Counter[str] = collections.Counter()
    told: collections.Counter[str] = collections.Counter()
    elsewhere: collections.Counter[str] = collections.Counter()
    silent: collections.Counter[str] = collections.Counter()
    for seed in range(first, first + scenarios):
        rng = random.Random(seed)
        base, before = _base(rng)
        if before["notes"]:
            print(json.dumps({"seed": seed, "unexpected": before["notes"], "scenario": base}))
        if not before["goodput_bps"]:
            print(json.dumps({"seed": seed, "nothing": before["status"], "scenario": base}))
            continue
        keys = list(_keys(base))
        for _ in range(changes):
            path, schema = rng.choice(keys)
            changed = _changed(base, path, schema, rng)
            after = _run(changed) if changed else None
            if after is None:
                continue
            name = _name(base, path)
            tried[name] += 1
            slower = before["goodput_bps"] / max(after["goodput_bps"], 1e-9)
            later = after["delay_p99_s"] / before["delay_p99_s"] if after["delay_p99_s"] else 1.0
            if after["status"] != {"ok"} or (slower < 2.0 and later < 5.0):
                continue
            if any(path[-1] in note for note in after["notes"]):
                told[name] += 1
                continue
            if after["notes"]:
                elsewhere[name] += 1
                continue
            silent[name] += 1
            found = {"seed": seed, "key": ".".join(path), "kind": name, "value": _at(changed, path)}
            figures = {"slower": round(slower, 2), "later": round(later, 2)}
            print(json.dumps({**found, **figures, "scenario": changed}), flush=True)
    for name, count in silent.most_common():
        others = f"{told[name]} told, {elsewhere[name]} told of another key"
        print(f"{count:5d} silent, {others}, of {tried[name]}: {name}", file=sys.stderr)
    sums = ", ".join(
        f"{sum(found.values())} {what}"
        for found, what in ((silent, "silent"), (told, "told"), (elsewhere, "told of another key"))
    )
    print(f"{sum(tried.values())} changes of {len(tried)} keys: {sums}", file=sys.stderr)


def _log(rng: random.Random, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def _base(rng: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """A sane scenario that is not refused and quickly run, with its result."""
    while True:
        scenario = _drawn(rng)
        if scenario and (result := _run(scenario)):
            return scenario, result


def _drawn(rng: random.Random) -> dict[str, Any] | None:
    shape = rng.choices(["link", "hops", "bundle", "gateway"], [10, 3, 3, 2])[0]
    rate = _log(rng, 2.4e3, 64e3 if shape == "bundle" else 1e10)
    delay = 1000.0 if rng.random() < 0.04 else _log(rng, 1e-3, 2.0 if shape == "bundle" else 100.0)
    lines = rng.randint(2, 8) if shape == "bundle" else 1
    packet_s = 12e3 / rate
    round_trip = 2 * delay + 2 * packet_s
    product = rate * lines * round_trip / 12e3
    if product > 2e4:
        return None
    duration = min(max(40 * round_trip, 300 * packet_s / lines), 3e5 * packet_s / lines, 1e6)
    if duration < 15 * round_trip:
        return None
    hop: dict[str, Any] = {"rate_bps": rate, "delay_s": delay}
    if rng.random() < 0.8:
        hop["queue_packets"] = math.ceil(product * rng.uniform(0.5, 1.5)) + 20
    if shape != "bundle" and rng.random() < 0.5:
        hop["channel"] = _channel(rng)
    if shape != "bundle" and rng.random() < 0.4:
        hop["return"] = {"rate_bps": rate * rng.uniform(0.2, 1.0)}
    if shape == "bundle":
        hop["bundle"] = {"lines": lines, "scheduler": rng.choice(["round-robin", "earliest-delivery", "linux"])}
        if rng.random() < 0.5:
            up = {"distribution": "exponential", "mean_s": duration / rng.uniform(2, 8)}
            redial = {"distribution": "exponential", "mean_s": up["mean_s"] / 20}
            hop["bundle"]["calls"] = {"up": up, "redial": redial}
    transport, name = _transport(rng, rate * lines, delay, product, gateway=shape == "gateway")
    traffic: dict[str, Any] = {"kind": "bulk"}
    if name in {"udp", "aerotp-open"} or rng.random() < 0.1:
        traffic = {"kind": "cbr", "rate_bps": rate * lines * rng.uniform(0.2, 0.7), "payload_bytes": rng.choice([200, 1000])}
    scenario: dict[str, Any] = {"duration_s": duration, "runs": 1, "seed": 1}
    edge = {"rate_bps": rate * rng.uniform(2, 20), "delay_s": min(delay, 0.01), "queue_packets": hop.get("queue_packets", 1000)}
    if shape in {"hops", "gateway"}:
        names = ["lan", "space", "ground"] if shape == "gateway" else ["lan", "space"]
        if shape == "gateway":
            hop["gateway"] = {"buffer_bytes": math.ceil(4 * product * 1500 + 1e5)}
        scenario |= {"path": names, "hop": {**{n: copy.deepcopy(edge) for n in names}, "space": hop}}
    else:
        scenario["link"] = hop
    flows = {"data": {"transport": "t", "traffic": traffic}}
    if traffic["kind"] == "bulk" and "rate_bps" not in transport and rng.random() < 0.2:
        flows["data"]["count"] = rng.randint(2, 5)
    scenario |= {"transport": {"t": transport}, "flow": flows}
    return scenario


def _channel(rng: random.Random) -> dict[str, Any]:
    loss = _log(rng, 1e-6, 2e-2)
    if rng.random() < 0.3:
        back = rng.uniform(0.2, 0.9)
        return {"kind": "gilbert-elliott", "p_good_to_bad": loss * back, "p_bad_to_good": back, "loss_bad": 1.0}
    return {"kind": "loss", "loss": loss}


def _transport(rng: random.Random, rate: float, delay: float, product: float, *, gateway: bool) -> tuple[dict[str, Any], str]:
    """A transport suited to the path: timers are given where those of the RFCs are too short."""
    name = rng.choice(["tcp", "tcp", "tcp", "bbr", "aerotp", "aerotp", "aerotp-open", "scps", "arq", "stp", "udp"])
    start = 2.5 * (2 * delay + 24e3 / rate) + 1.0
    timer = {"rto": {"initial_s": start, "maximum_s": max(60.0, 20 * start)}} if start > 2.5 else {}
    if name in {"tcp", "bbr"}:
        table: dict[str, Any] = {"kind": "tcp", "variant": rng.choice(["reno", "newreno", "sack", "rack"]), **timer}
        table["congestion_control"] = rng.choice(["reno", "cubic", "hybla", "westwood", "vegas"])
        if name == "bbr":
            table |= {"variant": "rack", "congestion_control": rng.choice(["bbr", "bbr3"])}
            if 20 * delay > 10:
                table["bbr"] = {"min_rtt_window_s": 25 * delay}
        return table, name
    if name == "aerotp":
        mode = rng.choice(["reliable", "near-reliable"] if gateway else ["reliable"])
        table = {"kind": "aerotp", "mode": mode}
        if rng.random() < 0.6:
            table["rate_bps"] = 0.98 * rate
        if 6 * delay > 3600:
            table["give_up_after_s"] = 30 * delay
        return table, name
    if name == "aerotp-open":
        return {"kind": "aerotp", "mode": rng.choice(["quasi-reliable", "unreliable"]), "rate_bps": 0.95 * rate}, name
    if name == "scps":
        table = {"kind": "scps-tp", **timer}
        if rng.random() < 0.5:
            table |= {"rate_bps": 0.95 * rate, "congestion_control": "none"}
        return table, name
    if name == "arq":
        frames = math.ceil(2 * product * 1.5 + 20)
        least = 2.2 * delay + 60e3 / rate
        return {
            "kind": "arq",
            "mode": rng.choice(["go-back-n", "selective-repeat"]),
            "rate_bps": 0.95 * rate,
            "window_frames": frames,
            "rto": {"initial_s": start, "minimum_s": least, "maximum_s": max(60.0, 20 * start)},
        }, name
    if name == "stp":
        return {"kind": "stp", **timer}, name
    return {"kind": "udp", "segment_bytes": 1000}, name


def _resolved(schema: dict[str, Any], table: Any = None) -> dict[str, Any]:
    """A schema without references; among alternatives, that of the table's kind."""
    if "$ref" in schema:
        bounds = {key: schema[key] for key in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum") if key in schema}
        return {**_resolved(SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]], table), **bounds}
    for several in ("oneOf", "anyOf"):
        if several in schema:
            choices = [_resolved(choice, table) for choice in schema[several] if choice.get("type") != "null"]
            if isinstance(table, dict):
                kinds = [c for c in choices if c.get("properties", {}).get("kind", {}).get("const") == table.get("kind")]
                tables = [choice for choice in choices if choice.get("type") == "object"]
                return (kinds or tables or choices)[0]
            consts = [choice["const"] for choice in choices if "const" in choice]
            return {"enum": consts} if consts else choices[0]
    return schema


def _keys(scenario: dict[str, Any]) -> Any:
    """Paths and schemas of all keys of the tables of a scenario, and of tables of numbers that it might have."""
    root = SCHEMA["properties"]
    tables: list[tuple[list[str], dict[str, Any], Any]] = []
    if "link" in scenario:
        tables.append((["link"], root["link"], scenario["link"]))
    for table in ("hop", "transport", "flow"):
        for name, content in scenario.get(table, {}).items():
            tables.append(([table, name], root[table]["additionalProperties"], content))
    while tables:
        path, schema, content = tables.pop()
        for key, of_key in _resolved(schema, content).get("properties", {}).items():
            if key in NATURAL:
                continue
            inside = content.get(key) if isinstance(content, dict) else None
            found = _resolved(of_key, inside if isinstance(inside, dict) else None)
            if found.get("type") == "object":
                if inside is not None or key in {"rto", "cubic", "hybla", "vegas", "bbr"}:
                    tables.append(([*path, key], found, inside or {}))
            elif found.get("type") != "array" and key != "edge_transport":
                yield [*path, key], found


def _changed(base: dict[str, Any], path: list[str], schema: dict[str, Any], rng: random.Random) -> dict[str, Any] | None:
    """The scenario with another value of a key; none if each is refused or takes too long."""
    for _ in range(8):
        changed = copy.deepcopy(base)
        table = changed
        for step in path[:-1]:
            table = table.setdefault(step, {})
        given = table.get(path[-1])
        value = _value(schema, path[-1], given, rng)
        if value == given:
            continue
        for other, twin in (("queue_packets", "queue_bytes"), ("queue_bytes", "queue_packets")):
            if path[-1] == other:
                table.pop(twin, None)
        table[path[-1]] = value
        try:
            expected_s, expected_bytes = _core.estimate(json.dumps(changed), 1)
        except _core.ScenarioError:
            continue
        if expected_s < MOST_CPU_S and expected_bytes < 3e8:
            return changed
    return None


def _value(schema: dict[str, Any], key: str, given: Any, rng: random.Random) -> Any:
    if "enum" in schema:
        return rng.choice(schema["enum"])
    kinds = {schema.get("type")} if isinstance(schema.get("type"), str) else set(schema.get("type", ()))
    if "boolean" in kinds:
        return rng.random() < 0.5
    if not kinds & {"number", "integer"}:
        return given
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0.0))
    high = schema.get("maximum", schema.get("exclusiveMaximum", 1e6))
    usual = {"_s": (1e-3, 1e3), "bytes": (10, 1e7), "_bps": (1e3, 1e9)}
    least, most = next((ends for end, ends in usual.items() if key.endswith(end)), (1e-3, 1.0) if high <= 1 else (1, 1000))
    start = given if isinstance(given, int | float) else schema.get("default")
    if isinstance(start, int | float) and start > 0 and rng.random() < 0.5:
        drawn = start * 10 ** rng.uniform(-2.5, 2.5)
    else:
        drawn = _log(rng, least, most)
    drawn = min(max(drawn, low or 1e-9), high)
    return max(round(drawn), 1) if "whole" in schema.get("description", "") else drawn


def _run(scenario: dict[str, Any]) -> dict[str, Any] | None:
    """Result of a scenario; none if it is refused or takes too long."""
    text, begin = json.dumps(scenario), time.monotonic()

    def progress(_done: int, _all: int) -> None:
        if time.monotonic() - begin > PATIENCE_S:
            raise TimeoutError

    try:
        if _core.estimate(text, 1)[0] > MOST_CPU_S:
            return None
        output = _core.run(text, 1, progress)
    except (_core.ScenarioError, TimeoutError):
        return None
    rows = output["rows"]
    last = list(rows["flow"]).index("all")
    figures = {name: float(rows[name][last]) for name in ("goodput_bps", "delay_p99_s")}
    figures = {name: 0.0 if math.isnan(value) else value for name, value in figures.items()}
    return {**figures, "status": set(rows["status"]), "notes": output["notes"]}


def _at(scenario: dict[str, Any], path: list[str]) -> Any:
    for step in path:
        scenario = scenario[step]
    return scenario


def _name(scenario: dict[str, Any], path: list[str]) -> str:
    """The key without names, with the kind of transport."""
    if path[0] == "transport":
        return ".".join(["transport", scenario["transport"][path[1]]["kind"], *path[2:]])
    return ".".join(["link" if path[0] == "hop" else path[0], *path[2 if path[0] != "link" else 1 :]])


if __name__ == "__main__":
    main()
