"""The operator: what lines report goes to the dialler, what the dialler says is recorded, and its orders go to the lines."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from farlink import _core
from farlink.errors import ArgumentError, FarlinkError, OperatorError, core_errors
from farlink.near_names import instead
from farlink.operator.backend import BackEnd, back_end_of
from farlink.operator.config import Bundle, Secrets
from farlink.operator.config.kinds import KINDS, Parts, Traits, traits_of
from farlink.operator.journal import Journal
from farlink.operator.lines import Line, Report
from farlink.operator.lines.threads import OneThreadEach
from farlink.operator.live import by_hand
from farlink.operator.live.alerting import Alerting
from farlink.operator.live.control import Server, socket_of
from farlink.operator.live.hooks import Hooks
from farlink.operator.live.injector import Injector, rate_hz
from farlink.operator.live.kept_costs import KeptCosts
from farlink.operator.live.recorder import JournalPins, Recorder, words_of
from farlink.operator.live.systemd import notify, watchdog_s

# How often what calls have cost is kept durably.
_KEEP_S = 60.0
# How often the time of day is told to the dialler, for budgets of days and months, and a sign of life is written; and it is
# looked whether the bundle is there, and whether the journal can be written again.
_LOOK_S = 1.0
_FORGET_S = 86_400.0
# A signal that stays the same is recorded so often.
_SIGNAL_RECORDED_S = 60.0
_DRAIN_S = 15.0
_RESTART_S = 5.0
# Rows that wait for a full disk are tried for so long at the end.
_LAST_S = 10.0
# Until whoever asked for the end has the answer.
_ANSWER_S = 0.05
# How long the first dial waits for the modems to tell their signal.
_KNOWN_S, _KNOWN_EVERY_S = 15.0, 0.05

Tell = Callable[[str], None]


def dialler_config(bundle: Bundle, known: dict[str, Traits]) -> str:
    """The dialler's configuration of a bundle, as JSON."""
    limits = asdict(bundle.limits)
    limits["dial_s"] = max(traits.dial_limit_s for traits in known.values())
    limits["link_s"] = max(traits.link_limit_s for traits in known.values())
    lines = [
        {
            "name": line.name,
            "role": line.role,
            "rank": line.rank,
            "least_signal": known[line.name].least_signal,
            "budget": asdict(bundle.budget_of(line)),
        }
        for line in bundle.lines
    ]
    whole = {"use": bundle.use, "primary": bundle.primary, "budget": asdict(bundle.bundle_budget)}
    return json.dumps({**whole, "limits": limits, "lines": lines})


class Operator:
    """The operator of one bundle.

    Parameters
    ----------
    bundle, secrets
        What it operates.
    journal
        Open to write: its lock keeps a second operator away.
    back_end
        Carries PPP.
    folder
        That of ``bundle.toml``, for profiles that are files.
    tell
        Gets what happens, in words.
    """

    def __init__(
        self, bundle: Bundle, secrets: Secrets, journal: Journal, back_end: BackEnd, *, folder: Path, tell: Tell
    ) -> None:
        self._bundle, self._secrets, self._back_end, self._tell = bundle, secrets, back_end, tell
        self._recorder = Recorder(journal, self._journal_failed)
        self._costs = KeptCosts(self._recorder, journal.path)
        self._pins = JournalPins(self._recorder, is_journal_damaged=journal.loss is not None)
        self._traits = traits_of(bundle, folder)
        self._dialler = self._dialler_with_history(dialler_config(bundle, self._traits))
        self._lines: dict[str, Line] = {}
        for line in bundle.lines:
            pin = secrets.pins.get(line.name)
            password = secrets.apn_passwords.get(line.name, "")
            parts = Parts(bundle, folder, back_end, self._reported, self._pins, pin, password)
            self._lines[line.name] = KINDS[line.kind].make(line, parts)
        self._hooks = Hooks(bundle.hook)
        self._alerting = Alerting(
            bundle,
            journal.raised_alerts(),
            secrets=secrets,
            pins=self._pins,
            folder=folder,
            recorder=self._recorder,
            hooks=self._hooks,
            tell=self._tell,
        )
        # Lines whose signal decides whether they are dialled, and is not known yet.
        self._unknown = {
            line.name for line in bundle.lines if line.role == "dial" and self._traits[line.name].most_signal is not None
        }
        self._injector: Injector | None = None
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._began = time.monotonic()
        self._is_stopping = False
        self._ended = asyncio.Event()

    def _dialler_with_history(self, config: str) -> _core.BundleDialler:
        """The dialler, which knows how calls went and what they cost, if the journal has that whole."""
        seed, refused = time.time_ns() % 2**63, ""
        for history in self._costs.histories():
            try:
                with core_errors():
                    return _core.BundleDialler(config, history, seed)
            except FarlinkError as error:
                # A damaged page of the journal must not keep a station from being reached.
                refused = error.message
        if refused:
            self._tell(f"warning: what calls have cost and how they went is forgotten: {refused}")
        return _core.BundleDialler(config, None, seed)

    async def run(self) -> None:
        """Operate until `stop`."""
        for name in self._secrets.pins:
            self._pins.may_try(name)  # what a damaged journal has forgotten is noted, before anything else is
        server = Server(socket_of(self._bundle.journal), self._asked)
        await server.start()
        running = [asyncio.create_task(self._guarded(line)) for line in self._lines.values()]
        try:
            await self._known()
            self._tell_time()
            for name in self._lines:
                if why := self._recorder.kept(_held(name)):
                    self._handle("hold", name, cause=why)
            if not self._is_stopping:
                self._handle("start")
            notify(f"READY=1\nSTATUS={self._bundle.name}: {len(self._lines)} lines")
            await self._turn()
            notify("STOPPING=1")
            self._handle("stop")
            await self._drained()
        finally:
            for task in (*running, *self._tasks):
                task.cancel()
            await asyncio.gather(*running, *self._tasks, return_exceptions=True)
            await self._back_end.tear_down()
            await self._alerting.close()
            self._recorder.finish()
            self._keep_history()
            self._recorder.retry(_LAST_S)
            self._costs.close()
            await self._hooks.close()
            self._ended.set()
            await asyncio.sleep(_ANSWER_S)
            await server.close()

    def stop(self) -> None:
        """Hang all lines up, and end."""
        self._is_stopping = True
        self._wake.set()

    async def _turn(self) -> None:
        """Do what is due, again and again. The watchdog is fed here, where lines are moved."""
        keep_at = look_at = fed_at = self._began
        was_lost = False
        forget_at = self._began + _LOOK_S
        feed_s = watchdog_s()
        while not self._is_stopping:
            times = [keep_at, look_at, forget_at, self._dialler.next_wakeup()]
            times += [fed_at] if feed_s is not None else []
            times += [self._injector.next_at] if self._injector is not None else []
            due = min(at for at in times if at is not None)
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, due - time.monotonic())):
                    await self._wake.wait()
            self._wake.clear()
            now = time.monotonic()
            self._carry_out(self._dialler.advance(now))
            for line in self._injector.due(now) if self._injector is not None else []:
                self._handle("inject", line)
            if feed_s is not None and now >= fed_at:
                notify("WATCHDOG=1")
                fed_at = now + feed_s
            if now >= keep_at:
                self._keep_history()
                keep_at = now + _KEEP_S
            if now >= look_at:
                self._tell_time()  # which charges the calls that last
                self._costs.sign(self._dialler.history())
                self._recorder.retry()
                # Twice: links that end together with their bundle say so a moment later.
                is_lost = self._back_end.is_bundle_lost()
                if is_lost and was_lost:
                    self._tell("the bundle's interface is gone while its links are up: all of them are dialled anew")
                    self._handle("bundle-lost", cause="the bundle's interface is gone")
                was_lost, look_at = is_lost, now + _LOOK_S
                self._alerting.look(self.status())
            if now >= forget_at:
                self._recorder.forget(self._bundle.keep_days)
                forget_at = now + _FORGET_S

    async def _known(self) -> None:
        """Wait until the signal of each modem is known, or that it tells none: set-up is paid for, below a least signal too."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_KNOWN_S):
                while not self._is_stopping and self._unknown:
                    await asyncio.sleep(_KNOWN_EVERY_S)

    async def _guarded(self, line: Line) -> None:
        """Move a line; a fault in it ends neither the operator nor the line for good."""
        while True:
            try:
                await line.run()
            except Exception as error:
                # A fault of this program: it is told and recorded, and the other lines go on.
                self._tell(f"{line.name}: internal error: {error!r}")
                self._reported(Report(line.name, "modem-failed", cause=f"internal error: {error!r}"))
            await asyncio.sleep(_RESTART_S)

    async def _drained(self) -> None:
        until = time.monotonic() + _DRAIN_S
        while time.monotonic() < until and not all(line.is_idle for line in self._lines.values()):
            await asyncio.sleep(0.02)

    # Reports of lines, and orders of the dialler.

    def _reported(self, report: Report) -> None:
        traits = self._traits[report.line]
        self._unknown.discard(report.line)
        self._recorder.observe(report, traits.most_signal)
        if report.event == "note":
            self._recorder.note(report.line, "alive", report.cause, caller=report.number)
            return
        details: dict[str, Any] = {"call": report.call, "cause": report.cause, "number": report.number}
        if report.event == "signal":
            details["level"] = report.level
            self._recorder.signal(report.line, _SIGNAL_RECORDED_S)
            if report.took_s > traits.late_signal_s:
                self._recorder.note(report.line, "handover", f"the signal was told after {report.took_s:.1f} s")
        self._handle(report.event, report.line, **details)

    def _handle(self, event: str, line: str | None = None, **details: Any) -> None:
        self._carry_out(self._dialler.handle(time.monotonic(), event, line, **details))
        self._wake.set()

    def _carry_out(self, actions: list[dict[str, Any]]) -> None:
        """Record changes of state, then carry out orders: what is ordered follows from what is on the disk already."""
        for action in actions:
            match action["action"]:
                case "state":
                    self._changed(action)
                case "dial":
                    self._lines[action["line"]].dial(action["call"])
                case "answer":
                    self._lines[action["line"]].answer(action["call"])
                case "start-link":
                    self._lines[action["line"]].start_link(action["call"])
                case "hang-up":
                    self._lines[action["line"]].hang_up(ends_bundle=self._is_stopping)
                case "tear-down":
                    self._torn_down()
                case "primary":
                    self._recorder.primary(action["line"])
                case "alert":
                    self._alert(action)

    def _changed(self, action: dict[str, Any]) -> None:
        name, state = action["line"], action["state"]
        self._recorder.begin(self._order(), is_try=state in ("connecting", "connected", "waiting") and not self._is_stopping)
        self._recorder.state(action)
        words = words_of(action)
        self._tell(f"{name}: {state} ({words})")
        self._hooks.tell({"bundle": self._bundle.name, "event": "state", "line": name, "state": state, "cause": words})
        if self._injector is not None:
            if state == "connected":
                self._injector.up(name, time.monotonic())
            else:
                self._injector.down(name)
        if state in ("dropped", "blocked"):
            self._keep_history()

    def _alert(self, action: dict[str, Any]) -> None:
        alert, line, cause = action["alert"], action["line"], action["cause"]
        where = f"{line}: " if line else ""
        self._tell(f"alert: {where}{alert}{f' ({cause})' if cause else ''}")
        self._hooks.tell({"bundle": self._bundle.name, "event": "alert", "line": line, "alert": alert, "cause": cause})
        if alert == "bundle-down":
            self._recorder.finish()

    def _torn_down(self) -> None:
        """The bundle ends: the lines' own links first, then whatever is left of it. A dial has nothing of it, and goes on."""
        for one in self._dialler.status(time.monotonic()):
            if one["state"] != "connecting":
                self._lines[one["line"]].hang_up(ends_bundle=True)
        task = asyncio.create_task(self._back_end.tear_down())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _order(self) -> list[str]:
        """All lines, the one with the longest expected call first."""
        status = self._dialler.status(time.monotonic())
        return [one["line"] for one in sorted(status, key=lambda one: (not one["is_primary"], -(one["expected_up_s"] or 0.0)))]

    def _tell_time(self) -> None:
        time.tzset()  # a ship sets its clock on the way, and a process keeps the zone that it began with
        offset = datetime.now().astimezone().utcoffset()
        self._handle("wall-clock", unix_s=time.time(), zone_s=offset.total_seconds() if offset is not None else 0.0)

    def _keep_history(self) -> None:
        self._costs.keep(self._dialler.history())

    def _journal_failed(self, refusal: str) -> None:
        if refusal:
            self._alert({"alert": "journal", "line": None, "cause": refusal})
        else:
            self._tell("the journal can be written again")

    # Commands.

    async def _asked(self, request: dict[str, Any]) -> dict[str, Any]:
        match request.get("do"):
            case "status":
                return self.status()
            case "hold" | "release" | "redial" as what:
                return self._by_hand(what, request)
            case "inject":
                return self._inject(request)
            case "down":
                self.stop()
                await self._ended.wait()
                return {}
        raise OperatorError(f"there is no command {str(request.get('do'))[:40]!r}", "use the farlink of the operator")

    def _named(self, request: dict[str, Any]) -> list[str]:
        names = request.get("lines") or list(self._lines)
        if not isinstance(names, list):
            raise OperatorError(f"lines {str(names)[:40]!r}", "give a list of their names")
        for name in map(str, names):
            if name not in self._lines:
                raise OperatorError(f"bundle {self._bundle.name} has no line {name[:40]!r}", instead(name, self._lines))
        return list(dict.fromkeys(map(str, names)))

    def _by_hand(self, what: str, request: dict[str, Any]) -> dict[str, Any]:
        names, left, not_kept = self._named(request), {}, list[str]()
        if request.get("try_pin"):
            by_hand.check_pins(self._bundle, self._secrets, request.get("lines"))
        for name in names:
            if why := by_hand.in_vain(what, self._line_status(name)):
                left[name] = why
                continue
            if request.get("try_pin") and not self._pins.allow(name):
                raise OperatorError("that the PIN may be tried cannot be noted in the journal", "free some space")
            cause = str(request.get("cause", ""))[:200]
            self._handle(what, name, cause=cause)
            if what in ("hold", "release") and not self._recorder.keep(
                _held(name), (cause or "by hand") if what == "hold" else "", later=True
            ):
                not_kept.append(name)
            if what == "redial":
                self._lines[name].try_again()
        done = by_hand.answer(what, names, left)
        waits = by_hand.still_waits(what, map(self._line_status, done["lines"]))
        return {**done, "waits": waits, "warning": by_hand.is_not_kept(what, not_kept, self._recorder.refusal)}

    def _line_status(self, name: str) -> dict[str, Any]:
        return next(one for one in self._dialler.status(time.monotonic()) if one["line"] == name)

    def _inject(self, request: dict[str, Any]) -> dict[str, Any]:
        names = self._named(request)
        if request.get("now"):
            left = {name: why for name in names if (why := by_hand.in_vain("inject", self._line_status(name)))}
            for name in names:
                self._handle("inject", name)
            return by_hand.answer("inject", names, left)
        if request.get("off"):
            self._injector = None
            return {"lines": []}
        seed = request.get("seed")
        if seed is not None and not isinstance(seed, int):
            raise ArgumentError(f"seed {seed!r}", "give a whole number")
        self._injector = Injector(rate_hz(str(request.get("rate", ""))), names, time.time_ns() if seed is None else seed)
        now = time.monotonic()
        for one in self._dialler.status(now):
            if one["state"] == "connected":
                self._injector.up(one["line"], now)
        self._wake.set()
        return {"lines": names}

    def status(self) -> dict[str, Any]:
        """State for `farlink bundle status`."""
        now = time.monotonic()
        lines = []
        for one in self._dialler.status(now):
            row = {**one, **self._lines[one["line"]].observed()}
            row["is_up"] = row["state"] == "connected"
            since_s = row.pop("since_s")
            row["for_s"] = 0.0 if since_s is None else round(now - since_s, 3)
            until_s = row.pop("until_s")
            row["ends_in_s"] = None if until_s is None else round(max(0.0, until_s - now), 3)
            lines.append(row)
        injector = self._injector
        return {
            "bundle": self._bundle.name,
            "back_end": self._back_end.name,
            "running_s": round(now - self._began, 3),
            "primary": self._dialler.primary(),
            "up": sum(one["is_up"] for one in lines),
            "use": self._bundle.use,
            "connection": self._recorder.connection,
            "costs": self._dialler.costs(now),
            "bundle_budget": asdict(self._bundle.bundle_budget),
            "injected_per_s": None if injector is None else injector.rate,
            "injected_lines": [] if injector is None else injector.lines,
            "journal": {
                "path": str(self._bundle.journal),
                "failure": self._recorder.refusal,
                "waiting": self._recorder.waiting,
                "left_out": self._recorder.left_out,
            },
            "alerts": self._alerting.status(),
            "delivery": self._alerting.delivery(),
            "hooks": {"failures": self._hooks.failures, "left_out": self._hooks.left_out},
            "lines": lines,
        }


def _held(line: str) -> str:
    """The fact that a line is held: why, or nothing."""
    return f"held of {line}"


def operate(bundle: Bundle, secrets: Secrets, *, folder: Path, tell: Tell, back_end: BackEnd | None = None) -> None:
    """Operate a bundle until SIGTERM, SIGINT, SIGHUP or `farlink bundle down`.

    Parameters
    ----------
    bundle, secrets
        What is operated.
    folder
        That of ``bundle.toml``.
    tell
        Gets what happens, in words.
    back_end
        Carries PPP; by default that of the bundle.

    Raises
    ------
    OperatorError
        If this machine lacks what the back end needs.
    JournalError
        If another operator has the bundle.
    """
    carrying = back_end_of(bundle, secrets, profiles_folder=folder) if back_end is None else back_end
    missing = carrying.missing()
    if missing is not None:
        raise OperatorError(missing, 'or try the bundle without PPP: back_end = "stand-in"')
    with Journal(bundle.journal, secrets=secrets.texts()) as journal:
        if journal.loss is not None:
            tell(f"warning: {journal.loss}")
        for left in carrying.prepare():
            tell(f"ended what a killed operator left behind: {left}")
        asyncio.run(_until_signal(bundle, secrets, journal, carrying, folder, tell))


async def _until_signal(
    bundle: Bundle, secrets: Secrets, journal: Journal, back_end: BackEnd, folder: Path, tell: Tell
) -> None:
    operator = Operator(bundle, secrets, journal, back_end, folder=folder, tell=tell)
    loop = asyncio.get_running_loop()
    loop.set_default_executor(OneThreadEach())
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as `nohup` has it
        numbers.append(signal.SIGHUP)
    for number in numbers:
        with suppress(RuntimeError, ValueError):  # not in the main thread
            loop.add_signal_handler(number, operator.stop)
    await operator.run()
