"""Speed of farlink's codecs beside other libraries': the same work, in turn, on the same core.

Usage:  python benches/codecs.py [--rounds 5] [--seconds 0.5] [--quick] [--only TEXT ...]

Prints Markdown tables; writes every run to `out/bench-codecs.json`, from which `make docs` fills docs/validation/codecs.md.
The page keeps its table of a group of which nothing was run (`--only`).
A library that is not installed leaves its cells empty, and stderr says what would help. ISA-L is timed as Debian packages it,
and from its sources: those that `FARLINK_ISAL` names (a git repository, or the folder of an installed one) or git fetches.
`FARLINK_AFF3CT` names a checkout of AFF3CT.

The measure is information bits per CPU second of the process, without set-up. Rounds alternate between the codecs, so that a
slower or busier moment of the machine affects all of them; the tables have the median of the rounds. Every program decodes
everything once before the clock starts and reports errors: a codec that decodes wrongly is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "benches" / "codecs"
WORK = ROOT / "out" / "bench-codecs"
RESULTS = ROOT / "out" / "bench-codecs.json"

sys.path.insert(0, str(ROOT))

from benches import codec_sources  # noqa: E402
from benches.codec_sources import Built  # noqa: E402
from tests.peers import frames  # noqa: E402
from tests.peers.frames import Code  # noqa: E402

FRAME_BITS = 8192
LEVELS = ("portable", "avx2", "avx512-gfni")
PEER_LEVELS = ("avx2", "avx2-gfni", "avx512-gfni")
# Erasure codes that use newer instructions than AVX2 where a machine has them; the others are farlink's peers at AVX2.
BEYOND_AVX2 = ("gfni", "packaged", "rustfs-erasure-codec", "raptorq")


@dataclass(frozen=True)
class ViterbiCase:
    """A code and the noise it is decoded through."""

    name: str
    code: Code
    ebn0_db: float
    is_hard: bool = False
    frames: int = 256


VITERBI = (
    ViterbiCase("K=7 r=1/2 soft", Code(7, ("171", "133")), 4.0),
    ViterbiCase("K=7 r=1/2 hard", Code(7, ("171", "133")), 6.0, is_hard=True),
    ViterbiCase("K=7 r=1/3", Code(7, ("171", "133", "165")), 3.5),
    ViterbiCase("K=4 r=1/2", Code(4, ("15", "17")), 5.0),
    ViterbiCase("K=9 r=1/2", Code(9, ("753", "561")), 3.5),
    ViterbiCase("K=12 r=1/2", Code(12, ("4335", "5723")), 3.0, frames=64),
)
CRATES = (
    "fec",
    "reed-solomon",
    "reed-solomon-simd",
    "reed-solomon-erasure",
    "rustfs-erasure-codec",
    "leopard-codec",
    "raptorq",
)
REED_SOLOMON = {"encode": "encode", "0": "decode, no errors", "8": "decode, 8 errors", "16": "decode, 16 errors"}
GROUPS = ("viterbi", "reed-solomon", "erasure")
TIMED = {
    "viterbi": {"rustc", "gcc", "libfec-dev", "libosmocore-dev", "libvolk2-dev", "fec"},
    "reed-solomon": {"rustc", "gcc", "libfec-dev", "AFF3CT", "fec", "reed-solomon"},
    "erasure": {"rustc", "gcc", "libisal-dev", "ISA-L from source", "klauspost/reedsolomon", "libcm256cc-dev", "zfec"}
    | set(CRATES) - {"fec", "reed-solomon"},
}
PACKAGED_ISAL = Path("/usr/include/isa-l.h")
ERASURE = (("encode", 32, 8, 1400), ("decode", 32, 8, 1400), ("encode", 65, 16, 23), ("decode", 65, 16, 23))


@dataclass(frozen=True)
class Program:
    """A program compiled here: its source, and the Debian package that it needs."""

    source: str
    libraries: tuple[str, ...]
    package: str
    flags: tuple[str, ...] = ()

    def build(self, name: str) -> Path | None:
        """Its path, or None if it does not compile; says on stderr why."""
        source, program = SOURCES / self.source, WORK / name
        compiler = shutil.which("g++" if source.suffix == ".cc" else "gcc")
        newest = max(path.stat().st_mtime for path in SOURCES.glob("*.[ch]*"))
        if program.exists() and program.stat().st_mtime >= newest:
            return program
        if compiler is None:
            print(f"{self.package} is left out: there is no C compiler (apt-get install gcc g++)", file=sys.stderr)
            return None
        command = [compiler, "-O3", "-march=native", *self.flags, "-o", str(program), str(source), *self.libraries]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            wrong = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[-200:])
            print(f"{source.name} is left out: apt-get install {self.package}? ({wrong})", file=sys.stderr)
            return None
        return program


PROGRAMS = {
    "viterbi_libfec": Program("viterbi_libfec.c", ("-lfec",), "libfec-dev"),
    "viterbi_volk": Program("viterbi_volk.c", ("-lvolk",), "libvolk2-dev"),
    "viterbi_osmocore": Program("viterbi_osmocore.c", ("-losmocore",), "libosmocore-dev"),
    "reed_solomon_libfec": Program("reed_solomon_libfec.c", ("-lfec",), "libfec-dev"),
    "erasure_isal": Program("erasure_isal.c", ("-lisal",), "libisal-dev"),
    "erasure_cm256": Program("erasure_cm256.cc", ("-lcm256cc",), "libcm256cc-dev", ("-DUSE_SSSE3",)),
}


@dataclass(frozen=True)
class Run:
    """One program's work on one case."""

    group: str
    case: str
    codec: str
    bits: float
    cpu_s: float
    error_rate: float

    @property
    def mbps(self) -> float:
        return self.bits / self.cpu_s / 1e6


Job = tuple[str, str, str, list[str]]


def build_rust() -> tuple[Path | None, bool]:
    """The program of farlink and other crates, and whether it has the SIMD of the crate `fec`, an unstable feature."""
    command = ["cargo", "build", "--release", "--quiet"]
    target = Path(os.environ.get("CARGO_TARGET_DIR", SOURCES / "rust" / "target"))
    program = target / "release" / "codecs"
    with_simd = {**os.environ, "RUSTC_BOOTSTRAP": "fec"}
    if subprocess.run([*command, "--features", "fec-simd"], cwd=SOURCES / "rust", env=with_simd, check=False).returncode == 0:
        return program, True
    print("the crate fec is timed without SIMD: its feature did not compile", file=sys.stderr)
    if subprocess.run(command, cwd=SOURCES / "rust", check=False).returncode == 0:
        return program, False
    print("farlink and the crates are left out: benches/codecs/rust did not compile", file=sys.stderr)
    return None, False


def levels(names: tuple[str, ...] = LEVELS) -> list[str]:
    """Those levels of SIMD that this machine has."""
    flags = set(re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)[1].split())
    has = {"portable": True, "avx2": {"avx2", "bmi1", "bmi2"} <= flags, "avx2-gfni": {"avx2", "gfni"} <= flags}
    has["avx512-gfni"] = has["avx2"] and {"avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512vbmi", "gfni"} <= flags
    return [level for level in names if has[level]]


def viterbi_jobs(programs: dict[str, Path], rust: Path | None, fec_simd: bool) -> Iterable[Job]:
    """Every decoder that takes the code of each case."""
    for case in VITERBI:
        file = WORK / ("".join(c if c.isalnum() else "-" for c in case.name) + ".frames")
        frames.noisy(file, case.code, bits=FRAME_BITS, count=case.frames, ebn0_db=case.ebn0_db, is_hard=case.is_hard)
        shape = (len(case.code.generators), case.code.constraint_length)
        peers = [
            ("libfec", "viterbi_libfec", shape in {(2, 7), (2, 9)}),
            ("VOLK", "viterbi_volk", shape == (2, 7)),
            ("libosmocore", "viterbi_osmocore", case.code.constraint_length <= 8),
        ]
        for codec, program, can in peers:
            if can and program in programs:
                yield "viterbi", case.name, codec, [str(programs[program]), str(file)]
        if rust:
            tail = ["hard"] if case.is_hard else []
            stream = [(f"farlink stream, {level}", f"farlink-stream:{level}") for level in levels()]
            simd = [("fec, SIMD", "fec-simd")] if fec_simd else []
            for codec, argument in [("fec", "fec"), *simd, *farlink(), *stream]:
                yield "viterbi", case.name, codec, [str(rust), "viterbi", argument, str(file), "SECONDS", *tail]


def reed_solomon_jobs(programs: dict[str, Path], rust: Path | None) -> Iterable[Job]:
    for task, name in REED_SOLOMON.items():
        if "reed_solomon_libfec" in programs:
            for codec, code in (("libfec, CCSDS", "ccsds"), ("libfec, general", "char")):
                yield "reed-solomon", name, codec, [str(programs["reed_solomon_libfec"]), code, task]
        if "reed_solomon_aff3ct" in programs:
            yield "reed-solomon", name, "AFF3CT", [str(programs["reed_solomon_aff3ct"]), task]
        for codec, argument in [("fec", "fec"), ("reed-solomon", "reed-solomon"), *farlink()] if rust else []:
            yield "reed-solomon", name, codec, [str(rust), "reed-solomon", argument, task]


def erasure_jobs(programs: dict[str, Path], rust: Path | None, isal: Built | None, klauspost: Built | None) -> Iterable[Job]:
    crates = ["reed-solomon-simd", "reed-solomon-erasure", "rustfs-erasure-codec", "leopard-codec", "raptorq"]
    for task, k, m, length in ERASURE:
        name = f"{task} k={k} m={m} x {length}"
        shape = [task, str(k), str(m), str(length)]
        padded = [*shape, "SECONDS", "64"]
        isals = [(f"ISA-L {codec_sources.isal_version(PACKAGED_ISAL)}, packaged", "erasure_isal", "dispatched")]
        if isal:
            isals += [(f"ISA-L {isal.version}, {level}", "erasure_isal_source", level) for level in levels(PEER_LEVELS)]
        for codec, program, level in isals:
            if program in programs:
                yield "erasure", name, codec, [str(programs[program]), level, *shape]
                if length < 64:
                    yield "erasure", name, f"{codec}, padded", [str(programs[program]), level, *padded]
        if klauspost:
            # It has no GFNI for more than ten blocks of fewer than 256 bytes.
            for level in levels(PEER_LEVELS) if length >= 256 else ["avx2"]:
                yield "erasure", name, f"klauspost, {level}", [str(klauspost.program), level, *shape]
                yield "erasure", name, f"klauspost, {level}, padded", [str(klauspost.program), level, *padded]
        if "erasure_cm256" in programs:
            yield "erasure", name, "cm256cc", [str(programs["erasure_cm256"]), *shape]
        if version("zfec"):
            yield "erasure", name, "zfec", [sys.executable, str(SOURCES / "erasure_zfec.py"), *shape]
        for codec, argument in [*((crate, crate) for crate in crates), *farlink()] if rust else []:
            yield "erasure", name, codec, [str(rust), "erasure", argument, *shape]


def farlink() -> list[tuple[str, str]]:
    return [(f"farlink, {level}", f"farlink:{level}") for level in levels()]


def run(job: Job, seconds: float) -> Run | None:
    """One run, or None if the program refuses or decodes wrongly; says on stderr which."""
    group, case, codec, command = job
    if "SECONDS" not in command:
        command = [*command, "SECONDS"]
    command = [str(seconds) if word == "SECONDS" else word for word in command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"{codec}, {case}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    made = Run(group, case, codec, **json.loads(done.stdout))
    if made.error_rate > (1e-3 if group == "viterbi" else 0):
        print(f"{codec}, {case}: left out, it decodes wrongly ({made.error_rate:g})", file=sys.stderr)
        return None
    return made


def version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def versions(built: dict[str, Built | None]) -> dict[str, str]:
    """Versions of what was timed, of libraries that were built from source too."""
    found = {"rustc": _printed(["rustc", "--version"]).removeprefix("rustc "), "gcc": _printed(["gcc", "-dumpfullversion"])}
    for package in sorted({program.package for program in PROGRAMS.values()}):
        found[package] = _printed(["dpkg-query", "-W", "-f", "${Version}", package])
    lock = (SOURCES / "rust" / "Cargo.lock").read_text() if (SOURCES / "rust" / "Cargo.lock").exists() else ""
    for crate, number in re.findall(r'name = "([^"]+)"\nversion = "([^"]+)"', lock):
        if crate in CRATES:
            found[crate] = number
    found["zfec"] = version("zfec") or ""
    found |= {name: one.version for name, one in built.items() if one}
    return {name: number for name, number in found.items() if number}


def _printed(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except FileNotFoundError:
        return ""


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":")[1].strip() for line in lines if "model name" in line), platform.processor())


def medians(runs: Iterable[Run], group: str) -> dict[str, dict[str, float]]:
    """Median Mb/s by codec and case, in the order of the runs."""
    rates: dict[str, dict[str, list[float]]] = {}
    for one in runs:
        if one.group == group:
            rates.setdefault(one.codec, {}).setdefault(one.case, []).append(one.mbps)
    return {codec: {case: median(all_) for case, all_ in cases.items()} for codec, cases in rates.items()}


def table(runs: list[Run], group: str) -> str:
    """Markdown: a row per codec, a column per case; below, the ratios of farlink's levels to the peers."""
    unit, scale = ("GB/s", 8000) if group == "erasure" else ("Mb/s", 1)
    rows = medians(runs, group)
    cases = list(dict.fromkeys(one.case for one in runs if one.group == group))
    lines = [f"| {unit} | " + " | ".join(cases) + " |", "|---|" + "--:|" * len(cases)]

    def row(name: str, cells: list[str]) -> None:
        lines.append(f"| {name} | " + " | ".join(cells) + " |")

    for codec, rates in rows.items():
        row(codec, [f"{rates[case] / scale:.3g}" if case in rates else "–" for case in cases])
    peers = {codec: rates for codec, rates in rows.items() if not codec.startswith("farlink")}
    first = {"viterbi": "libfec", "reed-solomon": "libfec, CCSDS"}.get(group, "")
    for codec, rates in rows.items():
        if codec in peers:
            continue
        references = [(first, peers[first])] if first in peers else []
        if group == "erasure" and "avx2" in codec:
            references.append(("the fastest peer with AVX2", fastest(peers, cases, without=BEYOND_AVX2)))
        references.append(("the fastest peer", fastest(peers, cases)))
        for name, reference in references:
            times = [f"{rates[case] / reference[case]:.3g}" if case in rates and reference.get(case) else "–" for case in cases]
            row(f"{codec}: times {name}", times)
    return "\n".join(lines)


def fastest(peers: dict[str, dict[str, float]], cases: list[str], without: tuple[str, ...] = ()) -> dict[str, float]:
    """The best rate of each case among the codecs whose names contain none of `without`."""
    rates = [one for codec, one in peers.items() if not any(text in codec for text in without)]
    return {case: max((one[case] for one in rates if case in one), default=0) for case in cases}


def summary(report: dict[str, Any], group: str) -> str:
    """The machine, the number of rounds, and the versions of what was timed in a group."""
    machine = report["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items() if name in TIMED[group])
    return (
        f"{machine['processor']}, one core of {machine['cores']}, load {machine['load_average']:.1f} at the start; "
        f"medians of {report['rounds']} alternating rounds of {report['seconds']:g} CPU s.\n{versions}."
    )


def page_with_tables(page: str, report: dict[str, Any]) -> str:
    """The page with what stands between `<!-- table GROUP -->` and `<!-- end -->` replaced, for each group of a report."""
    runs = [Run(**one) for one in report["runs"]]
    for group in dict.fromkeys(one.group for one in runs):
        begin, end = f"<!-- table {group} -->\n", "<!-- end -->"
        before, rest = page.split(begin, 1)
        page = f"{before}{begin}{table(runs, group)}\n\n{summary(report, group)}\n{rest[rest.index(end) :]}"
    return page


def main() -> None:
    """Run everything in turn; print the tables; write the runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="how often each codec runs each case (default 5)")
    parser.add_argument("--seconds", type=float, default=0.4, help="CPU seconds of a run (default 0.4)")
    parser.add_argument("--quick", action="store_true", help="one short round: does it work at all?")
    parser.add_argument("--only", nargs="*", default=[], metavar="TEXT", help="runs whose group, case or codec contains one")
    options = parser.parse_args()

    rounds, seconds = (1, 0.05) if options.quick else (options.rounds, options.seconds)
    WORK.mkdir(parents=True, exist_ok=True)
    isal, klauspost = codec_sources.isal(WORK), codec_sources.klauspost(SOURCES / "go", WORK)
    aff3ct = codec_sources.aff3ct(WORK)
    from_source = {"erasure_isal_source": Program("erasure_isal.c", isal.flags, "libisal-dev")} if isal else {}
    if aff3ct:
        from_source["reed_solomon_aff3ct"] = Program("reed_solomon_aff3ct.cc", aff3ct.flags, "g++")
    programs = {name: path for name, program in (PROGRAMS | from_source).items() if (path := program.build(name))}
    rust, fec_simd = build_rust()
    if not version("zfec"):
        print("zfec is left out: it is not installed (pip install zfec)", file=sys.stderr)
    erasure = erasure_jobs(programs, rust, isal, klauspost)
    jobs = [*viterbi_jobs(programs, rust, fec_simd), *reed_solomon_jobs(programs, rust), *erasure]
    jobs = [job for job in jobs if not options.only or any(text in " ".join(job[:3]) for text in options.only)]

    begun, load = time.monotonic(), os.getloadavg()[0]
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    runs: list[Run] = []
    for at in range(rounds):
        for job in list(jobs):
            made = run(job, seconds)
            if made is None:
                jobs.remove(job)
            else:
                runs.append(made)
                print(f"{at + 1}/{rounds} {made.case}, {made.codec}: {made.mbps:.4g} Mb/s", file=sys.stderr)

    built = {"ISA-L from source": isal, "klauspost/reedsolomon": klauspost, "AFF3CT": aff3ct}
    about = {"processor": processor(), "cores": os.cpu_count(), "load_average": load, "versions": versions(built)}
    report = {"machine": about, "rounds": rounds, "seconds": seconds, "runs": [asdict(one) for one in runs]}
    print(f"{time.monotonic() - begun:.0f} s in all.")
    for group in GROUPS:
        if any(one.group == group for one in runs):
            print(f"\n{summary(report, group)}\n\n{table(runs, group)}")
    RESULTS.write_text(json.dumps(report, indent=1) + "\n")
    print(f"\nEvery run: {RESULTS.relative_to(ROOT)}", file=sys.stderr)


if __name__ == "__main__":
    main()
