"""Tokens of the API: a file beside the journal has their hashes, so that nobody reads a token out of it.

A token is ``flk1_ID_SECRET``. The prefix is the version of this form; the identifier says in lists and logs which token it is;
the secret has 256 random bits, so that SHA-256 without salt and rounds is enough.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from farlink.errors import ArgumentError, OperatorError, OutputError
from farlink.near_names import instead
from farlink.output import whole_file
from farlink.untrusted import printable, read_text

Right = Literal["read", "change"]
RIGHTS: tuple[Right, ...] = get_args(Right)

_VERSION = "flk1"
_TOKEN = re.compile(rf"{_VERSION}_([0-9a-f]{{12}})_([A-Za-z0-9_-]{{43}})")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,39}")
_MOST = 1000
# The year 9999.
_LAST_S = 253_402_300_799


@dataclass(frozen=True)
class Token:
    """A token as it is kept.

    Attributes
    ----------
    id
        Its public part.
    name
        Who has it.
    right
        ``read``, or ``change``, which includes it.
    made_s
        When it was made, in s since 1970-01-01 UTC.
    sha256
        Of its secret part, in hexadecimal digits.
    """

    id: str
    name: str
    right: Right
    made_s: float
    sha256: str = field(repr=False)


def file_of(journal: Path) -> Path:
    """The file of the tokens for a bundle with this journal."""
    return journal.with_name(f"{journal.name}.tokens")


class Tokens:
    """The tokens of a bundle. What another process changes in their file holds at once.

    Parameters
    ----------
    path
        Their file (mode 0600).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: tuple[int, int, int] | None = None
        self._known: dict[str, Token] = {}

    def all(self) -> list[Token]:
        """All of them.

        Raises
        ------
        OperatorError
            If their file cannot be used, or others may read it.
        """
        try:
            status = self.path.stat()
        except FileNotFoundError:
            self._stamp, self._known = None, {}
            return []
        except OSError as error:
            raise OperatorError(f"cannot read {self.path}: {error.strerror}", "be the user of the operator") from error
        if stat.S_IMODE(status.st_mode) & 0o077:
            raise OperatorError(f"{self.path}: others may read or write it", f"chmod 600 {self.path}")
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        if stamp != self._stamp:
            self._known = {one.id: one for one in _read(self.path)}
            self._stamp = stamp
        return list(self._known.values())

    def add(self, name: str, right: str) -> str:
        """Make a token.

        Parameters
        ----------
        name
            Who gets it: 1 to 40 letters, digits, '-', '_', '.' and '@'.
        right
            ``read`` or ``change``.

        Returns
        -------
        str
            The token, which nobody can read again.

        Raises
        ------
        ArgumentError
            If name or right are none, or the name is taken.
        OperatorError
            If the file cannot be used.
        OutputError
            If it cannot be written.
        """
        if not _NAME.fullmatch(name):
            message = f"name {printable(name, 60)!r} is not 1 to 40 letters, digits, '-', '_', '.' and '@'"
            raise ArgumentError(message, "name the person or program that gets the token")
        if right not in RIGHTS:
            raise ArgumentError(f"--right {printable(right, 40)!r} is not one of {', '.join(RIGHTS)}", instead(right, RIGHTS))
        identifier, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        checked: Right = "change" if right == "change" else "read"
        made = Token(identifier, name, checked, round(time.time(), 3), _hash(secret))
        with _only(self.path):
            known = self.all()
            if any(one.name == name for one in known):
                raise ArgumentError(f"there is a token {name!r} already", "choose another name, or revoke that one")
            if len(known) >= _MOST:
                raise ArgumentError(f"there are {len(known)} tokens already", "revoke those that nobody uses")
            self._write([*known, made])
        return f"{_VERSION}_{identifier}_{secret}"

    def revoke(self, which: str) -> Token:
        """Take a token back.

        Parameters
        ----------
        which
            Its name or identifier.

        Raises
        ------
        ArgumentError
            If there is none.
        """
        with _only(self.path):
            known = self.all()
            found = next((one for one in known if which in (one.name, one.id)), None)
            if found is None:
                names = [one.name for one in known]
                raise ArgumentError(
                    f"there is no token {printable(which, 60)!r}", instead(which, names) if names else "add one"
                )
            self._write([one for one in known if one.id != found.id])
        return found

    def of(self, given: str) -> Token | None:
        """The token that was given, or None if it is none.

        Raises
        ------
        OperatorError
            If the file cannot be used.
        """
        parts = _TOKEN.fullmatch(given)
        known = {one.id: one for one in self.all()}
        found = known.get(parts[1]) if parts else None
        # An unknown identifier takes as long as a wrong secret.
        expected = found.sha256 if found else _hash("")
        is_right = hmac.compare_digest(_hash(parts[2] if parts else given[:100]), expected)
        return found if is_right else None

    def _write(self, tokens: Iterable[Token]) -> None:
        content = {"farlink_tokens": 1, "tokens": [asdict(one) for one in tokens]}
        with whole_file(self.path, mode=0o600) as temporary:
            temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


@contextmanager
def _only(path: Path) -> Iterator[None]:
    """Wait until no other process changes files of tokens in this folder."""
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise OutputError(f"cannot open {path.parent}: {error.strerror}", "create the folder of the journal") from error
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _read(path: Path) -> list[Token]:
    remedy = "make its tokens anew: remove the file, then `farlink bundle token add`"
    try:
        content: Any = json.loads(read_text(path, OperatorError))
        if content["farlink_tokens"] != 1:
            raise OperatorError(
                f"{path}: version {printable(content['farlink_tokens'], 20)}, this farlink knows 1", "update farlink"
            )
        found = [Token(**one) for one in content["tokens"]]
        for one in found:
            is_hashed = re.fullmatch("[0-9a-f]{64}", one.sha256) and re.fullmatch("[0-9a-f]{12}", one.id)
            if not (one.right in RIGHTS and is_hashed and _NAME.fullmatch(one.name) and 0 <= one.made_s < _LAST_S):
                raise ValueError(one.id)
    except OSError as error:
        raise OperatorError(f"cannot read {path}: {error.strerror}", "be the user of the operator") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise OperatorError(f"{path} is no file of tokens", remedy) from error
    return found
