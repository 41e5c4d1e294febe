"""A fitted process of drops as tables of a scenario."""

from __future__ import annotations

from farlink.channels.calls.study import Part
from farlink.errors import JournalError

# Shapes of Weibull distributions, and the longest time, that a scenario takes.
_SHAPES = (0.1, 100.0)
_LONGEST_S = 1e7


def scenario_text(part: Part, *, table: str = "link.channel", measured_on: str = "") -> str:
    """The table of a scenario whose link drops and is dialled again like the links of a study.

    Parameters
    ----------
    part
        Whose up and redial times are used.
    table
        Where it stands in the scenario.
    measured_on
        What the times are from, for a comment.

    Returns
    -------
    str
        TOML. Times in s.

    Raises
    ------
    JournalError
        If neither its up times nor its redial times could be fitted.

    Notes
    -----
    Up times are those of the airtime between drops, which calls that end on purpose do not bend. Both are exponential, unless a
    Weibull fit is better by an AIC of 2 or more.
    """
    lines = [
        f"# Fitted to {measured_on}." if measured_on else "# Fitted to measured calls.",
        f"[{table}]",
        'kind = "call-drops"',
    ]
    is_fitted = False
    for key, name in (("up", "airtime"), ("redial", "redial")):
        chosen, remark = _chosen(part, name)
        is_fitted |= bool(chosen)
        if remark:
            lines.append(f"# {key}: {remark}")
        if chosen:
            lines.append(f"{key} = {chosen}")
        elif remark:
            is_fitted = True
        else:
            need = part.times[name].judged[0].fit.reason if name in part.times else "there is none"
            lines.append(f"# {key}: not fitted, {need}")
    if not is_fitted:
        reason = part.times["airtime"].judged[0].fit.reason
        raise JournalError(f"{part.name}: neither up nor redial times can be fitted: {reason}", "give a longer log")
    return "\n".join(lines) + "\n"


def _chosen(part: Part, name: str) -> tuple[str, str]:
    """The distribution for a scenario, and a note if another fits better but is out of range, or if none fits."""
    if name not in part.times:
        return "", ""
    exponential, weibull = (part.times[name].of(kind).fit for kind in ("exponential", "weibull"))
    if not exponential.is_fitted:
        return "", ""
    shape = weibull.parameters["shape"] if weibull.is_fitted else 1
    is_better = weibull.is_fitted and weibull.aic <= exponential.aic - 2
    scale_s = weibull.parameters["scale_s"] if weibull.is_fitted else 0.0
    is_in_range = _SHAPES[0] <= shape <= _SHAPES[1] and scale_s <= _LONGEST_S
    if is_better and is_in_range and weibull.intervals:
        return f'{{ distribution = "weibull", shape = {shape:.3g}, scale_s = {_number(scale_s)} }}', ""
    remark = ""
    if is_better and not is_in_range:
        ranges = f"a scenario takes shapes from {_SHAPES[0]:g} to {_SHAPES[1]:g} and at most {_LONGEST_S:g} s"
        remark = f"a Weibull distribution of shape {shape:.3g} and scale {_number(scale_s)} s fits better; {ranges}"
    if exponential.mean_s > _LONGEST_S:
        return "", f"the mean of {_number(exponential.mean_s)} s is above the {_LONGEST_S:g} s that a scenario takes"
    return f'{{ distribution = "exponential", mean_s = {_number(exponential.mean_s)} }}', remark


def _number(value: float) -> str:
    return f"{value:.4g}" if value < 1e4 else f"{value:.0f}"
