"""What `docs/cellular_bundle.py` says in figures: tables and numbers by name."""

from __future__ import annotations

import math
from itertools import combinations

import cellular
import cellular_lines as lines
import numpy as np
from bundle_studies import Runs, gain
from bundle_tables import listed, per_drop, percents, table
from cellular import Series
from cellular_studies import Found
from cellular_traffic import mean_rate_bps, median_delay_s, read_traffic
from page import Values

from farlink.channels.calls.availability import availability
from farlink.channels.calls.handovers import interrupted

TELEKOM = ("CAU-0C", "5G-DTAG-WAVELAB")
LTE = ("ATT-LTE-driving-2016", "Verizon-LTE-short")
# What the receiver lets wait, as Linux does.
MOST_HELD = 128
MAHIMAHI = cellular.DATA / "cellular-mahimahi"
LEO_RATE = cellular.DATA / "starlink-leocc-example" / "bw_example.txt.gz"


def of_setting(found: Found) -> Values:
    """What is measured, and what is assumed."""
    traffic = read_traffic()
    sent = sorted(bps for name, bps in traffic.sent_bps.items() if name in lines.BESIDE)
    missing, quiet = traffic.missing_s, traffic.missing_otherwise_s
    lte = [mean_rate_bps(path) for name in LTE for path in MAHIMAHI.glob(f"{name}.*.gz")]
    return {
        "hours": f"{found.modems.span_s / 3600:.2f}",
        "modem_drops": f"{sum(len(link.drops) for link in found.modems.links)}",
        "handovers": f"{sum(len(link.handovers_s) for link in found.modems.links)}",
        "modem_lengths": listed(f"{length_s:g}" for length_s in lines.LENGTHS_S if length_s) + " s",
        "length": f"{lines.LENGTH_S:g}",
        "shortest": f"{lines.LENGTHS_S[1]:g}",
        "longest": f"{lines.LENGTHS_S[-1]:g}",
        "modem_rate": f"{lines.RATE_BPS / 1e6:g}",
        "sent": listed(f"{bps / 1e6:.1f}" for bps in sent),
        "most": f"{max(traffic.most_bps.values()) / 1e6:.0f}",
        "lte": f"{min(lte) / 1e6:.1f} to {max(lte) / 1e6:.1f}",
        "modem_delay": f"{1000 * lines.DELAY_S:g}",
        "queue": f"{1000 * lines.QUEUE_S:g}",
        "held": f"{lines.DELAY_S * lines.RATE_BPS / 12_000 + 3:.0f}",
        "streams": f"{missing.size}",
        "whole": f"{np.count_nonzero(missing < 0.1)}",
        "missing_median": f"{np.median(missing):.3f}",
        "missing_rest": listed(f"{one:.1f}" for one in np.sort(missing[missing >= 0.1])),
        "missing_quiet": f"{np.count_nonzero(quiet >= 0.1)}",
        "quiet": f"{quiet.size}",
        "stretches": f"{lines.STRETCHES}",
        "stretch": f"{lines.STRETCH_S}",
        "drops_per_run": f"{found.bulk[lines.LENGTH_S, 'lose']['call_drops'].mean():.1f}",
        "modem_patience": f"{lines.PATIENCE_S:g}",
    }


def of_availability(found: Found) -> Values:
    """How much of the time modems are up."""
    modems = found.modems
    rows = []
    for length_s in lines.LENGTHS_S:
        up = modems.up(length_s)
        downs = [sum(end - begin for begin, end in spells) / modems.span_s for spells in modems.downs[length_s]]
        row = ["none" if length_s is None else f"{length_s:g} s", f"{100 * min(downs):.2f} to {100 * max(downs):.2f} %"]
        row += [f"{100 * up.all_up:.2f} %", f"{100 * up.all_up_independent:.2f} %"]
        same, other = both_down_s(modems, length_s)
        rows.append([*row, *(f"{seconds:.2f} s" for seconds in (*same, *other))])
    (same_s, same_free_s), (other_s, other_free_s) = both_down_s(modems, lines.LENGTHS_S[-1])
    up = modems.up(lines.LENGTHS_S[-1])
    head = ["a handover takes", "a modem is down", "all four up", "if independent", "both down: one operator", "if independent"]
    return {
        "availability": table([*head, "both down: two operators", "if independent"], rows),
        "none_up": f"{abs(1 - up.any_up) * up.span_s:.3f} s",
        "none_up_free": f"{1000 * (1 - up.any_up_independent) * up.span_s:.1f} ms",
        "same_ratio": f"{same_s / same_free_s:.1f}",
        "other_ratio": f"{other_s / other_free_s:.1f}",
    }


def both_down_s(modems: lines.Modems, length_s: float | None) -> tuple[Series, Series]:
    """How long two modems are down together, and would be if independent, in s, mean over pairs: of one operator, of two."""
    found: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    links = modems.links if length_s is None else [interrupted(link, length_s) for link in modems.links]
    for one, other in combinations(links, 2):
        up = availability([one, other])
        assert up is not None
        is_same = (one.name in TELEKOM) == (other.name in TELEKOM)
        found[is_same].append((abs(1 - up.any_up) * up.span_s, (1 - up.any_up_independent) * up.span_s))
    return np.mean(found[True], axis=0), np.mean(found[False], axis=0)


def of_tcp(found: Found) -> Values:
    """TCP over modems alone and the bundle."""
    names = [link.name for link in found.modems.links]
    alone = {length_s: lines.averaged([found.bulk[length_s, name] for name in names]) for length_s in lines.LENGTHS_S}
    rows = []
    for length_s in lines.LENGTHS_S:
        means = [found.bulk[length_s, name]["goodput_bps"].mean() / 1e6 for name in names]
        lost, requeued = (found.bulk[length_s, on_drop] for on_drop in lines.ON_DROP)
        row = ["none" if length_s is None else f"{length_s:g} s", mbps(alone[length_s], 2)]
        row += [f"{min(means):.2f} to {max(means):.2f}", mbps(lost), mbps(requeued)]
        rows.append([*row, percents(gain(lost, found.bulk[None, "lose"]), signed=True) if length_s else "–"])
    head = ["a handover takes", "a modem alone, mean", "worst and best", "bundle: lost", "requeued", "lost, against none"]
    rows_by_tcp = []
    for name in lines.TRANSPORTS:
        single, lost, requeued = (found.transports[name, key] for key in ("alone", *lines.ON_DROP))
        row = [name, mbps(single, 2), mbps(lost), mbps(requeued), percents(gain(requeued, lost), signed=True)]
        rows_by_tcp.append([*row, f"{per_drop(lost):.2f}, {per_drop(requeued):.2f}", ms(lost)])
    shortest_s, longest_s = lines.LENGTHS_S[1], lines.LENGTHS_S[-1]

    def cost(length_s: float | None, runs: dict[float | None, Runs]) -> str:
        return percent_down(runs[length_s], runs[None])

    lost = {length_s: found.bulk[length_s, "lose"] for length_s in lines.LENGTHS_S}
    reno, sack, rack = ({key: found.transports[name, key] for key in lines.ON_DROP} for name in ("Reno", "SACK", "RACK"))
    rows_of_drops = []
    for name in ("SACK", "CUBIC"):
        single, one, again = (found.drops[name, key] for key in ("alone", *lines.ON_DROP))
        row = [name, mbps(single, 2), f"{single['timeouts'].mean():.1f}", mbps(one), f"{one['timeouts'].mean():.1f}"]
        rows_of_drops.append([*row, mbps(again), percents(gain(again, one), signed=True)])
    downs_s = [end - begin for spells in found.modems.downs[None] for begin, end in spells if begin > 0]
    schedulers = []
    for scheduler, runs in found.schedulers.items():
        row = [f"`{scheduler}`", mbps(runs), percents(gain(runs, found.schedulers["round-robin"]), signed=True)]
        row[2] = "–" if scheduler == "round-robin" else row[2]
        schedulers.append([*row, f"{per_drop(runs):.2f}", ms(runs)])
    patiences = [runs["goodput_bps"].mean() / 1e6 for runs in found.patiences.values()]
    return {
        "lengths_table": table(head, rows),
        "transports": table(
            ["TCP", "a modem alone", "bundle: lost", "requeued", "gain", "timeouts per drop", "lost: 99 % delay"], rows_by_tcp
        ),
        "drops_table": table(
            ["TCP", "the modem that drops, alone", "timeouts a part", "bundle: lost", "timeouts", "requeued", "gain"],
            rows_of_drops,
        ),
        "drops_in_parts": f"{found.bulk[None, 'lose']['call_drops'].sum():.0f}",
        "down_lengths": f"{min(downs_s):.0f} to {max(downs_s):.0f} s",
        "before": f"{lines.BEFORE_S}",
        "modem_sack_cost": cost(shortest_s, lost),
        "sack_cost_long": cost(longest_s, lost),
        "redundant_cost": percent_down(found.schedulers["redundant"], found.schedulers["round-robin"]),
        "down_cost": f"{100 * (1 - lost[longest_s]['lines_up_fraction'].mean()):.1f} %",
        "alone_cost": cost(shortest_s, alone),
        "alone_cost_long": cost(longest_s, alone),
        "every": f"{(lines.STRETCH_S) / lost[lines.LENGTH_S]['call_drops'].mean():.0f}",
        "modem_four": f"{4 * found.transports['SACK', 'alone']['goodput_bps'].mean() / 1e6:.1f}",
        "cubic": mbps(found.transports["CUBIC", "lose"]),
        "fast": f"{lines.FAST_BPS / 1e6:g}",
        "fast_sack": f"{100 * ratio(found.fast['SACK', lines.LENGTH_S], found.fast['SACK', None]):.0f} %",
        "fast_cubic": f"{100 * ratio(found.fast['CUBIC', lines.LENGTH_S], found.fast['CUBIC', None]):.0f} %",
        "sack_gain": percents(gain(sack["requeue"], sack["lose"]), signed=True),
        "rack_gain": percents(gain(rack["requeue"], rack["lose"]), signed=True),
        "reno_gain": percents(gain(reno["requeue"], reno["lose"]), signed=True),
        "reno_timeouts": f"{per_drop(reno['lose']):.2f}",
        "reno_requeue": f"{per_drop(reno['requeue']):.2f}",
        "patiences": f"{min(patiences):.2f} to {max(patiences):.2f}",
        "patience_names": listed("none" if one is None else f"{one:g} s" for one in found.patiences),
        "modem_schedulers": table(
            ["scheduler", "SACK, Mb/s", "to `round-robin`", "timeouts per drop", "99 % delay"], schedulers
        ),
    }


def of_streams(found: Found) -> Values:
    """Small streams over modems alone and the bundle."""
    names = [link.name for link in found.modems.links]
    hours, longest_s = found.modems.span_s / 3600, lines.LENGTHS_S[-1]
    kinds: dict[str, list[tuple[str, str]]] = {"a modem alone": [(name, "lose") for name in names]}
    kinds |= {f"`{name}`": [(name, "lose")] for name in lines.SCHEDULERS}
    kinds["`round-robin`, requeued"] = [("round-robin", "requeue")]
    videos = {"a modem alone": names, "`round-robin`": ["lose"], "`redundant`": ["redundant"]}
    videos["`round-robin`, requeued"] = ["requeue"]
    rows = []
    for kind, keys in kinds.items():
        row = [kind]
        for length_s in (lines.LENGTH_S, longest_s):
            runs = lines.averaged([found.telemetry[length_s, *key] for key in keys])
            row += [f"{lost_per_hour(runs, hours):.0f}", ms(runs, "delay_mean_s", 1)]
            row += [ms(runs)]
            video = lines.averaged([found.video[length_s, key] for key in videos[kind]]) if kind in videos else None
            row.append("–" if video is None else f"{100 * video['loss_fraction'].mean():.2f} %")
        rows.append(row)
    head = ["over"]
    for length_s in (lines.LENGTH_S, longest_s):
        head += [f"{length_s:g} s a handover: lost per hour", "mean delay", "99 %", "video lost"]

    def video_lost(keys: list[str]) -> str:
        return f"{100 * lines.averaged([found.video[longest_s, key] for key in keys])['loss_fraction'].mean():.2f} %"

    aware, earliest = (found.telemetry[lines.LENGTH_S, name, "lose"] for name in ("drop-aware", "earliest-delivery"))
    return {
        "streams_table": table(head, rows),
        "aware_share": f"{100 * ratio(aware, earliest, 'loss_fraction'):.0f} %",
        "video_alone": video_lost(names),
        "video_bundle": video_lost(["lose"]),
    }


def of_starlink(found: Found) -> Values:
    """What is said of the dish beside modems."""
    dish = cellular.read_dish()
    beside = found.beside
    hours = lines.STRETCHES * lines.STRETCH_S / 3600
    rows = []
    for (which, scheduler, packets), runs in beside.items():
        quick = runs["telemetry"]
        row = [which, f"`{scheduler}`" if which == "all three" else "–", f"{packets}"]
        row += [mbps(runs["SACK"]), mbps(runs["CUBIC"])]
        row += [
            ms(runs["CUBIC"]),
            ms(quick, "delay_mean_s", 1),
            ms(quick, "delay_p99_s", 1),
            f"{lost_per_hour(quick, hours):.0f}",
        ]
        rows.append([*row, f"{100 * runs['video']['loss_fraction'].mean():.3f} %"])
    head = ["lines", "scheduler", "`line_packets`", "SACK, Mb/s", "CUBIC, Mb/s", "its 99 % delay", "telemetry: mean", "99 %"]
    ahead_s = lines.DELAY_S + 12_000 / lines.RATE_BPS - lines.STARLINK_DELAY_S
    best = max((key for key in beside if key[0] == "all three"), key=lambda key: beside[key]["CUBIC"]["goodput_bps"].mean())

    def three(scheduler: str, packets: int) -> str:
        return mbps(beside["all three", scheduler, packets]["SACK"])

    star = beside["Starlink alone", "round-robin", lines.SHALLOW]
    redundant = beside["all three", "redundant", lines.SHALLOW]
    lost = np.concatenate([one[1] for one in dish.files])
    return {
        "beside": table([*head, "lost per hour", "video lost"], rows),
        "dish_down": f"{100 * lost.mean():.2f} %",
        "star_rate": f"{lines.STARLINK_BPS / 1e6:g}",
        "leo": f"{mean_rate_bps(LEO_RATE) / 1e6:.1f}",
        "star_delay": f"{1000 * lines.STARLINK_DELAY_S:g}",
        "dish_delay": f"{1000 * median_delay_s(dish):.1f}",
        "ed_shallow": three("earliest-delivery", lines.SHALLOW),
        "ed_deep": three("earliest-delivery", lines.DEEP),
        "rr_shallow": three("round-robin", lines.SHALLOW),
        "rr_deep": three("round-robin", lines.DEEP),
        "star_alone": mbps(star["SACK"]),
        "ahead": f"{1000 * ahead_s:.0f}",
        "ahead_packets": f"{math.floor(ahead_s * lines.STARLINK_BPS / 12_000)}",
        "full": f"{1000 * (ahead_s + (lines.DEEP - 1) * 12_000 / lines.RATE_BPS):.0f}",
        "full_packets": f"{(ahead_s + (lines.DEEP - 1) * 12_000 / lines.RATE_BPS) * lines.STARLINK_BPS / 12_000:.0f}",
        "most_packets": f"{math.floor((MOST_HELD * 12_000 / lines.STARLINK_BPS - ahead_s) * lines.RATE_BPS / 12_000) + 1}",
        "most_held": f"{MOST_HELD}",
        "shallow": f"{lines.SHALLOW}",
        "deep": f"{lines.DEEP}",
        "cubic_best": mbps(beside[best]["CUBIC"]),
        "cubic_best_scheduler": f"`{best[1]}`",
        "cubic_best_packets": f"{best[2]}",
        "sum": f"{(lines.STARLINK_BPS + 2 * lines.RATE_BPS) / 1e6:g}",
        "redundant_lost": f"{lost_per_hour(redundant['telemetry'], hours):.0f}",
        "star_lost": f"{lost_per_hour(star['telemetry'], hours):.0f}",
    }


def mbps(runs: Runs, digits: int = 1) -> str:
    """Goodput in Mbit/s and its interval."""
    found = runs.mean("goodput_bps", 1e-6)
    return f"{found.mean:.{digits}f} ± {found.half_width:.{digits}f}"


def ms(runs: Runs, name: str = "delay_p99_s", digits: int = 0) -> str:
    """A delay, in the mean of runs."""
    return f"{1000 * runs[name].mean():.{digits}f} ms"


def ratio(changed: Runs, base: Runs, name: str = "goodput_bps") -> float:
    """What is left of a mean."""
    return float(changed[name].mean() / base[name].mean())


def percent_down(changed: Runs, base: Runs) -> str:
    """By how much goodput is less."""
    return f"{100 * (1 - ratio(changed, base)):.1f} %"


def lost_per_hour(runs: Runs, hours: float) -> float:
    """Datagrams that did not arrive, for each hour of all runs."""
    sent = runs["delivered_packets"] / (1 - runs["loss_fraction"])
    return float((sent - runs["delivered_packets"]).sum()) / hours
