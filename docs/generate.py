"""Write the generated parts of the documentation: `make docs`.

- `docs/reference/scenario.md`, every key, from the JSON Schema of the types that run
- `docs/reference/quantities.md`, every column of a result
- `docs/reference/commands.md`, every command and its options
- `docs/validation/coverage.md`, what farlink has of the papers, from the rows in `docs/coverage`
- the table in `README.md` and the picture below it, from `scenarios/geo-tcp.toml`
- the picture of `scenarios/compare-geo.toml`
- the tables of `docs/validation/codecs.md`, if `make bench` has left `out/bench-codecs.json`
- what the commands of the guide print: in the order of the page and in an empty folder, each block of a file (```toml NAME) is
  written, a second one of that name added to it, and each ```console block is run
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from farlink import _core, papers, units

ROOT = Path(__file__).resolve().parent.parent
SCENARIO = "scenarios/geo-tcp.toml"
GUIDES = [
    ROOT / "docs" / "guides" / name
    for name in (
        "first-scenario.md",
        "coding.md",
        "transports.md",
        "optical-links.md",
        "call-drops.md",
        "bundles.md",
        "bundle-ship.md",
        "tuning.md",
        "studies.md",
    )
]
CODECS = ROOT / "docs" / "validation" / "codecs.md"
MEASURED = ROOT / "out" / "bench-codecs.json"
PICTURES = ROOT / "docs" / "pictures"
# Each picture shows the goodput of the scenario of that name.
SCENARIO_PICTURES = ("geo-tcp", "compare-geo")

Schema = dict[str, Any]

# Sections of the reference: heading, place in the schema, where it stands in a scenario. A key that holds another section's
# table points there.
SECTIONS = (
    ("The scenario", "", "", "Keys at the top of the file."),
    ("What is measured", "Measure", "measure", "Table `[measure]`."),
    ("What it may cost", "Limits", "limits", "Table `[limits]`. [How it is estimated](../design/estimate.md)."),
    ("The stopping rule", "Precision", "precision", "Table `precision`, instead of `runs`."),
    (
        "The fluid engine",
        "Fluid",
        "fluid",
        'Table `[fluid]`, for `engines = ["fluid"]`; others pass over it. [How it works](../concepts/fluid-engine.md).',
    ),
    ("A hop", "Hop", "link", "Table `[link]`, a path of one hop, or `[hop.NAME]` for each name of `path`."),
    ("The way back", "Return", "link.return", "Table `[link.return]` or `[hop.NAME.return]`."),
    (
        "A policer",
        "PolicerConfig",
        "link.policer",
        "Table `policer` of a hop. [Where it stands](../concepts/packet-engine.md#what-a-hop-does).",
    ),
    (
        "Gateways at the ends of a hop",
        "Gateway",
        "hop.NAME.gateway",
        "Table `[hop.NAME.gateway]` of a hop that is neither the first nor the last of `path`; `gateway = true` takes all "
        "defaults. "
        "[What they promise](../design/gateways.md).",
    ),
    (
        "Service by weight",
        "Weights",
        "link.service",
        "Table `service` of a hop or of its way back, instead of a name. [Who waits, who is dropped](../design/classes.md).",
    ),
    ("A rate that varies", "RateKind", "link.rate_bps", "Instead of a number for `rate_bps`, forward or back."),
    ("A delay that varies", "DelayKind", "link.delay_s", "Instead of a number for `delay_s`, forward or back."),
    ("A channel", "ChannelKind", "link.channel", "Table `channel` of a hop or of its way back. A frame is a packet on a link."),
    (
        "A bundle of lines",
        "BundleConfig",
        "link.bundle",
        "Table `[link.bundle]` or `[hop.NAME.bundle]`. [How it works](../design/multilink.md).",
    ),
    ("Lines of one kind", "Member", "link.bundle.members", "Each table of `members` of a bundle."),
    (
        "What the return direction negotiates",
        "BundleReturn",
        "link.bundle.return",
        "Table `return` of a bundle.",
    ),
    ("Repetition on a line", "LinkArq", "link.bundle.arq", "Table `arq` of a bundle."),
    ("A line that changes", "ArqChange", "link.bundle.arq.changes", "Each table of `changes` of the `arq` of a bundle."),
    ("Calls that drop", "CallsConfig", "link.bundle.calls", "Table `[link.bundle.calls]`."),
    ("Set-up by PPP", "PppConfig", "link.bundle.calls.ppp", "Table `ppp` of the calls of a bundle."),
    ("Echoes of PPP", "EchoConfig", "link.bundle.calls.echo", "Table `echo` of the calls of a bundle."),
    (
        "A bundle of IP paths",
        "Paths",
        "link.paths",
        "Table `[link.paths]` or `[hop.NAME.paths]`. [How it works](../design/ip-paths.md#in-the-simulator).",
    ),
    ("A path of a bundle", "PathMember", "link.paths.members", "Each table of `members` of a bundle of IP paths."),
    ("The way back of a path", "PathReturn", "link.paths.members.return", "Table `return` of a path of a bundle."),
    ("A path unplugged", "Unplugged", "link.paths.members.unplugged", "Each table of `unplugged` of a path of a bundle."),
    ("A class over paths", "PathClass", "link.paths.classes", "Each table of `classes` of a bundle of IP paths."),
    ("Limits of a bundle of IP paths", "PathLimits", "link.paths.limits", "Table `[link.paths.limits]`."),
    (
        "A time at random",
        "RandomDuration",
        "link.channel.up",
        'Table `up` or `redial` of a channel of `kind = "call-drops"`, or of the calls of a bundle.',
    ),
    ("A receiver of light", "Receiver", "link.channel.receiver", 'Table `receiver` of a channel of `kind = "fading"`.'),
    (
        "Modulation and coding",
        "Coding",
        "link.coding",
        'Table `[link.coding]`, `[link.return.coding]`, or those of `[hop.NAME]`; also a channel, `kind = "coded"`.',
    ),
    ("A code", "CodeKind", "link.coding.code", "Table `code` of a coding, or `outer`, `inner` or `over` of another code."),
    ("How error events are collected", "Effort", "link.coding.effort", "Table `effort` of a coding."),
    (
        "A transport",
        "TransportConfig",
        "transport.NAME",
        "Table `[transport.NAME]`. Headers and payload of a packet have at most "
        "65,535 bytes together; a TCP window holds less than 2 GiB.",
    ),
    ("The retransmission timer", "RtoConfig", "transport.NAME.rto", "Table `[transport.NAME.rto]` of any transport but UDP."),
    ("CUBIC", "CubicConfig", "transport.NAME.cubic", 'Table `[transport.NAME.cubic]`, with `congestion_control = "cubic"`.'),
    ("Hybla", "HyblaConfig", "transport.NAME.hybla", 'Table `[transport.NAME.hybla]`, with `congestion_control = "hybla"`.'),
    ("Vegas", "VegasConfig", "transport.NAME.vegas", 'Table `[transport.NAME.vegas]`, with `congestion_control = "vegas"`.'),
    ("BBR", "BbrConfig", "transport.NAME.bbr", 'Table `[transport.NAME.bbr]`, with `congestion_control = "bbr"` or `"bbr3"`.'),
    ("A code around each packet", "Correction", "transport.NAME.correction", "Table `[transport.NAME.correction]`."),
    (
        "Incremental redundancy",
        "Incremental",
        "transport.NAME.incremental",
        "Table `[transport.NAME.incremental]` of an ARQ transport.",
    ),
    (
        "Length of frames that follows the bit error rate",
        "AdaptiveLength",
        "transport.NAME.adaptive_length",
        "Table `[transport.NAME.adaptive_length]` of an ARQ transport. [How the rules compare](../design/adaptive-length.md).",
    ),
    (
        "Changes of the mode",
        "ModeChange",
        "transport.NAME.mode_changes[]",
        "Entries of `mode_changes` of an AeroTP transport.",
    ),
    (
        "Parity that follows the bit error rate",
        "AdaptiveFec",
        "transport.NAME.adaptive_fec",
        'Table `[transport.NAME.adaptive_fec]` of an AeroTP transport of `mode = "quasi-reliable"`.',
    ),
    (
        "Repair packets",
        "Erasure",
        "transport.NAME.erasure",
        'Table `[transport.NAME.erasure]` of an AeroTP transport of `mode = "quasi-reliable"`.',
    ),
    (
        "Length of AeroTP packets that follows the bit error rate",
        "PacketLength",
        "transport.NAME.adaptive_length",
        "Table `[transport.NAME.adaptive_length]` of an AeroTP transport.",
    ),
    (
        "Repair symbols instead of repetition",
        "Coded",
        "transport.NAME.coded",
        "Table `[transport.NAME.coded]` of an AeroTP transport. [How it works](../design/aerotp-coded.md).",
    ),
    ("A flow", "Flow", "flow.NAME", "Table `[flow.NAME]`."),
    (
        "A restart",
        "Restart",
        "flow.NAME.restart",
        "Table `restart` of a flow, or `crash` of gateways. [What comes of it](../design/gateways.md).",
    ),
    ("Traffic", "TrafficKind", "flow.NAME.traffic", "Table `traffic` of a flow."),
    ("One transfer", "Transfer", "flow.NAME.traffic.list[]", 'An entry of the list of `kind = "transfers"`.'),
)
FILE_OR_COMMANDS = re.compile(r"^```(?:console|\w+ (?P<file>\S+))\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
_BOUNDS = {"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"}
HEADING = {place: heading for heading, place, _, _ in SECTIONS}

GRID = """## The grid

`[grid]` maps dotted paths of the keys above to lists of values; every combination of them is run, the last path varying
fastest. Each `[[grid_zip]]` varies its keys together: the first values of each, then the second values of each. A grid has at
most 100,000 points.

```toml
[grid]
"link.channel.ber" = [1e-8, 1e-7, 1e-6]
"flow.bulk.transport" = ["reno", "sack"]
```
"""

OF_PATHS = (
    ("goodput_bps", "data of users that arrived over the path forward, over `duration_s`; what is sent again and copies count"),
    ("goodput_fraction", "the same over the mean rate of the path"),
    ("delivered_bytes", "the same in bytes"),
    ("delivered_packets", "datagrams that arrived, acknowledgements and probes included"),
    ("sent_bytes", "bytes of all datagrams that were sent, headers of seal, UDP and IP included"),
    ("overhead_bytes", "those of them that are no data of users"),
    ("loss_fraction", "share of the datagrams that were lost, dropped by the path's queue, or sent while it was unplugged"),
    ("arrival_delay_mean_s", "mean time of a datagram in the path, from sending to arrival"),
    ("back_channel_fraction", "bytes of datagrams sent on the way back, over what the path can carry there"),
    ("lines_up_fraction", "share of the time that the near end took the path for up"),
    ("call_drops", "how often the near end found it down"),
    ("duration_s", "measured time"),
)

ROW_KEYS = (
    ("engine", "which engine; `packet`"),
    ("flow", "name of the flow; `NAME.1`, `NAME.2`, ... if its `count` is above 1 and there are at most 256 such flows; "
     "transfers have one row for all of a name; `all` for all flows together; [paths](#rows-of-paths) have rows of their own"),
    ("transport", "name of the flow's transport; `mixed` for several"),
    ("run", "number of the run at its grid point, from 0"),
    ("seed", "seed of the scenario"),
    ("*grid paths*", "a column per path of the grid, with its value"),
    (
        "status",
        "`ok`; `unfinished`: traffic that has an end was still arriving when the run was over; `stalled`: nothing arrived for "
        "longer than a round trip and a timeout, or nothing more can arrive ([rule](../concepts/packet-engine.md#status))",
    ),
    ("reason", "what is missing, since when, and why; empty if `ok`, but with the engine `model` its equation"),
)  # fmt: skip


def main() -> None:
    """Write all of it."""
    for path, text in pages().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))
    if MEASURED.exists():
        codecs = _program("bench_codecs", ROOT / "benches" / "codecs.py")
        CODECS.write_text(codecs.page_with_tables(CODECS.read_text(encoding="utf-8"), json.loads(MEASURED.read_text())))
        print(CODECS.relative_to(ROOT))
    PICTURES.mkdir(exist_ok=True)
    for name in SCENARIO_PICTURES:
        path = PICTURES / f"{name}.svg"
        path.write_text(picture(name), encoding="utf-8")
        print(path.relative_to(ROOT))


def _program(name: str, path: Path) -> Any:
    """A program that is in no package, as a module."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def pages() -> dict[Path, str]:
    """Every page that is generated, and its text now."""
    return {path: made(path) for path in GENERATED}


def made(path: Path) -> str:
    """The text of one of the generated pages now."""
    return GENERATED[path](path)


def scenario_page() -> str:
    """The reference of scenarios."""
    schema = json.loads(_core.schema())
    lines = [
        "<!-- Written by docs/generate.py (`make docs`) from `farlink schema`. -->",
        "# Scenario reference",
        "",
        _wrapped(
            "Every key of a scenario file. `NAME` is a name of your choice. A key that is not here is refused, and so is "
            "a value outside what is allowed. Keys carry their unit; whole numbers may be written 1000, 1_000 or 1e3. A "
            "default of – means that the key may be left out, with the effect that the meaning gives. What stands for "
            "`link` stands for each `hop.NAME` too."
        ),
        "",
    ]
    for heading, place, path, where in SECTIONS:
        node = schema["$defs"][place] if place else schema
        lines += [f"## {heading}", "", where, ""]
        if "oneOf" in node:
            for kind in node["oneOf"]:
                tag, name = _tag(kind)
                lines += [f'### `{tag} = "{name}"`', "", kind["description"].strip(), ""]
                lines += [*_table(schema, kind, path), ""]
        else:
            lines += [*_table(schema, node, path), ""]
    return "\n".join(lines) + "\n" + GRID


def _tag(kind: Schema) -> tuple[str, str]:
    """The key that selects one of several tables, and its value."""
    return next((key, value["const"]) for key, value in kind["properties"].items() if "const" in value)


def _table(schema: Schema, node: Schema, path: str) -> Iterator[str]:
    keys = {key: value for key, value in node["properties"].items() if "const" not in value}
    if not keys:
        yield "No further keys."
        return
    yield "| key | type | unit | allowed | default | meaning |"
    yield "|---|---|---|---|---|---|"
    for key, value in keys.items():
        kind, allowed, more = _type(schema, value)
        unit = "B" if key == "bytes" else units.unit_of(key)
        unit = unit if kind.startswith("number") else ""
        default = "required" if key in node.get("required", ()) else _default(value)
        if "section" in more:
            default = default if default == "required" else "–"
        meaning = " ".join(value.get("description", "").split())
        meaning += f" See [{more['section']}](#{_anchor(more['section'])})." if "section" in more else ""
        meaning += "".join(f"<br>`{name}`: {_sentence(words)}" for name, words in more.get("choices", {}).items())
        full = f"{path}.{key}" if path else key
        yield f"| `{full}` | {kind} | {unit} | {allowed} | {default} | {meaning} |"


def _type(schema: Schema, value: Schema) -> tuple[str, str, dict[str, Any]]:
    """Type, allowed values, and details: choices with descriptions, or the section of a table."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        node = schema["$defs"][name]
        if node.get("type") == "number":
            allowed = node["description"].removeprefix("Allowed: ").rstrip(".")
            return "number", _bounded(allowed, {**node, **value}) if _BOUNDS & value.keys() else allowed, {}
        if name in HEADING:
            return "table", "", {"section": HEADING[name]}
        if "enum" in node:
            return "text", ", ".join(f"`{one}`" for one in node["enum"]), {}
        if "oneOf" in node:
            choices = {one["const"]: one["description"] for one in node["oneOf"]}
            return "text", ", ".join(f"`{one}`" for one in choices), {"choices": choices}
        if name != "Grid":
            msg = f"{name} is a table without a section: add one to SECTIONS"
            raise LookupError(msg)
        return "table", "", {"section": "The grid"}
    if "const" in value:
        return "text", f'`"{value["const"]}"`', {}
    if "enum" in value:
        return "text", ", ".join(f"`{one}`" for one in value["enum"]), {}
    if "anyOf" in value:
        bounds = {name: value[name] for name in _BOUNDS & value.keys()}
        return _any_of(schema, [{**one, **bounds} for one in value["anyOf"] if one.get("type") != "null"])
    if "additionalProperties" in value:
        kind, allowed, more = _type(schema, value["additionalProperties"])
        return f"a {kind} per name", allowed, more
    words = {"string": "text", "boolean": "switch", "array": "list", "number": "number"}
    types = value["type"] if isinstance(value["type"], list) else [value["type"]]
    kind = words[next(one for one in types if one != "null")]
    if kind == "switch":
        return kind, "`true`, `false`", {}
    if kind == "list":
        inner, allowed, more = _type(schema, value["items"])
        return f"list of {inner}s" if inner in ("number", "table", "list") else f"list ({inner})", allowed, more
    return kind, "", {}


def _bounded(allowed: str, node: Schema) -> str:
    """Allowed range of a number whose key has its own bounds, in the words of its type."""
    noun = re.split(r" (?:from|above|between) ", allowed)[0]
    least, most = (node.get(f"exclusive{name}", node.get(name.lower())) for name in ("Minimum", "Maximum"))
    below, above = "exclusiveMinimum" in node, "exclusiveMaximum" in node
    if above:
        return f"{noun} {'above' if below else 'from'} {least:g} {'and' if below else 'to'} {most:g}, {most:g} excluded"
    return f"{noun} {'above' if below else 'from'} {least:g} {'and at most' if below else 'to'} {_number(most)}"


def _number(value: float) -> str:
    """A bound as one writes it: 65,535, 1e6, 0.9999."""
    short = f"{value:g}".replace("e+0", "e")
    return short if float(short) == value else f"{value:,}"


def _any_of(schema: Schema, options: list[Schema]) -> tuple[str, str, dict[str, Any]]:
    found = [_type(schema, option) for option in options]
    found.sort(key=lambda one: one[0] != "number")
    kinds = " or ".join(dict.fromkeys(kind for kind, _, _ in found))
    allowed = " or ".join(allowed for _, allowed, _ in found if allowed)
    return kinds, allowed, {key: value for _, _, more in found for key, value in more.items()}


def _default(value: Schema) -> str:
    default = value.get("default")
    if default is None or isinstance(default, dict):
        return "–"
    if isinstance(default, bool | str):
        return f"`{json.dumps(default)}`" if default != "" else "–"
    if isinstance(default, list):
        return f"`{json.dumps(default)}`"
    return f"{default:g}".replace("e+0", "e")


def _sentence(words: str) -> str:
    words = " ".join(words.split()).rstrip(".")
    return words[:1].lower() + words[1:] if words[1:2] in " abcdefghijklmnopqrstuvwxyz" else words


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 128, break_on_hyphens=False)


def _anchor(heading: str) -> str:
    return heading.lower().replace(" ", "-")


def quantities_page() -> str:
    """The reference of results."""
    lines = [
        "<!-- Written by docs/generate.py (`make docs`) from the engine's list of quantities. -->",
        "# Result reference",
        "",
        _wrapped(
            "A result has a row per grid point, flow and run (`result.rows`, `--csv`, `--parquet`, `rows` of `--json`). "
            "What cannot be known is null: `None` in Python, empty in CSV, – in tables."
        ),
        "",
        "## Which row",
        "",
        "| column | meaning |",
        "|---|---|",
        *(f"| {name if name.startswith('*') else f'`{name}`'} | {meaning} |" for name, meaning in ROW_KEYS),
        "",
        "## What was measured",
        "",
        "| column | unit | meaning | null if |",
        "|---|---|---|---|",
    ]
    for name, unit, meaning, unknown in _core.quantities():
        lines.append(f"| `{name}` | {unit or '1'} | {meaning} | {unknown or 'never'} |")
    lines += [
        "",
        "## Rows of paths",
        "",
        _wrapped(
            "A bundle of IP paths (`[link.paths]`) has a row for each path behind that of `all`: `flow` is `HOP.paths.NAME`, "
            "`transport` is `path`. What is not below is null there. Counts begin at the end of the warm-up."
        ),
        "",
        "| column | meaning in the row of a path |",
        "|---|---|",
        *(f"| `{name}` | {meaning} |" for name, meaning in OF_PATHS),
        "",
        "## The summary",
        "",
        _wrapped(
            "`result.summary()` and `summary` of `--json` have an entry per grid point and flow: the keys of a row less "
            '`run`, `seed`, `status` and `reason`, the number of `runs`, and each quantity as `{"mean": x, "ci95": '
            "half_width}`. The mean is over the runs in which the quantity is known; the half-width is that of the 95 % "
            "interval by Student's t, null for a single run. Where `precision.level` is not 0.95, each quantity has also "
            "`half_width`, that of the interval at this level, which the table, the figures and the report show. "
            "Stalled runs count in the means like all others."
        ),
        "",
    ]
    return "\n".join(lines)


def coverage_page() -> str:
    """What farlink has of the papers."""
    for name in ("paper_places", "paper_coverage"):
        program = _program(name, ROOT / "docs" / f"{name}.py")
    text: str = program.page([program.load(program.ROWS / f"{key}.toml") for key in papers.PAPERS], HEADING)
    return text


def commands_page() -> str:
    """The reference of commands."""
    text: str = _program("command_pages", ROOT / "docs" / "command_pages.py").page()
    return text


def with_table(readme: str) -> str:
    """The README with what its command prints today: the title, the heading and the rows from 1e-7 to 1e-5."""
    printed = _printed(f"farlink run {SCENARIO}", ROOT)
    head, *groups, foot = re.split(r"\n\s*\n", printed.strip())
    table, first = groups[0].rsplit("─\n", 1)
    chosen = [group for group in (first, *groups[1:]) if group.split()[0] in ("1e-7", "1e-6", "1e-5")]
    shown = "\n\n".join([head, f"{table}─\n ...\n" + "\n\n".join(chosen) + "\n ...", foot])
    return re.sub(
        r"(<!-- output -->\n```\n).*?(\n```\n<!-- end -->)", lambda found: found[1] + shown + found[2], readme, flags=re.DOTALL
    )


def with_output(guide: str) -> str:
    """The guide with what its commands print today."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def replay(block: re.Match[str]) -> str:
            if block["file"]:
                with (folder / block["file"]).open("a", encoding="utf-8") as file:
                    file.write(block["text"])
                return block[0]
            commands = [line for line in block["text"].splitlines() if line.startswith("$ ")]
            return "```console\n" + "\n".join(f"{line}\n{_printed(line[2:], folder)}" for line in commands) + "```"

        return FILE_OR_COMMANDS.sub(replay, guide)


def _printed(command: str, folder: Path) -> str:
    """Output and messages of a command, as a pipe sees them; of several programs in a row, the output before the messages.

    A pipe between programs passes output on at a time of its own, so that the messages of the first one would stand before or
    behind it by chance.
    """
    scripts = str(Path(sys.executable).parent)
    environment = {
        **os.environ,
        "PATH": os.pathsep.join((scripts, os.environ["PATH"])),
        # Not XDG_CACHE_HOME, which is Matplotlib's too: in an empty one it looks for the fonts of the system for seconds.
        "FARLINK_CACHE": os.environ.get("FARLINK_CACHE") or ("" if folder == ROOT else str(folder / ".cache" / "farlink")),
    }
    return run_command(command, folder, environment)


def run_command(command: str, folder: Path, environment: dict[str, str]) -> str:
    """Run a line of a shell; what `_printed` gives."""
    shell = shutil.which("bash") or "sh"
    done = subprocess.run(
        [shell, "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if "|" in command else subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout + (done.stderr or "")


GENERATED: dict[Path, Callable[[Path], str]] = {
    ROOT / "docs" / "reference" / "scenario.md": lambda _: scenario_page(),
    ROOT / "docs" / "reference" / "quantities.md": lambda _: quantities_page(),
    ROOT / "docs" / "reference" / "commands.md": lambda _: commands_page(),
    ROOT / "docs" / "validation" / "coverage.md": lambda _: coverage_page(),
    ROOT / "README.md": lambda readme: with_table(readme.read_text(encoding="utf-8")),
    **dict.fromkeys(GUIDES, lambda guide: with_output(guide.read_text(encoding="utf-8"))),
}


def picture(name: str) -> str:
    """Goodput of each transport of a scenario against what its grid varies, as an SVG file."""
    import farlink
    from farlink.plot.style import picture_svg

    return picture_svg(farlink.run(ROOT / "scenarios" / f"{name}.toml").plot(), name)


if __name__ == "__main__":
    main()
