"""Which closed form covers a flow. A new one is a file beside this one and a line in `FORMS`."""

from __future__ import annotations

from collections.abc import Callable

from farlink.engines.model import aerotp_bulk, aerotp_file, arq_bulk, tcp_bulk, tcp_file, udp_cbr
from farlink.engines.model.answer import Answer
from farlink.engines.model.point import Flow, Point, refused

# Kinds of transport and traffic -> what answers for a flow of them, or refuses by the path of a key.
FORMS: dict[tuple[str, str], Callable[[Flow, Point], Answer]] = {
    ("tcp", "bulk"): tcp_bulk.answer,
    ("tcp", "file"): tcp_file.answer,
    ("arq", "bulk"): arq_bulk.answer,
    ("udp", "cbr"): udp_cbr.answer,
    ("aerotp", "bulk"): aerotp_bulk.answer,
    ("aerotp", "file"): aerotp_file.answer,
}

# Kinds of which several flows may share a path.
_SHARED = (("tcp", "bulk"), ("udp", "cbr"))


def answers(point: Point) -> dict[str, Answer]:
    """What each flow of a point achieves: that of one of its flows, by name.

    Raises
    ------
    ScenarioError
        If no form covers a flow, with the path of the key that is in the way.
    """
    kinds = {(str(flow.transport["kind"]), str(flow.traffic["kind"])) for flow in point.flows}
    for flow in point.flows:
        _refuse_unknown(flow)
    _refuse_neighbours(point, kinds)
    return {flow.name: FORMS[flow.transport["kind"], flow.traffic["kind"]](flow, point) for flow in point.flows}


def _refuse_unknown(flow: Flow) -> None:
    transport, traffic = flow.transport["kind"], flow.traffic["kind"]
    if (transport, traffic) in FORMS:
        return
    known = [kind for of, kind in FORMS if of == transport]
    if not known:
        kinds = ", ".join(f'"{kind}"' for kind in dict.fromkeys(of for of, _ in FORMS))
        what = f"has no closed form for a transport of kind {transport!r}"
        raise refused(flow.key("transport"), what, f"give a transport of kind {kinds}")
    what = f"has no closed form for traffic of kind {traffic!r} over {transport!r}"
    kinds = " or ".join(f'"{kind}"' for kind in known)
    raise refused(flow.key("traffic.kind"), what, f"give {kinds}")


def _refuse_neighbours(point: Point, kinds: set[tuple[str, str]]) -> None:
    if point.count == 1:
        return
    first, *others = point.flows
    if len(kinds) > 1:
        other = next(flow for flow in others if (flow.transport["kind"], flow.traffic["kind"]) != _kind(first))
        what = f"has no closed form for {_words(other)} beside {_words(first)}"
        raise refused(f"flow.{other.name}", what, "give each a scenario of its own")
    if _kind(first) not in _SHARED:
        what = f"has no closed form for {point.count} flows of {_words(first)} that share a path"
        many = next(flow for flow in point.flows if flow.count > 1 or flow is not first)
        raise refused(many.key("count") if many.count > 1 else f"flow.{many.name}", what, "give one flow")
    for flow in others:
        if _kind(first) == ("tcp", "bulk") and dict(flow.transport) != dict(first.transport):
            what = f"shares a path among equal flows, and {flow.transport_name!r} differs from {first.transport_name!r}"
            raise refused(flow.key("transport"), what, "give all flows the same settings")


def _kind(flow: Flow) -> tuple[str, str]:
    return flow.transport["kind"], flow.traffic["kind"]


def _words(flow: Flow) -> str:
    return f"{flow.traffic['kind']!r} over {flow.transport['kind']!r}"
