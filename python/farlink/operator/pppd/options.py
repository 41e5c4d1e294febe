"""Options and secrets of pppd, compiled from a bundle: one pppd for each call, which ends with it.

References
----------
Zaghloul, Tables 3.1 and 3.2, and section 7.4 (a compiler of configurations). What pppd 2.4.9 does to bundles was measured:
with `persist`, the first link is never dialled again (ppp issue 142), so the operator starts a pppd for each call.
"""

from __future__ import annotations

import grp
import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from farlink.errors import OperatorError, OutputError
from farlink.operator.at import profiles
from farlink.operator.config.bundle import Bundle, Line
from farlink.operator.config.secrets_file import Secrets
from farlink.output import whole_file

_MOST_ENDPOINT_BYTES = 20
_LONGEST_SECRETS_BYTES = 1 << 20


def file_stem(bundle: str, line: str) -> str:
    """Prefix of the names of files and links of a line. Neither name has an ``@``, and both may have dashes.

    Examples
    --------
    >>> file_stem("a", "b-c"), file_stem("a-b", "c")
    ('a@b-c', 'a-b@c')
    """
    return f"{bundle}@{line}"


class BackEnd(Protocol):
    """Back end that carries PPP over the lines of a bundle."""

    def files(self, bundle: Bundle) -> dict[str, str]:
        """Name -> contents of the files that it needs, without secrets."""
        ...

    def write(self, bundle: Bundle, secrets: Secrets) -> list[Path]:
        """Write them, and what holds the secrets."""
        ...


class Pppd:
    """Linux' pppd.

    Parameters
    ----------
    folder
        Where files of options and logs are.
    secrets_folder
        Where pppd looks for secrets.
    profiles_folder
        That of ``bundle.toml``, for profiles that are files.
    """

    def __init__(self, folder: Path, *, secrets_folder: Path = Path("/etc/ppp"), profiles_folder: Path = Path()) -> None:
        self.folder = folder
        self.peers = secrets_folder / "peers"
        self._secrets_folder = secrets_folder
        self._profiles_folder = profiles_folder

    def files(self, bundle: Bundle) -> dict[str, str]:
        """A file of options for each line."""
        return {f"{file_stem(bundle.name, line.name)}.options": self._text(bundle, line) for line in bundle.ppp_lines}

    def write(self, bundle: Bundle, secrets: Secrets) -> list[Path]:
        """Write the options of each line, and the bundle's part of ``chap-secrets`` and ``pap-secrets`` (mode 0600).

        Raises
        ------
        OutputError
            If a file cannot be written; none is half written.
        """
        written = []
        for name, content in self.files(bundle).items():
            written.append(self.folder / name)
            with whole_file(written[-1], mode=0o600) as temporary:
                temporary.write_text(content, encoding="utf-8")
        for line in bundle.ppp_lines:
            _remove_former(self.folder / f"{bundle.name}-{line.name}.options", bundle, line)
        return written + self._write_secrets(bundle, secrets)

    def install(self, bundle: Bundle, secrets: Secrets) -> list[Path]:
        """Write, as root, what a pppd needs whose operator is not: its options, for ``pppd call``, and the secrets.

        Raises
        ------
        OutputError
            If a file cannot be written.
        """
        written = []
        for line in bundle.ppp_lines:
            written.append(self.peers / self.peer(bundle, line))
            with whole_file(written[-1], mode=0o640) as temporary:
                temporary.write_text(self._peer_text(bundle, line), encoding="utf-8")
            with suppress(KeyError, PermissionError):
                os.chown(written[-1], 0, grp.getgrnam("dip").gr_gid)
            _remove_former(self.peers / f"farlink-{bundle.name}-{line.name}", bundle, line)
        return written + self._write_secrets(bundle, secrets)

    def peer(self, bundle: Bundle, line: Line) -> str:
        """Options of ``pppd call`` for a line."""
        return f"farlink-{file_stem(bundle.name, line.name)}"

    def differing(self, bundle: Bundle) -> list[str]:
        """Lines whose options are not installed, or others than the bundle says."""
        return [line.name for line in bundle.ppp_lines if not self._is_installed(bundle, line)]

    def _is_installed(self, bundle: Bundle, line: Line) -> bool:
        try:
            return (self.peers / self.peer(bundle, line)).read_text(encoding="utf-8") == self._peer_text(bundle, line)
        except (OSError, UnicodeDecodeError):
            return False

    def _write_secrets(self, bundle: Bundle, secrets: Secrets) -> list[Path]:
        if not bundle.user:
            return []
        written = [self._secrets_folder / name for name in ("chap-secrets", "pap-secrets")]
        for path in written:
            _write_secrets(path, bundle, secrets)
        return written

    def _text(self, bundle: Bundle, line: Line) -> str:
        log = self.folder / f"{file_stem(bundle.name, line.name)}.log"
        return self._peer_text(bundle, line) + f'logfile "{log}"\n'

    def _peer_text(self, bundle: Bundle, line: Line) -> str:
        rows = [_head(bundle, line), line.port]
        rows += [f"{self._profile(line).speed_bps}", "nodetach", "nopersist", "modem", "crtscts"]
        rows += [f"linkname {file_stem(bundle.name, line.name)}"]
        rows += [*_multilink(bundle), *_addresses(bundle), *_timers(bundle), *_authentication(bundle, line)]
        if line.role == "answer":
            # A request before the far end reads is lost, and repeated only after `lcp-restart`. So the end that dials begins,
            # `connect_delay_s` after CONNECT. pppd's own connect-delay needs a connect script, before which it drops DTR.
            rows.append("silent")
        return "".join(f"{row}\n" for row in rows)

    def _profile(self, line: Line) -> profiles.Profile:
        is_file = line.profile.endswith(".toml")
        return profiles.load(str(self._profiles_folder / line.profile) if is_file else line.profile)


def _head(bundle: Bundle, line: Line) -> str:
    return f"# {line.name} of {bundle.name}, compiled by farlink: changes are lost"


def _remove_former(path: Path, bundle: Bundle, line: Line) -> None:
    """Remove a line's file of an earlier version, in whose names line ``c`` of ``a-b`` was line ``b-c`` of ``a``, too."""
    with suppress(OSError, UnicodeDecodeError):
        if path.read_text(encoding="utf-8").startswith(f"{_head(bundle, line)}\n"):
            path.unlink()


def _multilink(bundle: Bundle) -> list[str]:
    ppp = bundle.ppp
    rows = ["multilink", f"mrru {ppp.mrru_bytes}", f"mru {ppp.mru_bytes}", f"mtu {ppp.mru_bytes}"]
    # All lines of an end have one discriminator, by which the peer joins them.
    name = bundle.name.encode()
    endpoint = name if len(name) <= _MOST_ENDPOINT_BYTES else hashlib.sha256(name).digest()[:_MOST_ENDPOINT_BYTES]
    rows += [f"endpoint local:{endpoint.hex('.')}", f"bundle {bundle.name}"]
    return rows if ppp.compression else [*rows, "noccp"]


def _addresses(bundle: Bundle) -> list[str]:
    """Each line has them, as the next line becomes the owner of the bundle when the first is lost."""
    ppp = bundle.ppp
    rows = [f"{ppp.local}:{ppp.remote}"] if ppp.local or ppp.remote else []
    rows += [] if ppp.local else ["noipdefault", "ipcp-accept-local"]
    rows += [] if ppp.remote else ["ipcp-accept-remote"]
    return [*rows, "+ipv6" if ppp.ipv6 else "noipv6", "nodefaultroute"]


def _timers(bundle: Bundle) -> list[str]:
    ppp = bundle.ppp
    rows = [f"lcp-echo-interval {ppp.echo_interval_s}", f"lcp-echo-failure {ppp.echo_failures}"]
    rows += ["lcp-echo-adaptive"] if ppp.echo_adaptive else []
    # A line without echoes stays in the bundle, and takes its share, until it has been asked in vain to terminate: each time
    # an `lcp-restart`.
    rows.append("lcp-max-terminate 1")
    # A request that is repeated after the link is open takes it out of the bundle.
    rows += [f"lcp-restart {ppp.lcp_restart_s}", f"lcp-max-configure {ppp.lcp_tries}", f"ipcp-restart {ppp.ipcp_restart_s}"]
    return [*rows, f"pap-restart {ppp.auth_restart_s}", f"chap-restart {ppp.auth_restart_s}"]


def _authentication(bundle: Bundle, line: Line) -> list[str]:
    """The answering end asks who calls; the dialling one says it."""
    if not bundle.user:
        return ["noauth"]
    if line.role == "answer":
        # With `auth` alone pppd asks for EAP first, which takes a round trip more.
        return ["require-chap", "hide-password"]
    return ["noauth", f"user {bundle.user}", "hide-password"]


def _write_secrets(path: Path, bundle: Bundle, secrets: Secrets) -> None:
    """Put the bundle's secret into a file that has those of others, too."""
    begin, end = f"# farlink {bundle.name} begins", f"# farlink {bundle.name} ends"
    try:
        before = path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise OutputError(f"cannot read {path}: {error.strerror}", "run as root, or give another folder") from error
    if len(before) > _LONGEST_SECRETS_BYTES:
        raise OperatorError(f"{path} has {len(before)} bytes", "this is no file of secrets")
    rows = before.decode("utf-8", "surrogateescape").splitlines()
    if begin in rows and end in rows[rows.index(begin) :]:
        first = rows.index(begin)
        del rows[first : first + rows[first:].index(end) + 1]
    rows += [begin, f'"{bundle.user}" * "{secrets.password}" *', end]
    with whole_file(path, mode=0o600) as temporary:
        temporary.write_bytes("".join(f"{row}\n" for row in rows).encode("utf-8", "surrogateescape"))
