"""Untrusted files: their size is checked before memory is allocated."""

from __future__ import annotations

import gzip
import io
import re
import stat
import tomllib
import zlib
from pathlib import Path
from typing import IO, Any

from farlink.errors import FarlinkError
from farlink.extras import require

MOST_FILE_BYTES = 1 << 30
# Of scenarios, descriptions and look-up tables.
MOST_TEXT_BYTES = 1 << 26
# Limit of the content of a compressed file, and of all members of an archive together.
MOST_UNPACKED_BYTES = 1 << 29
# Every line of a text becomes an object of Python's: 50 to 100 bytes each.
MOST_LINES = 20_000_000
# Numbers in all columns of a table.
MOST_VALUES = 1 << 26

_CHUNK = 1 << 20

_MOST_PARTS = 64
_LONG_KEY = re.compile(
    r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){%d}""" % _MOST_PARTS  # noqa: UP031 (braces of its own)
)
_TWICE = re.compile("Cannot (?:overwrite|declare|mutate)|Duplicate inline table key")
# A value of more lines is not looked for.
_MOST_STATEMENT_LINES = 1000
_PLACE = re.compile(r"\(at line (\d+), column \d+\)")


def read_file(path: Path, refusal: type[FarlinkError], most: int = MOST_FILE_BYTES) -> bytes:
    """Contents of a file, if it is not larger than `most`.

    Parameters
    ----------
    path
        The file.
    refusal
        What is raised if it is larger, or a device, some of which never end.
    most
        Bytes.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    with path.open("rb") as file:
        mode = path.stat().st_mode
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            raise refusal(f"{path} is a device, not a file", "name a file")
        return _within(file, most, str(path), "has", refusal)


def toml_tables(text: str) -> dict[str, Any]:
    r"""The tables of a TOML text.

    Parameters
    ----------
    text
        The text.

    Raises
    ------
    ValueError
        If it is not TOML, in words that name the line, and the key if that occurs twice.

    Examples
    --------
    >>> toml_tables("runs = 1")
    {'runs': 1}
    """
    # The parser takes memory with the square of a key's parts.
    if _LONG_KEY.search(text):
        raise ValueError(f"a key of more than {_MOST_PARTS} parts")
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ValueError("tables or lists are nested too deeply") from error
    except tomllib.TOMLDecodeError as error:
        if not _TWICE.match(str(error)):
            raise
        place = _PLACE.search(str(error))
        lines = text.splitlines()
        last = len(lines) if place is None else min(int(place[1]), len(lines))
        number, key = _statement(lines, last, str(error))
        raise ValueError(f"the key {printable(key, 60)} occurs twice (at line {number})") from error


def _statement(lines: list[str], last: int, said: str) -> tuple[int, str]:
    """Line and key of the statement that ends in line `last`, counted from 1: Python gives the end of a value, not its key."""
    named = re.search(r"[Ii]nline table key '([^']*)'", said)
    if named is not None:
        return last, named[1]
    for first in range(last, max(last - _MOST_STATEMENT_LINES, 0), -1):
        if not lines[first - 1].strip() or lines[first - 1].lstrip().startswith("#"):
            continue
        try:
            tomllib.loads("\n".join(lines[first - 1 : last]))
        except (tomllib.TOMLDecodeError, RecursionError):
            continue
        head = lines[first - 1].strip()
        is_heading = head.startswith("[")
        return first, head.partition("]")[0].strip("[] ") if is_heading else _key(head)
    return last, lines[last - 1].partition("=")[0].strip()


def _key(statement: str) -> str:
    """The key of ``key = value``; it may be quoted and have an equals sign in it."""
    found = re.match(r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^="'])+""", statement)
    return (found[0] if found else statement).strip()


def read_text(path: Path, refusal: type[FarlinkError]) -> str:
    """Contents of a text file that people write, in UTF-8, if it is not larger than `MOST_TEXT_BYTES`.

    Parameters
    ----------
    path
        The file.
    refusal
        What is raised if it is larger, or a device.

    Raises
    ------
    OSError
        If it cannot be read.
    UnicodeDecodeError
        If it is not UTF-8.
    """
    return read_file(path, refusal, MOST_TEXT_BYTES).decode("utf-8-sig")


def gunzip(data: bytes, where: str, refusal: type[FarlinkError]) -> bytes:
    """Contents of a gzip file, if they are not more than `MOST_UNPACKED_BYTES`.

    Parameters
    ----------
    data
        Contents of the file; returned as they are if they do not begin as gzip does.
    where
        Its name, for messages.
    refusal
        What is raised if it is damaged or holds more.
    """
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            return _within(file, MOST_UNPACKED_BYTES, where, "unpacks to", refusal)
    except (EOFError, OSError, zlib.error) as error:
        raise refusal(f"{where}: not a complete gzip file", "fetch it again; it may be truncated") from error


def parquet_table(data: bytes, where: str, refusal: type[FarlinkError]) -> Any:
    """The table in the bytes of a Parquet file, if it has no more than `MOST_VALUES`.

    Its metadata says how many values there are, and texts are read as numbers of a list of different ones: so what it takes is
    known before it is taken.

    Parameters
    ----------
    data
        Contents of the file.
    where
        Its name, for messages.
    refusal
        What is raised if it is damaged or larger.

    Raises
    ------
    MissingExtraError
        If pyarrow is not installed.
    """
    pa = require("pyarrow", "a Parquet file")
    pq = require("pyarrow.parquet", "a Parquet file")
    try:
        with pq.ParquetFile(pa.BufferReader(data)) as file:
            texts = [field.name for field in file.schema_arrow if pa.types.is_string(field.type)]
            groups = [file.metadata.row_group(at) for at in range(file.metadata.num_row_groups)]
            values = sum(group.column(at).num_values for group in groups for at in range(group.num_columns))
            rows = file.metadata.num_rows
        if 0 <= max(values, rows) <= MOST_VALUES:
            table = pq.ParquetFile(pa.BufferReader(data), read_dictionary=texts).read()
            values = max(_values(pa, column) for column in table.columns) if table.num_columns else 0
            if values <= MOST_VALUES:
                return _without_dictionaries(pa, table)
    # pyarrow may raise any error on a damaged file.
    except Exception as error:
        raise refusal(f"{where}: not a complete Parquet file", "fetch it again; it may be truncated") from error
    raise refusal(f"{where}: more than the {MOST_VALUES:,} values that are read", "cut it into parts")


def _values(pa: Any, column: Any) -> int:
    """Numbers that a column is worth: eight characters of a text are one."""
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes) // 8
    longest = max((len(text) for chunk in column.chunks for text in chunk.dictionary.to_pylist()), default=0)
    return len(column) * (1 + longest // 8)


def _without_dictionaries(pa: Any, table: Any) -> Any:
    for at, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(at, field.name, table.column(at).cast(field.type.value_type))
    return table


def check_lines(data: bytes, where: str, refusal: type[FarlinkError]) -> None:
    """Refuse a text of more than `MOST_LINES`.

    Parameters
    ----------
    data
        The text.
    where
        Its name, for messages.
    refusal
        What is raised.
    """
    lines = max(data.count(b"\n"), data.count(b"\r"))
    if lines > MOST_LINES:
        raise refusal(f"{where}: {lines:,} lines, more than the {MOST_LINES:,} that are read", "cut it into parts")


def lines_of(text: str) -> list[str]:
    r"""The lines of a text, which end with ``\n``, ``\r\n`` or ``\r`` and with nothing else.

    Examples
    --------
    >>> lines_of("1\r\n2\x0b\n")
    ['1', '2\x0b']
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def printable(text: object, most: int = 300) -> str:
    r"""A text that a stranger wrote, as one line that does nothing to a terminal.

    Parameters
    ----------
    text
        Anything.
    most
        Characters at most; of a longer one the beginning and the end.

    Examples
    --------
    >>> printable("a\x1b[31m\nb")
    'a[31m b'
    >>> printable("a" * 9 + "z", 6)
    'aaaa...az'
    """
    whole = str(text)
    if len(whole) > 10 * most:  # enough of it for the characters that are left out
        whole = whole[: 5 * most] + whole[-5 * most :]
    shown = "".join(letter for letter in " ".join(whole.split()) if letter.isprintable())
    if len(shown) <= most:
        return shown
    # The cause of an error is often given after the value.
    head = 2 * most // 3
    return f"{shown[:head]}...{shown[head - most :]}"


def _within(file: IO[bytes] | gzip.GzipFile, most: int, where: str, does: str, refusal: type[FarlinkError]) -> bytes:
    chunks, left = [], most
    while chunk := file.read(_CHUNK):
        left -= len(chunk)
        if left < 0:
            raise refusal(f"{where} {does} more than the {most:,} bytes that are read", "cut it into parts")
        chunks.append(chunk)
    return b"".join(chunks)
