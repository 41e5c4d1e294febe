"""Answers of the API, as its description says."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from farlink.operator.journal.flat import time_of
from farlink.operator.journal.rows import Connection, Transition


class Problem(BaseModel):
    """A fault, and its remedy."""

    error: str
    remedy: str


class LineAnswer(BaseModel):
    """A line. More keys are possible: they are those of `farlink bundle status --json`."""

    model_config = ConfigDict(extra="allow")

    line: str
    state: str
    is_up: bool
    is_primary: bool
    reason: str = Field(description="Why it is in this state.")
    for_s: float = Field(description="How long it has been in this state, in s.")
    ends_in_s: float | None = Field(None, description="When that ends by itself, in s from now.")


class AlertAnswer(BaseModel):
    """An alert that is raised."""

    model_config = ConfigDict(extra="allow")

    alert: str
    line: str | None = None
    severity: str | None = None
    since_unix_s: float | None = Field(None, description="Since when, in s since 1970-01-01 UTC.")
    cause: str | None = None
    words: str | None = None


class BundleAnswer(BaseModel):
    """A bundle. More keys are possible: they are those of `farlink bundle status --json`."""

    model_config = ConfigDict(extra="allow")

    bundle: str
    running_s: float = Field(description="How long the operator has been running, in s.")
    primary: str | None = Field(None, description="The primary line.")
    up: int = Field(description="Lines that are up.")
    use: int = Field(description="Lines that are used at a time.")
    lines: list[LineAnswer]


class BundleName(BaseModel):
    """A bundle that is served."""

    bundle: str
    is_operated: bool = Field(description="Whether its operator answers.")


class BundleNames(BaseModel):
    """The bundles that are served."""

    bundles: list[BundleName]


class LinesAnswer(BaseModel):
    """The lines of a bundle."""

    lines: list[LineAnswer]


class AlertsAnswer(BaseModel):
    """The alerts of a bundle that are raised."""

    alerts: list[AlertAnswer]


class TransitionAnswer(BaseModel):
    """A line changes its state, or is observed."""

    number: int
    connection: int
    line: str
    state: str
    time: str = Field(description="In UTC, as in ISO 8601.")
    time_s: float = Field(description="In s since 1970-01-01 UTC.")
    cause: str
    bars: int | None = Field(None, description="Signal, 0 to 5.")
    snr_db: float | None = None
    attempt: int | None = None
    bytes_in: int | None = None
    bytes_out: int | None = None
    is_injected: bool
    caller: str | None = Field(None, description="Number and name of who calls, as the network tells them.")


class TransitionsAnswer(BaseModel):
    """A page of transitions."""

    transitions: list[TransitionAnswer]
    next: int | None = Field(
        None, description="For `after`, or `before` with the newest first, of the next page; null at the end."
    )


class ConnectionAnswer(BaseModel):
    """A bundle from its first dial until its last line is lost."""

    number: int
    start: str = Field(description="In UTC, as in ISO 8601.")
    start_s: float = Field(description="In s since 1970-01-01 UTC.")
    end: str | None
    end_s: float | None
    primary: str | None
    indices: dict[str, int] = Field(description="Line -> its index; that of the primary line is 1.")


class ConnectionsAnswer(BaseModel):
    """A page of connections, the newest first."""

    connections: list[ConnectionAnswer]
    next: int | None = Field(None, description="For `before` of the next page; null at the end.")


class OrderAnswer(BaseModel):
    """Outcome of an order."""

    model_config = ConfigDict(extra="allow")

    lines: list[str] = Field(description="Lines to which it was done.")
    left: dict[str, str] = Field(default_factory=dict, description="Line -> why nothing was done to it.")
    waits: dict[str, str] = Field(default_factory=dict, description="Line -> why it waits all the same.")


def transition_answer(one: Transition) -> dict[str, Any]:
    """A transition as the API has it."""
    return {
        "number": one.number,
        "connection": one.connection,
        "line": one.modem,
        "state": one.state,
        "time": time_of(one.time_s),
        "time_s": one.time_s,
        "cause": one.cause,
        "bars": one.bars,
        "snr_db": one.snr_db,
        "attempt": one.attempt,
        "bytes_in": one.bytes_in,
        "bytes_out": one.bytes_out,
        "is_injected": one.is_injected,
        "caller": one.caller,
    }


def connection_answer(one: Connection) -> dict[str, Any]:
    """A connection as the API has it."""
    return {
        "number": one.number,
        "start": time_of(one.start_s),
        "start_s": one.start_s,
        "end": None if one.end_s is None else time_of(one.end_s),
        "end_s": one.end_s,
        "primary": one.primary,
        "indices": one.indices,
    }
