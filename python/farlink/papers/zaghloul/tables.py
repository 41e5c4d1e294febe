"""Tables 6.1 and 6.2: transfer times from Greenland, predicted and measured."""

from __future__ import annotations

from farlink.models.multilink import call_drops
from farlink.papers.check import Check, Verdict, number
from farlink.papers.estimate import Estimate
from farlink.papers.item import Drawing, Workbench
from farlink.papers.zaghloul.setting import GREENLAND, KILOBYTE, MEGABYTE, MINUTE_S

# Size in MB, predicted and measured minutes.
TABLE_6_1 = ((1.38, "12.5", "11"), (5.62, "51", "46"), (20.6, "187", "180"), (35.7, "324", "315"))
# Links, size in MB, window in KB, predicted and measured minutes.
TABLE_6_2 = (
    (3, 4.82, 16.1, "98.1", "96"),
    (4, 0.85, 22.0, "13.4", "15"),
    (5, 1.91, 28.3, "24.1", "21"),
    (6, 1.39, 34.7, "15.4", "13"),
    (7, 3.40, 41.0, "33.2", "30"),
    (8, 1.40, 47.9, "12.7", "12"),
)
_NEAR_6_1, _NEAR_6_2 = 0.006, 0.05
# The text says that predictions agree with the measured times that are so far from them.
_MEASURED = max(abs(float(predicted) / float(measured) - 1) for *_, predicted, measured in (*TABLE_6_1, *TABLE_6_2))


def table_6_1(_bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """Eight links, four files; and eq. (24) as it is printed."""
    checks = []
    for megabytes, predicted, measured in TABLE_6_1:
        ours = Estimate(float(GREENLAND.minutes(megabytes * MEGABYTE)))
        checks.append(_predicted("table-6.1", f"{megabytes} MB", ours, predicted, _NEAR_6_1, ""))
        checks.append(_measured("table-6.1", f"{megabytes} MB", ours, measured))
    return [*checks, _equation_24()], []


def table_6_2(_bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """Three to eight links."""
    checks = []
    for links, megabytes, kilobytes, predicted, measured in TABLE_6_2:
        time = GREENLAND.minutes(megabytes * MEGABYTE, links=links, window_bytes=kilobytes * KILOBYTE)
        ours, cell = Estimate(float(time)), f"{links} links, {megabytes} MB"
        checks.append(_predicted("table-6.2", cell, ours, predicted, _NEAR_6_2, "; the windows are printed rounded"))
        checks.append(_measured("table-6.2", cell, ours, measured))
    return checks, []


def _predicted(item: str, cell: str, ours: Estimate, printed: str, near: float, why: str) -> Check:
    verdict = number(ours, printed, relative=near)
    rule = f"eq. (36): agrees within {near:.1%} of the prediction{why}"
    return Check(item, f"{cell}: predicted transfer time, minutes", float(printed), "model", ours, verdict, rule)


def _measured(item: str, cell: str, ours: Estimate, printed: str) -> Check:
    verdict = number(ours, printed, relative=_MEASURED)
    rule = f"eq. (36) beside one measurement: within {_MEASURED:.0%}"
    check = Check(item, f"{cell}: measured transfer time, minutes", float(printed), "model", ours, verdict, rule)
    return check.fitted("the tolerance is the largest error of the thesis's own predictions of these times")


def _equation_24() -> Check:
    drops = call_drops.bundle_drop_rate_hz(1 / GREENLAND.drop_interval_s, links=GREENLAND.links)
    megabytes, printed, _ = TABLE_6_1[0]
    rate = call_drops.throughput(
        drops,
        loss_rate=GREENLAND.loss_rate,
        rtt_s=GREENLAND.rtt_s,
        timeout_s=GREENLAND.timeout_s,
        window_segments=GREENLAND.window_bytes / GREENLAND.segment_bytes,
    )
    segments = -(-megabytes * MEGABYTE // GREENLAND.segment_bytes)
    product, quotient = Estimate(float(segments * rate) / MINUTE_S), Estimate(float(segments / rate) / MINUTE_S)
    is_quotient = number(quotient, printed) is Verdict.AGREES
    note = f"a product of segments and segments per second; the table is the quotient, {quotient.mean:.1f} minutes"
    verdict = Verdict.MISPRINT if is_quotient else number(product, printed)
    cell = f"eq. (24) as printed, {megabytes} MB, minutes"
    return Check("table-6.1", cell, float(printed), "model", product, verdict, note)
