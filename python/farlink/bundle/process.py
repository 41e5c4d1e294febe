"""A fitted process of drops, as a scenario has it."""

from __future__ import annotations

from farlink.bundle.study import Part
from farlink.errors import JournalError


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
    Up times are exponential with the mean airtime between drops, which calls that end on purpose do not bend, and redial times
    with theirs. Where a Weibull fit is better by an AIC of 2 or more, a comment says so.
    """
    lines = [
        f"# Fitted to {measured_on}." if measured_on else "# Fitted to measured calls.",
        f"[{table}]",
        'kind = "call-drops"',
    ]
    is_fitted = False
    for key, name in (("up", "airtime"), ("redial", "redial")):
        chosen = _chosen(part, name)
        is_fitted |= bool(chosen)
        if chosen:
            lines += [f"{key} = {chosen[0]}", *chosen[1:]]
        else:
            need = part.times[name].judged[0].fit.reason if name in part.times else "there is none"
            lines.append(f"# {key}: not fitted, {need}")
    if not is_fitted:
        reason = part.times["airtime"].judged[0].fit.reason
        raise JournalError(f"{part.name}: neither up nor redial times can be fitted: {reason}", "give a longer log")
    return "\n".join(lines) + "\n"


def _chosen(part: Part, name: str) -> list[str]:
    if name not in part.times:
        return []
    exponential, weibull = (part.times[name].of(kind).fit for kind in ("exponential", "weibull"))
    if not exponential.is_fitted:
        return []
    lines = [f'{{ distribution = "exponential", mean_s = {_number(exponential.mean_s)} }}']
    if weibull.is_fitted and weibull.intervals and weibull.aic <= exponential.aic - 2:
        shape, scale_s = weibull.parameters["shape"], weibull.parameters["scale_s"]
        lines.append(f"# A Weibull distribution of shape {shape:.3g} and scale {_number(scale_s)} s fits better.")
    return lines


def _number(value: float) -> str:
    return f"{value:.4g}" if value < 1e4 else f"{value:.0f}"
