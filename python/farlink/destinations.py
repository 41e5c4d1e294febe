"""Output files of a command: their names and formats are checked before the work begins."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from farlink.errors import OutputError
from farlink.extras import require
from farlink.output import check_writable

# Kind of output -> its suffixes. For the last four the suffix selects the format; a text may also have none.
SUFFIXES = {
    "JSON": (".json",),
    "CSV": (".csv", ".txt"),
    "Parquet": (".parquet", ".pq"),
    "report": (".html", ".htm"),
    "TOML": (".toml",),
    "series": (".csv", ".txt", ".parquet"),
    "trace": (".npz", ".parquet"),
    "packet errors": (".npz", ".parquet", ".txt", ".tcl", ".list"),
    "picture": (".png", ".svg", ".pdf"),
    "picture or page": (".png", ".svg", ".pdf", ".html"),
}
_DECIDED = ("trace", "packet errors", "picture", "picture or page")
# Names in errors for outputs that are not "a ... file".
_NOUNS = {
    "trace": "trace",
    "packet errors": "list of lost packets",
    "picture": "picture",
    "picture or page": "picture",
    "series": "series",
    "report": "report",
}
_NEEDS = {
    "report": ("matplotlib", "a figure"),
    "picture": ("matplotlib", "a figure"),
    "picture or page": ("matplotlib", "a figure"),
}
# "runs-1.5" has no suffix.
_SUFFIX = re.compile(r"\.[A-Za-z]\w*")


def check_outputs(wanted: Iterable[tuple[str, str | Path | None, str]], inputs: Mapping[str, Path] | None = None) -> None:
    """Refuse an output that could not be written, or that would overwrite a needed file.

    Parameters
    ----------
    wanted
        Option, name of the file and what is written, a key of `SUFFIXES` or ``""`` for anything. No name, and ``-`` for
        standard output, are passed over.
    inputs
        What a file is called -> the file that must stay.

    Raises
    ------
    OutputError
        If the suffix is that of another format, the file cannot be written, two outputs have one name, or an output has that
        of an input.
    MissingExtraError
        If what writes the format is not installed.

    Examples
    --------
    >>> check_outputs([("--json", "-", "JSON"), ("--csv", None, "CSV")])
    >>> check_outputs([("--parquet", "rows.csv", "Parquet")])
    Traceback (most recent call last):
        ...
    farlink.errors.OutputError: --parquet rows.csv: no Parquet file has the suffix '.csv'
    """
    taken = {path.resolve(): called for called, path in (inputs or {}).items()}
    is_on_standard_output = ""
    for option, name, content in wanted:
        if str(name) == "-":
            if is_on_standard_output:
                message = f"{is_on_standard_output} - and {option} - both want standard output"
                raise OutputError(message, "write one of them to a file")
            is_on_standard_output = option
        if name is None or str(name) == "-":
            continue
        path = Path(name)
        check_writable(path)
        is_file = not path.exists() or path.is_file()
        if content and is_file:
            check_suffix(option, path, content)
        if content in _NEEDS:
            require(*_NEEDS[content])
        if path.suffix.lower() in SUFFIXES["Parquet"] or content == "Parquet":
            require("pyarrow", "Parquet")
        other = taken.get(path.resolve())
        if other is not None and is_file:
            raise OutputError(f"{option} {path} would overwrite {other}", "give every file a name of its own")
        taken[path.resolve()] = option


def check_suffix(option: str, path: Path, content: str) -> None:
    """Refuse a name with the suffix of another kind of output.

    Parameters
    ----------
    option
        The option that gave it, for the message.
    path
        The name.
    content
        A key of `SUFFIXES`.

    Raises
    ------
    OutputError
        With the suffixes that are right.
    """
    allowed = SUFFIXES[content]
    suffix = path.suffix
    if content in _DECIDED:
        is_wrong = suffix not in allowed
    else:
        is_wrong = suffix.lower() not in allowed and _SUFFIX.fullmatch(suffix) is not None
    if is_wrong:
        noun = _NOUNS.get(content, f"{content} file")
        known = f"{', '.join(allowed[:-1])} or {allowed[-1]}" if len(allowed) > 1 else allowed[0]
        raise OutputError(f"{option} {path}: no {noun} has the suffix {suffix or 'nothing'!r}", f"use {known}")
