"""A line over ModemManager: what it asks, what it reports, and what it survives."""

from __future__ import annotations

import asyncio

import pytest

from farlink.operator.lines.modem_manager import line as line_module
from farlink.operator.lines.modem_manager import watch
from farlink.operator.lines.modem_manager.bearer import BEARER as BEARER_INTERFACE
from farlink.operator.lines.modem_manager.bus import ROOT
from tests.operator.modem_manager.world import World, needs_mock, play

pytestmark = needs_mock

BEARER = f"{ROOT}/Bearer/0"
LOCKED = {"State": ["i", 2], "UnlockRequired": ["u", 2], "UnlockRetries": ["a{uu}", {"2": 3, "4": 10}]}
CORE, EQUIPMENT = "Core", "MobileEquipment"


# A call from its beginning to its end.


def test_a_line_connects_reports_its_network_and_ends(service):
    async def act(world: World):
        await world.reported("signal")
        await world.until(lambda: world.line.observed()["cell"])
        await world.connect()
        world.seen = world.line.observed()
        world.line.hang_up()
        await world.until(lambda: world.line.is_idle)
        world.asked = await world.control.asked()

    world = play(service, act, apn="internet", ip_type="ipv4v6", user="me", password="secret")

    assert world.events() == ["carrier", "link-up"]
    assert next(one.level for one in world.reports if one.event == "signal") == 70
    (wanted,) = [value for method, _, value in world.asked if method == "Connect"]
    assert wanted == {"apn": "internet", "ip-type": "4", "allow-roaming": "1", "user": "me", "password": "secret"}
    assert [value for method, _, value in world.asked if method == "Disconnect"] == [BEARER]
    assert ["Setup", "0", 5] in world.asked
    assert any("registered, home: TheOperator, 00101, LTE" in cause for cause in world.causes("note"))
    expected = {
        "operator": "TheOperator",
        "technology": "LTE",
        "registration": "registered, home",
        "rsrp_dbm": -91.0,
        "cell": "FFFE/00A1B2C3/1A2B",
        "interface": "wwan0",
        "ipv4": "10.64.0.2/30",
        "ipv4_method": "static",
        "ipv4_gateway": "10.64.0.1",
        "dns": ["10.64.0.1"],
        "modem": "connected",
        "details": "modem connected; registered, home: TheOperator, 00101, LTE, cell FFFE/00A1B2C3/1A2B; RSRP -91 dBm, "
        "SNR 12 dB; wwan0, 10.64.0.2/30 (static), gateway 10.64.0.1, DNS 10.64.0.1",
    }
    assert {key: world.seen[key] for key in expected} == expected


@pytest.mark.parametrize("name", ["357000000005678", "/sys/devices/usb1/1-1", "8901000000000000001", "dev-1"])
def test_a_modem_is_found_by_each_name_that_stays(service, name):
    async def act(world: World):
        await world.reported("signal")

    play(service, act, modem=name)


@pytest.mark.usefixtures("quick")
def test_bytes_of_the_bearer_are_reported(service):
    async def act(world: World):
        await world.connect()
        await world.control.change(BEARER, Bearer={"Stats": ["a{sv}", {"rx-bytes": ["t", 5_000], "tx-bytes": ["t", 7_000]}]})
        await world.until(lambda: world.reports[-1].bytes_in == 5_000)
        await world.control.drop()
        await world.reported("dropped")

    world = play(service, act)

    (dropped,) = [one for one in world.reports if one.event == "dropped"]
    assert (dropped.bytes_in, dropped.bytes_out) == (5_000, 7_000)


@pytest.mark.usefixtures("quick")
def test_the_signal_follows_the_modem(service):
    async def act(world: World):
        await world.reported("signal")
        await world.control.change(f"{ROOT}/Modems/0", Modem={"SignalQuality": ["(ub)", [12, True]]})
        await world.until(lambda: [one.level for one in world.reports if one.event == "signal"][-1] == 12)

    play(service, act)


@pytest.mark.parametrize(
    "cause",
    [
        f"{CORE}.Unauthorized: not authorized",
        f"{CORE}.Retry: operation cannot be performed now",
        f"{EQUIPMENT}.NoNetwork: No network service",
        f"{EQUIPMENT}.NotAllowed: Operation not allowed",
        f"{EQUIPMENT}.GprsServiceOptionNotSubscribed: Requested service option not subscribed",
        "ConnectionError.NoCarrier: No carrier",
    ],
)
def test_a_refused_connect_fails_in_modem_managers_own_words(service, cause):
    async def act(world: World):
        await world.control.behave(connect=cause)
        world.line.dial(7)
        await world.reported("dial-failed")
        await world.until(lambda: world.line.is_idle)
        await world.control.behave(connect="ok")
        await world.connect(8)

    world = play(service, act)

    failed = next(one for one in world.reports if one.event == "dial-failed")
    name, _, text = cause.partition(": ")
    assert (failed.call, failed.cause) == (7, f"{text} ({name})")


@pytest.mark.parametrize("answer", ["nonsense", "no-bearer"])
def test_an_answer_without_a_bearer_fails(service, answer):
    async def act(world: World):
        await world.control.behave(connect=answer)
        world.line.dial(1)
        await world.reported("dial-failed")
        await world.until(lambda: world.line.is_idle)

    world = play(service, act)

    assert "bearer" in world.causes("dial-failed")[0]


# Drops.


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (("", ""), "the network has ended the connection"),
        (("org.freedesktop.ModemManager1.Error.Core.Failed", "PDN"), "PDN (Core.Failed)"),
    ],
)
def test_a_drop_is_seen_at_the_bearer_at_once(service, error, cause):
    async def act(world: World):
        await world.connect()
        begin = asyncio.get_running_loop().time()
        await world.control.drop(error)
        await world.reported("dropped")
        world.took_s = asyncio.get_running_loop().time() - begin
        await world.until(lambda: world.line.is_idle)
        await world.connect(2)

    world = play(service, act)

    assert world.causes("dropped") == [cause]
    assert world.took_s < 3
    assert world.events() == ["carrier", "link-up", "dropped", "carrier", "link-up"]


@pytest.mark.usefixtures("quick")
def test_a_drop_is_seen_at_the_modem_where_the_bearer_does_not_tell(service):
    async def act(world: World):
        await world.connect()
        await world.control.change(f"{ROOT}/Modems/0", Modem={"State": ["i", 7]})
        await world.reported("dropped")

    assert play(service, act).causes("dropped") == ["the modem is searching"]


def test_a_network_that_asks_for_the_end_gets_it(service):
    async def act(world: World):
        await world.control.behave(bearer={"DisconnectRequest": ["b", False]})
        await world.connect()
        await world.control.change(BEARER, Bearer={"DisconnectRequest": ["b", True]})
        await world.reported("dropped")
        await world.until(lambda: world.line.is_idle)
        world.asked = await world.control.asked("Disconnect")

    world = play(service, act)

    assert world.causes("dropped") == ["the network asks for the end of the connection"]
    assert world.asked == [BEARER]


def test_a_bearer_that_wants_ppp_is_none_for_this_kind(service):
    async def act(world: World):
        await world.control.behave(bearer={"Ip4Config": ["a{sv}", {"method": ["u", 1]}]})
        world.line.dial(1)
        await world.reported("carrier")
        world.line.start_link(1)
        await world.reported("dial-failed")

    assert "kind at" in play(service, act).causes("dial-failed")[0]


def test_nobody_else_can_say_that_a_connection_has_dropped(service):
    async def act(world: World):
        await world.connect()
        heard: list[str] = []
        bus = world.line._watch.bus
        bus._bus.add_message_handler(lambda message: heard.append(str(message.member)) and None)
        await world.control.spoof(bus._bus.unique_name, BEARER, BEARER_INTERFACE, Connected=("b", False))
        await world.until(lambda: "PropertiesChanged" in heard)
        assert world.line.observed()["interface"] == "wwan0"

    assert "dropped" not in play(service, act).events()


# PINs.


def test_a_pin_is_tried_and_accepted(service):
    async def act(world: World):
        await world.connect()
        world.asked = await world.control.asked("SendPin")

    world = play(service, act, pin="1234", plug={"properties": {"Modem": LOCKED}})

    assert world.asked == ["1234"]
    assert world.pins.noted == ["tried", "accepted"]


@pytest.mark.usefixtures("quick")
def test_a_refused_pin_is_never_tried_again(service, monkeypatch):
    monkeypatch.setattr(line_module, "_RETRY_S", 0.05)

    async def act(world: World):
        await world.reported("modem-failed")
        path = f"{ROOT}/Modems/0"
        for _ in range(5):
            world.line.try_again()
            world.line.dial(1)
            await world.until(lambda: world.line.is_idle)
            await world.control.change(path, Modem={"SignalQuality": ["(ub)", [1, True]]})
        await world.control.unplug(path)
        await world.reported("port-gone")
        await world.control.plug(properties={"Modem": LOCKED})
        await world.reported("port-back")
        world.asked = await world.control.asked("SendPin")

    world = play(service, act, pin="9999", plug={"properties": {"Modem": LOCKED}})

    assert world.asked == ["9999"]
    assert world.pins.noted == ["tried", "refused"]
    first, *others = world.causes("modem-failed")
    assert (
        first == "the SIM has refused its PIN, which is not tried again: incorrect password (MobileEquipment.IncorrectPassword)"
    )
    assert all("--try-pin" in cause for cause in others)
    assert not any("9999" in one.cause for one in world.reports)


def test_a_person_who_unlocks_the_sim_brings_the_line_up(service):
    async def act(world: World):
        await world.reported("modem-failed")
        await world.control.change(f"{ROOT}/Modems/0", Modem={"State": ["i", 8], "UnlockRequired": ["u", 1]})
        await world.reported("signal")
        await world.connect()

    assert "none in the secrets" in play(service, act, plug={"properties": {"Modem": LOCKED}}).causes("modem-failed")[0]


@pytest.mark.parametrize(
    ("lock", "tries", "cause"),
    [
        (2, {"2": 1}, "one try of the PIN is left"),
        (2, {"2": 0}, "no try of the PIN"),
        (4, {"4": 9}, "SIM-PUK"),
        (0, {}, "does not say how"),
    ],
)
def test_a_pin_is_not_spent_where_it_may_lock_the_sim(service, lock, tries, cause):
    locked = {**LOCKED, "UnlockRequired": ["u", lock], "UnlockRetries": ["a{uu}", tries]}

    async def act(world: World):
        await world.reported("modem-failed")
        world.asked = await world.control.asked("SendPin")

    world = play(service, act, pin="1234", plug={"properties": {"Modem": locked}})

    assert cause in world.causes("modem-failed")[0]
    assert (world.asked, world.pins.noted) == ([], [])


def test_a_pin_is_not_tried_where_that_cannot_be_noted(service):
    async def act(world: World):
        await world.reported("modem-failed")
        world.asked = await world.control.asked("SendPin")

    async def fill(world: World):
        world.pins.is_full = True

    world = play(service, act, pin="1234", plug={"properties": {"Modem": LOCKED}}, prepare=fill)

    assert "cannot be noted" in world.causes("modem-failed")[0]
    assert world.asked == []


@pytest.mark.parametrize(("error", "noted"), [(f"{CORE}.Unauthorized", "allowed"), (f"{EQUIPMENT}.SimBusy", "refused")])
def test_a_pin_counts_as_tried_unless_the_sim_was_not_asked(service, error, noted):
    async def act(world: World):
        await world.reported("modem-failed")

    async def behave(world: World):
        await world.control.behave(pin_error=error)

    world = play(service, act, pin="9999", plug={"properties": {"Modem": LOCKED}}, prepare=behave)

    assert world.pins.noted == ["tried", noted]


def test_a_modem_that_cannot_be_enabled_says_so_and_is_tried_again(service, monkeypatch):
    monkeypatch.setattr(line_module, "_RETRY_S", 0.1)

    async def act(world: World):
        await world.reported("modem-failed")
        await world.asked_until("Enable", 3)
        await world.control.behave(enable="ok")
        await world.reported("signal")

    async def behave(world: World):
        await world.control.behave(enable=f"{CORE}.WrongState: modem in low power")

    world = play(service, act, prepare=behave)

    assert world.causes("modem-failed") == ["the modem cannot be enabled: modem in low power (Core.WrongState)"]


def test_a_modem_without_a_sim_says_so(service):
    async def act(world: World):
        await world.reported("modem-failed")

    failed = {"State": ["i", -1], "StateFailedReason": ["u", 2]}
    assert play(service, act, plug={"properties": {"Modem": failed}}).causes("modem-failed") == [
        "the modem has failed: its SIM is missing"
    ]


# What comes and goes.


@pytest.mark.usefixtures("quick")
def test_a_modem_is_pulled_out_in_a_call_and_back_under_another_index(service):
    async def act(world: World):
        await world.connect()
        await world.control.unplug(f"{ROOT}/Modems/0")
        await world.reported("port-gone")
        path = await world.control.plug()
        assert path.endswith("/1")
        await world.reported("port-back")
        await world.connect(2)
        world.asked = await world.control.asked()

    world = play(service, act)

    assert world.events() == ["carrier", "link-up", "dropped", "port-gone", "port-back", "carrier", "link-up"]
    assert world.causes("dropped") == ["the modem is unplugged"]
    assert [name for method, name, _ in world.asked if method == "Connect"] == ["0", "1"]


@pytest.mark.usefixtures("quick")
def test_modem_manager_is_killed_in_a_call_and_back(service):
    async def act(world: World):
        await world.connect()
        service.end_mock()
        await world.reported("port-gone")
        service.start_mock()
        await world.control.reload()
        await world.control.plug()
        await world.reported("port-back")
        await world.connect(2)

    world = play(service, act)

    assert world.causes("dropped") == ["ModemManager has left the bus"]
    assert "ModemManager" in world.causes("port-gone")[0]


@pytest.mark.usefixtures("quick")
def test_the_bus_itself_is_killed_in_a_call_and_back(service):
    async def act(world: World):
        await world.connect()
        service.end_bus()
        await world.reported("port-gone")
        service.start_bus()
        service.start_mock()
        world.control = await type(world.control).open(service)
        await world.control.plug()
        await world.reported("port-back")
        await world.connect(2)

    world = play(service, act)

    assert world.causes("dropped") == ["the connection to the D-Bus system bus is lost"]


@pytest.mark.parametrize("address", ["unix:path=/nowhere/bus", "nonsense", "unix:path", "tcp:host=127.0.0.1,port=1", ""])
@pytest.mark.usefixtures("quick")
def test_a_bus_that_cannot_be_reached_is_waited_for(service, monkeypatch, address):
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", address or "unix:path=/dev/null")

    async def act(world: World):
        await world.reported("port-gone")
        monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", service.address)
        await world.reported("signal")
        await world.connect()

    world = play(service, act)

    assert world.causes("port-gone")[0].startswith("the D-Bus system bus cannot be reached: ")


@pytest.mark.usefixtures("quick")
def test_a_modem_that_is_not_there_is_named_with_those_that_are(service):
    async def act(world: World):
        await world.reported("port-gone")
        seen = world.line.observed()
        assert (seen["modem"], seen["modem_failure"]) == ("not there", "")
        assert seen["failure"] in seen["details"]
        await world.control.plug(properties={"Modem": {"DeviceIdentifier": ["s", "dev-2"]}})
        await world.reported("port-back")

    world = play(service, act, modem="dev-2")

    (cause,) = world.causes("port-gone")
    assert (
        cause == "ModemManager has no such modem; it has QUALCOMM EM7455 (dev-1, 357...5678, /sys/devices/usb1/1-1, 890...0001)"
    )


@pytest.mark.usefixtures("quick")
def test_two_modems_of_one_name_are_none(service):
    async def act(world: World):
        await world.reported("port-gone")

    async def twice(world: World):
        await world.control.plug()

    assert play(service, act, prepare=twice).causes("port-gone")[0].startswith("2 modems have this name")


@pytest.mark.usefixtures("quick")
def test_a_long_absence_does_not_fill_the_journal(service):
    async def act(world: World):
        await world.reported("port-gone")
        for _ in range(30):
            path = await world.control.plug(properties={"Modem": {"DeviceIdentifier": ["s", "other"]}})
            await world.control.unplug(path)

    world = play(service, act, is_alone=True)

    assert world.events() == ["port-gone"]
    assert len(world.causes("note")) <= 20


# Calls that are never answered.


def test_a_connect_that_is_never_answered_is_given_up_and_never_doubled(service, monkeypatch):
    monkeypatch.setattr(line_module, "_LAST_S", 0.2)

    async def act(world: World):
        await world.control.behave(connect="hang", disconnect="ignore")
        world.line.dial(1)
        await world.reported("dial-failed")
        world.line.dial(2)
        await world.reported("dial-failed", 2)
        world.before = await world.control.asked("Connect")
        # It is answered at last: nobody wants that connection any more.
        await world.until(lambda: world.line.is_idle)
        await world.control.answer_connect("ok")
        await world.asked_until("Disconnect", 2)
        await world.control.behave(connect="ok")
        await world.connect(3)
        world.asked = await world.control.asked()

    world = play(service, act, dial_limit_s=0.3)

    assert world.causes("dial-failed") == [
        "ModemManager has not answered Connect for 0.3 s",
        "ModemManager has not answered the last Connect yet",
    ]
    assert len(world.before) == 1
    assert "Two Connects" not in [one[0] for one in world.asked]
    assert [value for method, _, value in world.asked if method == "Disconnect"] == ["/", BEARER]


def test_a_connect_whose_answer_is_lost_does_not_end_the_line_for_good(service, monkeypatch):
    monkeypatch.setattr(line_module, "_LAST_S", 0.05)
    monkeypatch.setattr(line_module, "LOST_S", 0.5)

    async def act(world: World):
        await world.control.behave(connect="hang", disconnect="ignore")
        world.line.dial(1)
        await world.reported("dial-failed")
        await world.control.behave(connect="ok")
        for call in range(2, 1000):
            await world.until(lambda: world.line.is_idle)
            world.line.dial(call)
            failed = len(world.causes("dial-failed"))
            await world.until(lambda failed=failed: len(world.causes("dial-failed")) > failed or "carrier" in world.events())
            if "carrier" in world.events():
                break

    world = play(service, act, dial_limit_s=0.2)

    assert "ModemManager has not answered the last Connect yet" in world.causes("dial-failed")


def test_a_hang_up_ends_a_connect_that_waits(service):
    async def act(world: World):
        await world.control.behave(connect="hang")
        world.line.dial(1)
        await world.asked_until("Connect")
        world.line.hang_up()
        await world.until(lambda: world.line.is_idle)
        await world.control.behave(connect="ok")
        await world.connect(2)
        world.asked = await world.control.asked()

    world = play(service, act)

    assert world.events() == ["carrier", "link-up"]
    assert "Two Connects" not in [one[0] for one in world.asked]


@pytest.mark.usefixtures("quick")
def test_a_modem_manager_that_hangs_does_not_end_a_call(service, monkeypatch):
    monkeypatch.setattr(watch, "READ_S", 0.1)
    monkeypatch.setattr(line_module, "_LAST_S", 0.1)
    monkeypatch.setattr(line_module, "DISCONNECT_S", 0.2)

    async def act(world: World):
        await world.connect()
        service.pause_mock(is_paused=True)
        ticks = len(world.reports)
        await world.until(lambda: len(world.reports) > ticks + 5)
        assert world.events() == ["carrier", "link-up"]
        world.line.hang_up()
        await world.until(lambda: world.line.is_idle)
        service.pause_mock(is_paused=False)

    world = play(service, act)

    assert any("was not answered for" in cause for cause in world.causes("note"))


def test_a_line_that_is_cancelled_leaves_no_connection(service):
    async def act(world: World):
        await world.connect()
        await world.stop()
        world.asked = await world.control.asked("Disconnect")

    assert play(service, act).asked == ["/"]


def test_a_line_that_is_cancelled_while_it_connects_leaves_no_connection(service):
    async def act(world: World):
        await world.control.behave(connect="hang")
        world.line.dial(1)
        await world.asked_until("Connect")
        await world.stop()
        world.asked = await world.control.asked("Disconnect")

    assert play(service, act).asked == ["/"]


def test_a_connection_that_a_killed_operator_left_is_ended(service):
    async def act(world: World):
        await world.reported("signal")
        world.asked = await world.control.asked("Disconnect")

    world = play(service, act, plug={"properties": {"Modem": {"State": ["i", 11]}}})

    assert world.asked == ["/"]
    assert "left behind" in world.causes("note")[0]


# Nonsense.

NONSENSE = {
    "SignalQuality": ["s", "loud"],
    "UnlockRetries": ["s", "many"],
    "UnlockRequired": ["s", "no"],
    "AccessTechnologies": ["i", -1],
    "Manufacturer": ["u", 7],
    "Sim": ["u", 3],
}


def test_properties_of_wrong_types_count_as_missing(service):
    networks = {"OperatorName": ["u", 3], "RegistrationState": ["s", "home"], "Imei": ["b", True]}
    signals = {"Lte": ["s", "far"]}

    async def act(world: World):
        await world.control.behave(
            bearer={
                "Interface": ["u", 3],
                "Ip4Config": ["s", "10.0.0.1"],
                "Ip6Config": ["a{sv}", {"method": ["s", "?"], "address": ["u", 1], "mtu": ["s", "big"]}],
                "Stats": ["s", "none"],
                "ConnectionError": ["u", 3],
            }
        )
        await world.connect()
        await world.control.emit("org.freedesktop.DBus.ObjectManager", "InterfacesAdded")
        await world.control.emit("org.freedesktop.DBus.Properties", "PropertiesChanged")
        await world.control.emit("org.freedesktop.ModemManager1.Modem", "StateChanged")
        await world.control.drop()
        await world.reported("dropped")

    plug = {"properties": {"Modem": NONSENSE, "Modem.Modem3gpp": networks, "Modem.Signal": signals}}
    world = play(service, act, plug=plug)

    assert world.causes("dropped") == ["the network has ended the connection"]
    assert next(one.level for one in world.reports if one.event == "signal") is None


def test_a_modem_of_few_words_is_used_all_the_same(service):
    lacks = ["SignalQuality", "UnlockRequired", "UnlockRetries", "AccessTechnologies", "Manufacturer", "Model", "Sim"]

    async def act(world: World):
        await world.control.behave(bearer=dict.fromkeys(("Interface", "Ip4Config", "Ip6Config", "Stats", "ConnectionError")))
        await world.connect()

    play(service, act, plug={"without": ["Modem.Modem3gpp", "Modem.Signal", "Modem.Location"], "lacks": lacks})


def test_a_modem_whose_state_is_nonsense_is_not_dialled_for_ever(service):
    async def act(world: World):
        world.line.dial(1)
        await world.reported("dial-failed")

    world = play(service, act, plug={"properties": {"Modem": {"State": ["s", "fine"]}}}, dial_limit_s=0.2)

    assert world.causes("dial-failed") == ["the modem is unknown for 0.2 s"]


def test_a_bearer_that_does_not_say_that_it_is_connected_is_no_link(service, monkeypatch):
    monkeypatch.setattr(line_module, "LINK_S", 0.2)

    async def act(world: World):
        await world.control.behave(bearer={"Connected": ["s", "yes"]})
        world.line.dial(1)
        await world.reported("carrier")
        world.line.start_link(1)
        await world.reported("dial-failed")

    world = play(service, act)

    assert "link-up" not in world.events()
    assert "not connected" in world.causes("dial-failed")[0]


def test_nobody_calls_a_line_of_this_kind(service):
    async def act(world: World):
        world.line.answer(4)

    assert play(service, act).causes("dial-failed") == ["a line of kind modemmanager takes no calls"]
