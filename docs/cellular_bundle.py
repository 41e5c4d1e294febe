"""The section of `docs/validation/bundles.md` on cellular modems, called by `docs/bundles.py`.

`python docs/cellular_bundle.py` alone rewrites that section and leaves the rest of the page; it takes three minutes.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import cellular
import cellular_lines as lines
import cellular_studies
from cellular_studies import Found
from cellular_values import LEO_RATE, MAHIMAHI, of_availability, of_setting, of_starlink, of_streams, of_tcp

from farlink.cli.progress import progress_bar
from farlink.papers.estimate import Estimate
from farlink.plot.style import COLOURS, MARKERS, name_places, new_figure, picture_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEADING = "## Bundles of cellular modems"
PICTURE = "bundles-cellular"

TEXT = """\
## Bundles of cellular modems

Four 5G modems that were logged together on one ship for {hours} h (FjordLink; [what is in that
log](call-drops.md#modems-of-5g)) as the four lines of a bundle: {drops} drops as they came (`calls.schedule`), and each of
{handovers} changes of the serving cell as an interruption. **Assumed** are:

- How long a handover interrupts a modem. Readings once a second do not show it. {lengths} stand for what is published: 30
  to 80 ms within LTE, 50 to 150 ms in 5G, 1 to 3 s where the link was lost before (training for drive tests,
  5g6gacademy.com, lessons 12.3.5 and 12.3.1); 3 to 4.5 s between generations in a German network (field trial,
  github.com/olgen2013/HandoverMeasurements). `farlink bundle fit --replay FILE --handover-s {length}` makes such lines of a
  log. Where in the second before its reading each begins is drawn at random.
- {rate} Mb/s a line. The log has traffic, not capacity: two modems sent {sent} Mb/s in the mean all day, test streams came at
  51 Mb/s, the best second at {most} Mb/s. LTE in Mahimahi's traces has {lte} Mb/s in the mean.
- {delay} ms one way (the authors of FjordLink: median round trips below 50 ms), and a queue of {queue} ms.

The engine loses what a line holds as its call drops, some {held} packets on their way, or sends it again over the others
(`on_drop`), and knows of the drop at once. A base station keeps and forwards; which is nearer the truth, the log hints at: in
{streams} handovers a modem received a test stream of constant rate before and after. Around {whole} of them less than 0.1 s of
the stream is missing (median {missing_median} s), around the others {missing_rest} s; without a handover {missing_quiet} of
{quiet} readings miss as much. Most handovers lose nothing, few are an outage; what was only held up is not seen.

TCP has a least timeout of 0.2 s, as in Linux, and no limit of its window; its figures are of {stretches} parts of {stretch} s,
evenly over the log, each a run, with {drops_per_run} interruptions in the mean. `reorder_timeout_s` is {patience} s. ± is the
half-width of the 95 % interval.

### Availability

Over the whole log. *If independent*: modems that are down as often, each for itself.

{availability}

*Both down*: of {hours} h, in the mean over pairs. All four are down for {none_up} with handovers of {longest} s, and would be
for {none_up_free} if independent. Two modems of one operator are down together {same_ratio} times as long as if independent,
those of two operators {other_ratio} times: as far as handovers go, a second operator is little better than a second modem.

### TCP over the bundle

SACK, Mb/s, by the length of a handover:

{lengths_table}

By TCP, with handovers of {length} s; *gain*: of requeueing. CUBIC and BBR repair as RACK does, which is Linux:

{transports}

{drops_in_parts} of the {drops} drops without a cell, {down_lengths} long, fall into the parts. In parts that begin {before} s
before each of them, with the handovers there:

{drops_table}

![Goodput by TCP, and by scheduler beside Starlink](../pictures/bundles-cellular.svg)

- What costs is that handovers come, not how long they take: SACK loses {sack_cost} over the bundle with {shortest} s a
  handover and {sack_cost_long} with {longest} s, although lines are then down for {down_cost} of the time. A modem alone
  loses {alone_cost} and {alone_cost_long}. The bundle's window is four times as large, is halved by the handovers of all, one
  in {every} s, and grows no faster.
- So one connection over the bundle has less than a connection over each modem would: {four} Mb/s together. CUBIC closes the
  gap ({cubic} Mb/s).
- At {fast} Mb/s a line, SACK has {fast_sack} of what it has without handovers, CUBIC {fast_cubic}.
- **Requeueing gives SACK back what handovers cost** ({sack_gain}), and Reno {reno_gain}: packets keep their numbers, the
  receiver puts them in order, and TCP sees neither a loss nor a duplicate. RACK gains {rack_gain}. Reno has {reno_timeouts}
  timeouts a drop, and {reno_requeue} with requeueing.
- `reorder_timeout_s` does not matter: {patiences} Mb/s with {patience_names}. Under load every line delivers a later number
  within milliseconds, which is what RFC 1990 waits for.

By scheduler, SACK, handovers of {length} s:

{schedulers}

Lines that are alike need no scheduler. `redundant` costs {redundant_cost}.

### Small streams

A datagram of 200 bytes every 20 ms over the whole log, and a video of 8 Mb/s in the parts:

{streams_table}

- **Redundancy loses nothing and delays nothing** at any length, at four times the traffic. `on_drop = "requeue"` also loses
  nothing, at one: it takes a sender that knows what has arrived.
- A modem alone loses one datagram a handover, and holds the others up for as long as it takes: 99 % of them arrive within
  {delay} ms as long as it is down for less than 1 % of the time. Over the bundle they do with every scheduler.
- `drop-aware` has {aware_share} of the losses of `earliest-delivery`: it takes the modem that drops least often.
- A video that fills most of a modem overflows its queue in an interruption: with handovers of {longest} s it loses
  {video_alone} of its datagrams, over the bundle {video_bundle}.

### Beside Starlink (synthetic)

**The dish was logged on other days**: this is one modem of each operator beside a dish that saw another sky. Of the dish, a
second in which a share of the pings was lost is an interruption for that share of the second; that is {dish_down} of the time
and comes where its slots of 15 s begin. {star_rate} Mb/s (a trace of LeoCC has {leo} in the mean), {star_delay} ms one way
(half the median latency of the dish: {dish_delay} ms). Handovers of {length} s.

{beside}

- **`earliest-delivery` uses all three**, whatever `line_packets` is: {ed_shallow} Mb/s with {shallow}, {ed_deep} with
  {deep}, Starlink alone {star_alone}. A packet that waits for Starlink still arrives before one that leaves over a modem
  now, {ahead} ms longer on its way, and so do the {ahead_packets} behind it; while more than that wait, an idle modem takes
  one.
- `round-robin` suffers from deep lines: {rr_shallow} Mb/s with {shallow}, {rr_deep} with {deep}. A packet in a full modem is
  then {full} ms late, in which Starlink delivers {full_packets}. The receiver lets {most_held} wait, as Linux does, gives up
  the one in the modem, and TCP repeats it: with these rates `line_packets` of up to {most_packets} go.
- CUBIC with RACK has {cubic_best} of {sum} Mb/s with `{cubic_best_scheduler}` and `line_packets` of {cubic_best_packets}.
- A small stream is as quick as over Starlink alone with every scheduler but `round-robin`. With `redundant` it loses
  {redundant_lost} datagrams an hour, over Starlink alone {star_lost}.

### What this leaves out

Rates and delays that vary: a modem is slow before it leaves a bad cell, and Starlink's delay jumps. Pauses in which a line
keeps what it holds, as a base station does: drops lose it or requeue it. Senders that learn of a drop late.
"""


def main() -> int:
    """Write the section in the page, and the picture."""
    from bundles import PAGE, wrapped

    if not is_there():
        return 2
    with progress_bar("bundles") as progress:
        done = 0

        def told() -> None:
            nonlocal done
            done += 1
            progress(done, cellular_studies.SCENARIOS)

        found = cellular_studies.study(told)
    before = PAGE.read_text(encoding="utf-8").partition(HEADING)[0].rstrip("\n")
    PAGE.write_text(f"{before}\n\n{wrapped(section(found))}", encoding="utf-8")
    svg = picture_svg(picture(found), PICTURE)
    target = PAGE.parents[1] / "pictures" / f"{PICTURE}.svg"
    target.write_text(svg, encoding="utf-8")
    print(PAGE.name, target.name, sep="\n")
    return 0


def is_there() -> bool:
    """Whether the logs exist; prints an error if not."""
    found = all(path.exists() for path in (cellular.MODEMS, cellular.DISH, MAHIMAHI, LEO_RATE))
    if not found:
        text = f"error: the logs are not in {cellular.DATA}\nhint: set FARLINK_DATA to the directory of the measured data"
        print(text, file=sys.stderr)
    return found


def section(found: Found | None = None) -> str:
    """The text."""
    found = found or cellular_studies.study(lambda: None)
    said = of_setting(found) | of_availability(found) | of_tcp(found) | of_streams(found) | of_starlink(found)
    return TEXT.format(**said)


def picture(found: Found) -> Figure:
    """Goodput by TCP over the modems, and by scheduler beside Starlink."""
    figure, (upper, lower) = new_figure(height_in=6.8, rows=2, is_y_shared=False, is_x_shared=False)
    kinds = {"alone": "four modems, a connection each", "lose": "bundle, lost", "requeue": "bundle, requeued"}
    for place, (key, name) in enumerate(kinds.items()):
        factor = (4 if key == "alone" else 1) / 1e6
        points(upper, [found.transports[tcp, key].mean("goodput_bps", factor) for tcp in lines.TRANSPORTS], place, name)
    name_places(upper, list(lines.TRANSPORTS))
    upper.set_ylabel(f"four modems, {lines.LENGTH_S:g} s a handover:\ngoodput (Mb/s)")
    for place, tcp in enumerate(("SACK", "CUBIC"), start=len(kinds)):
        points(lower, [runs[tcp].mean("goodput_bps", 1e-6) for runs in found.beside.values()], place, tcp)
    short = {"Starlink alone": "Starlink", "the modems alone": "two\nmodems"}
    broken = {name: name.replace("-", "-\n") for name in lines.SCHEDULERS}
    names = [short.get(which, f"{broken[scheduler]}\n{packets}") for which, scheduler, packets in found.beside]
    name_places(lower, names)
    lower.set_ylabel("Starlink and two modems (synthetic):\ngoodput (Mb/s)")
    lower.set_xlabel("scheduler, line_packets")
    lower.set_ylim(bottom=0)
    for ax in (upper, lower):
        ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=2, frameon=False)
    return figure


def points(ax: Axes, found: list[Estimate], place: int, name: str) -> None:
    """Points with their intervals, shifted slightly against those of other names."""
    ax.errorbar(
        [at + 0.12 * (place % 3 - 1) for at in range(len(found))],
        [one.mean for one in found],
        yerr=[one.half_width for one in found],
        color=COLOURS[place],
        marker=MARKERS[place],
        linestyle="none",
        markersize=6.0,
        capsize=3,
        label=name,
    )


if __name__ == "__main__":
    sys.exit(main())
