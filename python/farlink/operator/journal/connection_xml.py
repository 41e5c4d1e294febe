"""A journal as the XML of figure 7.4, made valid, and read back. Its schema is ``connection.xsd`` in this package.

An entry is one try to be up: it begins with the dial, or with the wait for a call, and ends before the next.

References
----------
Zaghloul, section 7.2 and figure 7.4.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.parsers import expat

from farlink.errors import JournalError
from farlink.operator.journal.flat import COLUMNS, history_of, parsed, rows, time_of
from farlink.operator.journal.rows import History
from farlink.output import whole_file
from farlink.untrusted import printable, read_file

_BEGINS_ENTRY = ("connecting", "waiting")
_ATTRIBUTES = (
    *("number", "monotonic_s", "boot_id", "cause", "snr_db", "bars", "attempt", "bytes_in", "bytes_out", "injected"),
    *("caller", "nonsense_base64"),
)
_NIL = "{http://www.w3.org/2001/XMLSchema-instance}nil"


def schema() -> str:
    """The XML schema of the export."""
    return resources.files("farlink.operator.journal").joinpath("connection.xsd").read_text(encoding="utf-8")


def write_xml(history: History, path: str | Path) -> None:
    """Write the XML of figure 7.4."""
    with whole_file(path) as temporary:
        temporary.write_text(xml_text(history), encoding="utf-8")


def xml_text(history: History) -> str:
    """The whole as XML: an element ``connection`` for each connection of each modem."""
    root = ElementTree.Element("connection_database")
    of_modem: dict[tuple[int, str], list[dict[str, Any]]] = {
        (one.number, modem): [] for one in history.connections for modem in one.indices
    }
    for row in rows(history):
        of_modem.setdefault((row["connection"], row["link"]), []).append(row)
    of_number = {one.number: one for one in history.connections}
    for (number, modem), found in of_modem.items():
        connection = of_number[number]
        element = ElementTree.SubElement(root, "connection", {"number": str(number)})
        if connection.end_s is not None:
            element.set("end_time", time_of(connection.end_s))
        _leaf(element, "modem_name", modem)
        _leaf(element, "modem_index", str(connection.indices.get(modem, 0)))
        _leaf(element, "connection_time", time_of(connection.start_s))
        entry = None
        entries = 0
        for row in found:
            if entry is None or row["state"] in _BEGINS_ENTRY:
                entries += 1
                entry = ElementTree.SubElement(element, "entry")
                _leaf(entry, "entry_id", str(entries))
            values = {key: _shown(row[key]) for key in _ATTRIBUTES if key in row}
            event = ElementTree.SubElement(entry, "event", values)
            _leaf(event, "state", row["state"])
            _leaf(event, "time", row["time"])
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def read_xml(path: str | Path) -> History:
    """Read what `write_xml` wrote, or a file with the elements of figure 7.4 only.

    Raises
    ------
    JournalError
        If the file is something else.
    """
    try:
        data = read_file(Path(path), JournalError)
    except OSError as error:
        raise JournalError(f"{path}: {error.strerror}", "give an export of a journal") from error
    root = _parsed_tree(data, str(path))
    elements = [root] if root.tag == "connection" else list(root)
    if root.tag not in ("connection", "connection_database") or any(one.tag != "connection" for one in elements):
        raise JournalError(f"{path}: no connections", "give the XML of figure 7.4 (connection.xsd)")
    found: list[tuple[dict[str, Any], str]] = []
    silent: list[dict[str, Any]] = []
    for at, element in enumerate(elements, start=1):
        head = _head(element, at, str(path))
        events = element.findall("entry/event")
        if not events:
            silent.append(head)
        for event in events:
            row = {**head, **{key: parsed(key, text) for key, text in event.attrib.items() if key in COLUMNS}}
            row |= {"state": event.findtext("state", ""), "time": event.findtext("time", "")}
            row.setdefault("monotonic_s", 0.0)
            row.setdefault("number", len(found) + 1)
            row.setdefault("connection_start", row["time"])
            found.append((row, f"{path}, connection {at}"))
    return history_of(found, [(head, str(path)) for head in silent])


def _head(element: ElementTree.Element, at: int, path: str) -> dict[str, Any]:
    name, index = element.findtext("modem_name"), element.findtext("modem_index")
    if not name or index is None:
        raise JournalError(f"{path}, connection {at}: modem_name or modem_index is missing", "see connection.xsd")
    head: dict[str, Any] = {"link": name, "connection": parsed("connection", element.get("number", str(at)))}
    index = parsed("index", index)
    if index != 0:
        head["index"] = index
    start = element.find("connection_time")
    if start is not None and start.text and start.get(_NIL) != "true":
        head["connection_start"] = start.text
    if element.get("end_time"):
        head["connection_end"] = element.get("end_time")
    return head


def _parsed_tree(data: bytes, where: str) -> ElementTree.Element:
    """The tree of a text without document type, as entities of a few bytes may stand for many gigabytes."""
    builder = ElementTree.TreeBuilder()
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True

    def refuse(*_: object) -> None:
        raise JournalError(f"{where}: has a document type", "take the line with DOCTYPE out")

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = lambda tag, attributes: builder.start(
        _named(tag), {_named(key): text for key, text in attributes.items()}
    )
    parser.EndElementHandler = lambda tag: builder.end(_named(tag))
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(data, True)
        return builder.close()
    except (expat.ExpatError, AssertionError) as error:
        raise JournalError(f"{where}: not XML: {printable(error)}", "give an export of a journal") from error


def _named(name: str) -> str:
    return "{" + name if "}" in name else name


def _leaf(parent: ElementTree.Element, tag: str, text: str) -> None:
    ElementTree.SubElement(parent, tag).text = text


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
