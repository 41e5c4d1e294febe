"""What python-dbusmock's template `modemmanager` lacks: modems that come and go, and the interfaces that connect them.

It is loaded into the mock's process beside that template. Tests steer it over the interface ``farlink.Test``, in JSON.
"""

from __future__ import annotations

# ruff: noqa: N802 (names of D-Bus methods)
import json

import dbus
from dbusmock import mockobject
from dbusmock.templates import modemmanager as stock

BUS_NAME, MAIN_OBJ, MAIN_IFACE, SYSTEM_BUS = stock.BUS_NAME, stock.MAIN_OBJ, stock.MAIN_IFACE, True
IS_OBJECT_MANAGER = False

TEST = "farlink.Test"
MODEM, SIM = stock.MODEM_IFACE, stock.SIM_IFACE
SIMPLE, SIGNAL, LOCATION = f"{MODEM}.Simple", f"{MODEM}.Signal", f"{MODEM}.Location"
BEARER = "org.freedesktop.ModemManager1.Bearer"
ERROR = "org.freedesktop.ModemManager1.Error"

LOCKED, DISABLED, REGISTERED, CONNECTED = 2, 3, 8, 11

# What modems do, and what they were asked.
behaviour: dict = {}
asked: list = []
counts = {"modem": 0, "bearer": 0}
# Calls of `Connect` that are not answered yet: modem, what answers, what refuses.
pending: list = []


def load(mock, parameters):  # noqa: ARG001
    """The template of python-dbusmock is loaded before."""
    behaviour.update({"connect": "ok", "pin": "1234", "enable": "ok", "tries": 3, "bearer": {}})


def typed(value):
    """A JSON value as D-Bus has it: a list [signature, value] says its type."""
    signature, plain = value
    if signature == "(ub)":
        return dbus.Struct((dbus.UInt32(plain[0]), dbus.Boolean(plain[1])), signature="ub")
    if signature == "(ss)":
        return dbus.Struct(tuple(plain), signature="ss")
    if signature == "a{uu}":
        return dbus.Dictionary({dbus.UInt32(int(key)): dbus.UInt32(one) for key, one in plain.items()}, signature="uu")
    if signature == "a{sv}":
        return dbus.Dictionary({key: typed(one) for key, one in plain.items()}, signature="sv")
    kinds = {"u": dbus.UInt32, "i": dbus.Int32, "t": dbus.UInt64, "s": dbus.String, "b": dbus.Boolean, "d": dbus.Double}
    return {**kinds, "o": dbus.ObjectPath}[signature](plain)


def table(values):
    """Name -> typed value."""
    return {name: typed(value) for name, value in values.items()}


def objects_of(path):
    """The modem of a path; None if it is unplugged."""
    return mockobject.objects.get(path)


def set_state(path, state):
    """Another state of a modem."""
    modem = objects_of(path)
    if modem is not None:
        modem.UpdateProperties(MODEM, {"State": dbus.Int32(state)})


@dbus.service.method(TEST, in_signature="s", out_signature="s")
def Plug(self, wanted):
    """Plug a modem in; the properties of each of its interfaces go before those of a modem that is registered."""
    given = json.loads(wanted)
    path = f"{MAIN_OBJ}/Modems/{counts['modem']}"
    sim = f"{MAIN_OBJ}/SIM/{counts['modem']}"
    counts["modem"] += 1
    own = {
        "Manufacturer": ["s", "QUALCOMM"],
        "Model": ["s", "EM7455"],
        "DeviceIdentifier": ["s", "dev-1"],
        "EquipmentIdentifier": ["s", "357000000005678"],
        "Device": ["s", "/sys/devices/usb1/1-1"],
        "State": ["i", DISABLED],
        "StateFailedReason": ["u", 0],
        "UnlockRequired": ["u", 1],
        "UnlockRetries": ["a{uu}", {}],
        "AccessTechnologies": ["u", 1 << 14],
        "SignalQuality": ["(ub)", [70, True]],
        "Sim": ["o", sim],
    }
    tables = {
        MODEM: own,
        stock.MODEM_3GPP_IFACE: {
            "Imei": ["s", "357000000005678"],
            "OperatorName": ["s", "TheOperator"],
            "OperatorCode": ["s", "00101"],
            "RegistrationState": ["u", 1],
        },
        SIGNAL: {"Rate": ["u", 0], "Lte": ["a{sv}", {"rsrp": ["d", -91.0], "snr": ["d", 12.0]}]},
        LOCATION: {"Enabled": ["u", 1]},
        SIMPLE: {},
    }
    for interface, values in given.get("properties", {}).items():
        tables[f"{MAIN_IFACE}.{interface}"].update(values)
    for interface in given.get("without", []):
        del tables[f"{MAIN_IFACE}.{interface}"]
    for name in given.get("lacks", []):
        tables[MODEM].pop(name, None)
    props = {interface: table(values) for interface, values in tables.items()}
    self.AddObject(path, MODEM, props.get(MODEM, {}), [])
    modem = objects_of(path)
    for interface, values in props.items():
        if interface != MODEM:
            modem.AddProperties(interface, values)
    modem.AddMethod(MODEM, "Enable", "b", "", lambda mock, on: enable(mock, on))
    modem.AddMethod(SIGNAL, "Setup", "u", "", lambda mock, rate: note(mock, "Setup", int(rate)))
    modem.AddMethod(LOCATION, "GetLocation", "", "a{uv}", lambda mock: location(mock))
    self.AddObject(sim, SIM, table({"SimIdentifier": ["s", given.get("iccid", "8901000000000000001")]}), [])
    objects_of(sim).AddMethod(SIM, "SendPin", "s", "", lambda mock, pin: send_pin(mock, path, str(pin)))
    self.EmitSignal(mockobject.OBJECT_MANAGER_IFACE, "InterfacesAdded", "oa{sa{sv}}", [dbus.ObjectPath(path), props])
    return path


@dbus.service.method(TEST, in_signature="s", out_signature="")
def Unplug(self, path):
    """Pull a modem out: calls that it has are refused."""
    self.RemoveObject(path)
    interfaces = [MODEM, stock.MODEM_3GPP_IFACE, SIMPLE, SIGNAL, LOCATION]
    self.EmitSignal(mockobject.OBJECT_MANAGER_IFACE, "InterfacesRemoved", "oas", [dbus.ObjectPath(path), interfaces])
    if behaviour.get("unplug") != "silent":
        refuse_pending(path, "Core.Aborted", "modem is gone")


@dbus.service.method(TEST, in_signature="", out_signature="")
def Clean(self):
    """As after the start."""
    for path in list(mockobject.objects):
        if path != MAIN_OBJ:
            self.RemoveObject(path)
    pending.clear()
    asked.clear()
    counts.update({"modem": 0, "bearer": 0})
    behaviour.clear()
    load(self, {})


@dbus.service.method(TEST, in_signature="s", out_signature="")
def Behave(self, wanted):  # noqa: ARG001
    """What modems do from now on."""
    behaviour.update(json.loads(wanted))


@dbus.service.method(TEST, in_signature="ss", out_signature="")
def Change(self, path, values):  # noqa: ARG001
    """Change properties of an object, each of an interface."""
    for interface, changed in json.loads(values).items():
        mock = objects_of(path)
        if mock is not None:
            mock.UpdateProperties(f"{MAIN_IFACE}.{interface}", table(changed))


@dbus.service.method(TEST, in_signature="", out_signature="s")
def Asked(self):  # noqa: ARG001
    """All that modems were asked, in order."""
    return json.dumps(asked)


@dbus.service.method(TEST, in_signature="ss", out_signature="")
def Emit(self, interface, member):
    """A signal of the modem manager that nobody knows."""
    self.EmitSignal(interface, member, "si", ["nonsense", 7])


@dbus.service.method(TEST, in_signature="s", out_signature="")
def AnswerConnect(self, how):  # noqa: ARG001
    """Answer all pending `Connect`."""
    while pending:
        path, answer, refuse = pending.pop(0)
        answer_connect(path, how, answer, refuse)


@dbus.service.method(SIMPLE, in_signature="a{sv}", out_signature="o", async_callbacks=("answer", "refuse"))
def Connect(self, properties, answer, refuse):
    """Connect, as `behaviour` says; ``hang`` answers later, or never."""
    note(self, "Connect", {str(key): str(value) for key, value in properties.items()})
    if any(path == self.path for path, *_ in pending):
        note(self, "Two Connects", None)
    if behaviour["connect"] == "hang":
        pending.append((self.path, answer, refuse))
    else:
        answer_connect(self.path, behaviour["connect"], answer, refuse)


@dbus.service.method(SIMPLE, in_signature="o", out_signature="")
def Disconnect(self, bearer):
    """End one connection, or with ``/`` all, those too that are being made."""
    note(self, "Disconnect", str(bearer))
    if bearer == "/" and behaviour.get("disconnect") != "ignore":
        refuse_pending(self.path, "Core.Cancelled", "operation was cancelled")
    for path, mock in list(mockobject.objects.items()):
        if path.startswith(f"{MAIN_OBJ}/Bearer/") and bearer in ("/", path) and mock.props[BEARER]["Connected"]:
            mock.UpdateProperties(BEARER, {"Connected": dbus.Boolean(False)})
    set_state(self.path, REGISTERED)


def refuse_pending(path, name, text):
    """Refuse the calls of `Connect` of a modem that are not answered yet."""
    for one in [one for one in pending if one[0] == path]:
        pending.remove(one)
        one[2](dbus.exceptions.DBusException(text, name=f"{ERROR}.{name}"))


def answer_connect(path, how, answer, refuse):
    """Answer one: ``ok``, ``NAME: TEXT`` of an error, or ``nonsense``, a path without a bearer."""
    if how == "ok":
        answer(dbus.ObjectPath(add_bearer(path)))
    elif how == "nonsense":
        answer(dbus.ObjectPath("/"))
    elif how == "no-bearer":
        answer(dbus.ObjectPath("/no/such/bearer"))
    else:
        name, _, text = how.partition(": ")
        refuse(dbus.exceptions.DBusException(text, name=f"{ERROR}.{name}"))


def add_bearer(path):
    """A connected bearer of a modem."""
    bearer = f"{MAIN_OBJ}/Bearer/{counts['bearer']}"
    counts["bearer"] += 1
    static = {"method": ["u", 2], "address": ["s", "10.64.0.2"], "prefix": ["u", 30], "gateway": ["s", "10.64.0.1"]}
    values = {
        "Connected": ["b", True],
        "Interface": ["s", "wwan0"],
        "Ip4Config": ["a{sv}", {**static, "dns1": ["s", "10.64.0.1"], "mtu": ["u", 1430]}],
        "Ip6Config": ["a{sv}", {"method": ["u", 0]}],
        "Stats": ["a{sv}", {"rx-bytes": ["t", 1000], "tx-bytes": ["t", 2000]}],
        "ConnectionError": ["(ss)", ["", ""]],
        **behaviour["bearer"],
    }
    root = mockobject.objects[MAIN_OBJ]
    root.AddObject(bearer, BEARER, table({name: value for name, value in values.items() if value is not None}), [])
    set_state(path, CONNECTED)
    return bearer


def enable(mock, on):
    """Enable a modem."""
    note(mock, "Enable", bool(on))
    if behaviour["enable"] != "ok":
        name, _, text = behaviour["enable"].partition(": ")
        raise dbus.exceptions.DBusException(text, name=f"{ERROR}.{name}")
    set_state(mock.path, REGISTERED)


def send_pin(mock, path, pin):
    """Unlock a SIM, or spend a try."""
    note(mock, "SendPin", pin)
    if pin != behaviour["pin"]:
        behaviour["tries"] -= 1
        tries = typed(["a{uu}", {"2": behaviour["tries"]}])
        objects_of(path).UpdateProperties(MODEM, {"UnlockRetries": tries})
        name = behaviour.get("pin_error", "MobileEquipment.IncorrectPassword")
        raise dbus.exceptions.DBusException("incorrect password", name=f"{ERROR}.{name}")
    objects_of(path).UpdateProperties(MODEM, {"UnlockRequired": dbus.UInt32(1), "State": dbus.Int32(DISABLED)})


def location(mock):
    """Area and cell."""
    note(mock, "GetLocation", None)
    return dbus.Dictionary({dbus.UInt32(1): dbus.String("001,01,FFFE,00A1B2C3,1A2B")}, signature="uv")


def note(mock, method, value):
    """Note what was asked."""
    asked.append([method, str(mock.path).rpartition("/")[2], value])
