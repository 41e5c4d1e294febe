"""Where the keys and values of a TOML text stand. Python's parser and tomlkit give values only."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from dataclasses import dataclass, field

Path = tuple[str | int, ...]
"""Keys from the top to a value, with the index of an element of a list."""

Place = tuple[int, int]
"""Line and column, from 1."""

_SPACE = re.compile(r"[ \t]*")
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_OTHER_VALUE = re.compile(r"[^,\]}\n#]*")
_STRINGS = (
    re.compile(r'"""(?:[^"\\]|\\.|"(?!""))*"{3,5}', re.DOTALL),
    re.compile(r"'''(?:[^']|'(?!''))*'{3,5}", re.DOTALL),
    re.compile(r'"(?:[^"\\\n]|\\.)*"'),
    re.compile(r"'[^'\n]*'"),
)


@dataclass
class Places:
    """Places of a text's keys and values.

    Attributes
    ----------
    keys
        Path -> where its key stands; of a table, where its heading does.
    values
        Path -> where its value begins.
    """

    keys: dict[Path, Place] = field(default_factory=dict)
    values: dict[Path, Place] = field(default_factory=dict)

    def key(self, path: Path) -> Place:
        """The place of a key, or of the nearest table around it that has one."""
        return next((self.keys[path[:length]] for length in range(len(path), 0, -1) if path[:length] in self.keys), (1, 1))

    def value(self, path: Path) -> Place:
        """The place of a value, or of what is around it."""
        return self.values.get(path) or self.key(path)


def places(text: str) -> Places:
    r"""Places of the keys and values of a text that `tomllib` has parsed.

    Parameters
    ----------
    text
        Valid TOML.

    Examples
    --------
    >>> found = places('[[line]]\nname = "kansas"\n[[line]]\nlimits = { airtime_s = 5 }')
    >>> found.keys["line", 1, "limits", "airtime_s"], found.values["line", 0, "name"]
    ((4, 12), (2, 8))
    """
    return _Scanner(text).scanned()


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]
        self._at = 0
        self._found = Places()
        self._lengths: dict[Path, int] = {}

    def scanned(self) -> Places:
        table: Path = ()
        while self._skip(_BLANK) < len(self._text):
            if self._text[self._at] == "[":
                table = self._heading()
            else:
                self._pair(table)
        return self._found

    def _heading(self) -> Path:
        place = self._place()
        is_list = self._text.startswith("[[", self._at)
        self._at += 2 if is_list else 1
        path: Path = ()
        parts = self._key()
        for count, part in enumerate(parts, start=1):
            path = (*path, part)
            if count == len(parts) and is_list:
                self._found.keys.setdefault(path, place)
                self._lengths[path] = self._lengths.get(path, -1) + 1
            if path in self._lengths:
                path = (*path, self._lengths[path])
        self._found.keys[path] = place
        self._at += 2 if is_list else 1
        return path

    def _pair(self, table: Path) -> None:
        place = self._place()
        path = (*table, *self._key())
        for length in range(len(table) + 1, len(path) + 1):
            self._found.keys.setdefault(path[:length], place)
        self._at += 1  # the equals sign
        self._skip(_SPACE)
        self._value(path)

    def _key(self) -> list[str]:
        parts = []
        while True:
            self._skip(_SPACE)
            found = next((one for rule in (*_STRINGS[2:], _BARE) if (one := rule.match(self._text, self._at))), None)
            if found is None:
                raise ValueError(f"no key at line {self._place()[0]}")
            self._at = found.end()
            parts.append(_unquoted(found[0]))
            self._skip(_SPACE)
            if not self._text.startswith(".", self._at):
                return parts
            self._at += 1

    def _value(self, path: Path) -> None:
        self._found.values[path] = self._place()
        opening = self._text[self._at]
        if opening in "[{":
            self._at += 1
            count = 0
            while self._skip(_BLANK) < len(self._text) and self._text[self._at] != {"[": "]", "{": "}"}[opening]:
                if opening == "[":
                    self._value((*path, count))
                    count += 1
                else:
                    self._pair(path)
                self._skip(_BLANK)
                if self._text.startswith(",", self._at):
                    self._at += 1
            self._at += 1
            return
        found = next((one for rule in (*_STRINGS, _OTHER_VALUE) if (one := rule.match(self._text, self._at))), None)
        self._at = found.end() if found else len(self._text)

    def _skip(self, rule: re.Pattern[str]) -> int:
        found = rule.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._at

    def _place(self) -> Place:
        line = bisect_right(self._starts, self._at)
        return line, self._at - self._starts[line - 1] + 1


def _unquoted(key: str) -> str:
    return next(iter(tomllib.loads(f"{key} = 0"))) if key[0] in "\"'" else key
