"""Figure 5.2 and section 5.1 from measured logs: Iridium calls of gliders, and 5G modems that report their signal."""

from __future__ import annotations

from pathlib import Path

from farlink.channels.calls import causes, clusters, goodness, samples
from farlink.channels.calls.fits import Fit, fit
from farlink.channels.calls.samples import Sample
from farlink.channels.calls.study import load
from farlink.papers.check import Check, Verdict, claim
from farlink.papers.estimate import Estimate
from farlink.papers.item import Drawing, Workbench
from farlink.papers.zaghloul.figure_5_2 import GREENLAND_MIN, KANSAS_MIN, density_drawing
from farlink.papers.zaghloul.setting import MINUTE_S
from farlink.scenario import find_data_file

SEAGLIDER, SLOCUM = "iridium-seaglider-commlog", "iridium-slocum-disconnects"
MODEMS = "starlink-5g-fjordlink/5g-router"


def missing(*folders: str) -> str:
    """Why an item cannot be computed: which measured logs are not here; empty if all are."""
    absent = [folder for folder in folders if not (_data() / folder).is_dir()]
    return f"the measured logs {absent[0]} are not here: set FARLINK_DATA to their directory" if absent else ""


def figure_5_2_measured(_bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """The thesis's test on calls of gliders over Iridium."""
    _, gliders = load(sorted((_data() / SEAGLIDER).glob("*.gz")))
    _, slocum = load([_data() / SLOCUM / "1012-3.csv"])
    connected, by_clock = samples.airtimes(gliders), samples.inter_drop_times(slocum)
    one = next(link for link in gliders if link.name == "sg677")
    alone = samples.airtimes([one])
    alike = clusters.links_alike(gliders)
    apart = (
        f"the gliders drop at different rates, from {alike.details['shortest_mean_s'] / MINUTE_S:.0f} min to "
        f"{alike.details['longest_mean_s'] / 3600:.1f} h (p {alike.p:.0e})"
    )
    checks = [_rate(fit(connected), minutes, apart) for minutes in (GREENLAND_MIN, KANSAS_MIN)]
    checks += [
        _accepted("seven Seagliders, time connected", connected, apart),
        _accepted(f"{one.name}, time connected", alone, ""),
        _accepted("Slocum, time on the clock", by_clock, "its drops come in a row: at most 45 calls one after the other"),
    ]
    tested = goodness.anderson_darling(alone, fit(alone))
    caption = (
        f"Time connected between {connected.events} drops of seven Seagliders, calls that ended on purpose not counted as "
        f"drops. Of {one.name} alone the test of the thesis accepts an exponential, and Anderson and Darling's rejects it "
        f"(p {tested.p:.2g})."
    )
    heading = "Density of the time connected between drops, Iridium, measured"
    return checks, [density_drawing("figure-5-2-measured", heading, caption, connected, GREENLAND_MIN)]


def section_5_1_measured(_bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """Low signal before drops, on modems of another kind: no log of Iridium here has its signal-to-noise ratio."""
    _, modems = load(sorted((_data() / MODEMS).glob("*.gzip")))
    drops = sum(len(link.drops) for link in modems)
    checks = []
    for (below_db, for_s), printed in zip(
        causes.LOW_SNR,
        (
            "if the link's SNR gets below 0 dB for more than 16 sec, a call drop will occur",
            "operation below 2 dB for more than 20 sec results in call drops",
        ),
        strict=True,
    ):
        spells = [(link, spell) for link in modems for spell in causes.low_snr_spells(link, below_db, for_s)]
        ended = sum(any(call.drop_s == end for call in link.drops) for link, (_, end) in spells)
        low, high = clusters.wilson(ended, len(spells))
        value = Estimate(ended / len(spells), max(high - ended / len(spells), ended / len(spells) - low))
        checks.append(
            Check(
                "section-5.1-measured",
                f"share of {len(spells)} times below {below_db:g} dB for {for_s:g} s that end in a drop, four 5G modems",
                printed,
                "measured",
                value,
                claim(value, at_least=0.5),
                f"agrees if half of them do. Another radio: modems of 5G and LTE in 4.95 h on a ship, {drops} drops in all; no "
                "log of Iridium here has the ratio",
            )
        )
    return checks, []


def _rate(found: Fit, printed_min: float, apart: str) -> Check:
    low, high = (end / MINUTE_S for end in found.mean_ci_s)
    mean = found.mean_s / MINUTE_S
    verdict = Verdict.AGREES if low <= printed_min <= high else Verdict.DIFFERS
    return Check(
        "figure-5.2-measured",
        f"seven Seagliders: minutes connected per drop, beside 1/{printed_min} min",
        printed_min,
        "measured",
        Estimate(mean, max(high - mean, mean - low)),
        verdict,
        f"agrees if the 95 % interval of a constant rate, {low:.1f} to {high:.1f}, has it; by coincidence: {apart}",
    )


def _accepted(name: str, drawn: Sample, cause: str) -> Check:
    tested = goodness.chi_square(drawn, fit(drawn))
    rule = "agrees if the chi-square test with 15 bins accepts the exponential at 5 %"
    is_accepted = tested.is_accepted is True
    return Check(
        "figure-5.2-measured",
        f"{name} between {drawn.events} drops: p of the exponential",
        "followed an exponential distribution",
        "measured",
        Estimate(tested.p),
        Verdict.AGREES if is_accepted else Verdict.DIFFERS,
        rule if is_accepted or not cause else f"{rule}; {cause}",
    )


def _data() -> Path:
    return find_data_file("$FARLINK_DATA", base=Path.cwd())
