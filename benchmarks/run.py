"""CPU time an event and extra peak memory of sseam beside a floor, httpx-sse and the vendors' SDKs.

    pip install "sseam[bench]"
    python benchmarks/run.py             # everything, some minutes
    python benchmarks/run.py --quick     # small sizes, two chunkings, seconds: does it run, is it about right
    python benchmarks/run.py --check     # exit code 1 if a target of TARGETS is missed
    python benchmarks/run.py --protocol openai-chat --workload W1,W3 --chunking event --contestant floor,sseam

W1 is text of 2,000 deltas; W2 eight parallel tools with 2,000 fragments; W3 one argument of 2 MB in 100,000 fragments;
W4 thinking, text and tools; W5 a stream of 12 events. All figures of a protocol come from one interleaved run: each
round measures every contestant on every workload and chunking, on the same chunk objects, each after a garbage
collection and with the collector on. A figure is the median of its rounds, in process CPU time. Before the first round
every contestant must give the right text and arguments. Peak memory comes from a pass of its own, as tracing slows the
rest.

SDKs read W3 shortened to 5,000 fragments, as most of them are quadratic there, which makes their ratio a lower bound;
--slow gives them all of it (minutes for each). An SDK's figure includes its reading of the response, but no request
(google-genai: one mocked request a stream).
"""

import argparse
import gc
import json
import platform
import statistics
import sys
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from contestants import NAMES, contestants, versions
from workloads import CHUNKINGS, ENCODERS, SIZES, build, cut

QUICK_SIZES = {"W1": 200, "W2": 200, "W3": 500, "W4": 200, "W5": 12}
QUICK_CHUNKINGS = ("event", "64")
ROUNDS, QUICK_ROUNDS = 15, 3
RARE = 3  # what takes long (an SDK, a long stream) is measured in every third round
SDK_W3_SIZE = 5_000
LOOP_EVENTS = 500  # a shorter stream is read several times between two looks at the clock
RATIOS = ("sseam/floor", "SDK/sseam", "httpx-sse/sseam")


class Cell(NamedTuple):
    """One thing to measure; `size` counts as in `SIZES`."""

    workload: str
    size: int
    chunking: str
    contestant: str


class Figure(NamedTuple):
    """A ratio that a target may be held against."""

    measure: str
    protocol: str
    workload: str
    chunking: str
    value: float


class Target(NamedTuple):
    """Limits for every figure of a measure; an empty field stands for all protocols, workloads or chunkings."""

    measure: str
    least: float
    most: float
    protocol: str = ""
    workloads: str = ""
    chunking: str = ""

    def covers(self, figure: Figure) -> bool:
        """Whether the target speaks of this figure."""
        place = (self.protocol or figure.protocol, self.chunking or figure.chunking)
        fits = place == (figure.protocol, figure.chunking) and figure.workload in (self.workloads or figure.workload)
        return fits and self.measure == figure.measure


INFINITE = float("inf")
TARGETS = (
    Target("sseam/floor", 0, 2.0),
    Target("httpx-sse/sseam", 1, INFINITE, "anthropic-messages", chunking="event"),
    Target("SDK/sseam", 40, INFINITE, "anthropic-messages", "W1", "event"),
    Target("SDK/sseam", 25, INFINITE, "anthropic-messages", "W2 W3 W4 W5", "event"),
    Target("SDK/sseam", 80, INFINITE, "openai-chat", chunking="event"),
    Target("SDK/sseam", 60, INFINITE, "openai-responses", chunking="event"),
    Target("SDK/sseam", 50, INFINITE, "gemini-generate", chunking="event"),
    Target("W3/W2", 0, 1.3),
    Target("2n/n", 0, 1.3),
    Target("peak/argument", 0, 3.0, chunking="event"),
)


class Run:
    """The streams, contestants and samples of one protocol."""

    def __init__(self, protocol: str, options: argparse.Namespace) -> None:
        self.protocol, self.options = protocol, options
        self.sizes = QUICK_SIZES if options.quick else SIZES
        self.contestants, self.notes = contestants(protocol, options.contestant)
        self.samples: dict[Cell, list[float]] = {cell: [] for cell in self._cells()}
        self.chunks: dict[tuple[str, int, str], list[bytes]] = {}
        self.events: dict[tuple[str, int], int] = {}
        for workload, size in {cell[:2] for cell in self.samples}:
            self._prepare(workload, size)

    def size(self, workload: str, contestant: str) -> int:
        """The size at which a contestant runs a workload in the main table."""
        short = workload == "W3" and contestant == "SDK" and not self.options.slow
        return min(self.sizes[workload], SDK_W3_SIZE) if short else self.sizes[workload]

    def doublings(self) -> Iterator[tuple[str, int]]:
        """Workloads, and the smaller size n of the two at which sseam is compared with itself."""
        for workload, size in (("W1", self.sizes["W1"] * 10), ("W3", self.sizes["W3"] // 2)):
            if workload in self.options.workload and "sseam" in self.contestants:
                yield workload, size

    def _cells(self) -> Iterator[Cell]:
        for chunking in self.options.chunking:
            for workload in self.options.workload:
                yield from (Cell(workload, self.size(workload, name), chunking, name) for name in self.contestants)
            for workload, size in self.doublings():
                yield from (Cell(workload, n, chunking, "sseam") for n in (size, size * 2))

    def _prepare(self, workload: str, size: int) -> None:
        """Build a stream; warm up and check every contestant that reads it."""
        stream = build(self.protocol, workload, size)
        self.events[workload, size] = len(stream.events)
        for chunking in self.options.chunking:
            self.chunks[workload, size, chunking] = cut(stream.events, chunking)
        for cell in self.samples:
            if cell[:2] == (workload, size):
                run, outcome = self.contestants[cell.contestant]
                given = outcome(run(self.chunks[cell[:3]]))
                if given and (given[0] != stream.text or given[1] not in (None, stream.arguments)):
                    raise SystemExit(f"{self.protocol} {cell}: not what the stream holds")

    def measure(self) -> None:
        """All rounds of CPU time."""
        gc.collect()
        gc.freeze()  # streams and modules are no garbage of what is measured
        cells = list(self.samples)
        for number in range(QUICK_ROUNDS if self.options.quick else ROUNDS):
            for cell in cells[:: -1 if number % 2 else 1]:
                rare = cell.contestant == "SDK" or cell.size > self.sizes["W1"]
                if not rare or number % RARE == 0:
                    self.samples[cell].append(self._once(cell))
        gc.unfreeze()

    def _once(self, cell: Cell) -> float:
        run, chunks, events = self.contestants[cell.contestant].run, self.chunks[cell[:3]], self.events[cell[:2]]
        loops = range(max(1, LOOP_EVENTS // events))
        gc.collect()
        start = time.process_time_ns()
        for _ in loops:
            run(chunks)
        return (time.process_time_ns() - start) / (len(loops) * events)

    def nanoseconds(self, workload: str, chunking: str, contestant: str, size: int | None = None) -> float:
        """Median CPU time an event, nan where it was not measured."""
        samples = self.samples.get(Cell(workload, size or self.size(workload, contestant), chunking, contestant))
        return statistics.median(samples) if samples else float("nan")

    def time_figures(self) -> Iterator[Figure]:
        """The ratios between contestants, between workloads and between sizes; nan where a part is missing."""
        for chunking in self.options.chunking:
            for workload in self.options.workload:
                ns = {name: self.nanoseconds(workload, chunking, name) for name in NAMES}
                for measure in RATIOS:
                    upper, lower = measure.split("/")
                    yield Figure(measure, self.protocol, workload, chunking, ns[upper] / ns[lower])
            long, short = (self.nanoseconds(workload, chunking, "sseam") for workload in ("W3", "W2"))
            yield Figure("W3/W2", self.protocol, "W3", chunking, long / short)
            for workload, size in self.doublings():
                once, twice = (self.nanoseconds(workload, chunking, "sseam", n) for n in (size, size * 2))
                yield Figure("2n/n", self.protocol, workload, chunking, twice / once)

    def peak(self, chunking: str, contestant: str) -> float:
        """Peak of what is allocated while W3 is read, the result included, over the size of the argument."""
        size = self.size("W3", contestant)
        run, chunks = self.contestants[contestant].run, self.chunks["W3", size, chunking]
        gc.collect()
        tracemalloc.start()
        run(chunks)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak / (size * 20)

    def print_times(self, figures: list[Figure]) -> None:
        """The main table, and the comparisons of sseam with itself."""
        print(f"\n{self.protocol}: CPU ns an event, median (*: SDK on {SDK_W3_SIZE:,} fragments at most)", *self.notes)
        print(f"{'':17}{''.join(f'{name:>11}' for name in NAMES)} {''.join(f'{name:>17}' for name in RATIOS)}")
        values = {figure[:4]: figure.value for figure in figures}
        for workload in self.options.workload:
            star = " " if self.size(workload, "SDK") == self.sizes[workload] else "*"
            for chunking in self.options.chunking:
                row = "".join(f"{self.nanoseconds(workload, chunking, name):11,.0f}" for name in NAMES) + star
                row += "".join(f"{values[name, self.protocol, workload, chunking]:17.2f}" for name in RATIOS)
                print(f"{workload} {self.sizes[workload]:7,} {chunking:6}{row}".replace("nan", "  -"))
        for figure in figures:
            if figure.measure not in RATIOS and figure.value == figure.value:
                print(f"sseam, {figure.measure} an event, {figure.workload} {figure.chunking}: {figure.value:.2f}")

    def print_memory(self) -> Iterator[Figure]:
        """Extra peak memory on W3; yields sseam's."""
        print(f"{self.protocol}: extra peak memory on W3, in sizes of its argument")
        for chunking in self.options.chunking:
            peaks = {name: self.peak(chunking, name) for name in self.contestants}
            print(f"  {chunking:6}", *(f"{name} {peak:.2f}" for name, peak in peaks.items()), sep="  ")
            if "sseam" in peaks:
                yield Figure("peak/argument", self.protocol, "W3", chunking, peaks["sseam"])


def print_targets(figures: list[Figure]) -> bool:
    """One line a target; False if one is missed, or nothing of sseam was measured."""
    print("\ntargets")
    missed: list[Figure] = []
    for target in TARGETS:
        covered = [figure for figure in figures if target.covers(figure)]
        missed += (failed := [figure for figure in covered if not target.least <= figure.value <= target.most])
        limit = f"at most {target.most}" if target.least == 0 else f"at least {target.least}"
        verdict = f"{len(covered) - len(failed)} of {len(covered)} met" if covered else "not measured"
        print(f"  {target.measure} {limit} {' '.join(filter(None, target[3:])) or 'everywhere'}: {verdict}")
        for figure in failed:
            print(f"    missed: {figure.protocol} {figure.workload} {figure.chunking} {figure.value:.2f}")
    return bool(figures) and not missed


def read_options(argv: list[str]) -> argparse.Namespace:
    """The options; each list is written with commas and is everything if it is not given."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    lists = {"protocol": tuple(ENCODERS), "workload": tuple(SIZES), "chunking": CHUNKINGS, "contestant": NAMES}
    for name, allowed in lists.items():
        parser.add_argument(f"--{name}", metavar="A,B", help=f"some of {', '.join(allowed)}")
    parser.add_argument("--quick", action="store_true", help="small sizes and few rounds")
    parser.add_argument("--slow", action="store_true", help="all of W3 for the SDKs too")
    parser.add_argument("--check", action="store_true", help="exit code 1 if a target is missed")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all figures to a file")
    options = parser.parse_args(argv)
    for name, allowed in lists.items():
        given = getattr(options, name)
        default = QUICK_CHUNKINGS if options.quick and name == "chunking" else allowed
        setattr(options, name, given.split(",") if given else list(default))
        if unknown := set(getattr(options, name)).difference(allowed):
            parser.error(f"--{name}: {', '.join(unknown)} is none of {', '.join(allowed)}")
    return options


def main(argv: list[str]) -> int:
    """Measure and print; 1 if --check was given and a target is missed."""
    options = read_options(argv)
    print(f"Python {platform.python_version()},", ", ".join(f"{name} {text}" for name, text in versions().items()))
    figures: list[Figure] = []
    medians: list[dict[str, object]] = []
    for protocol in options.protocol:
        run = Run(protocol, options)
        run.measure()
        run.print_times(times := list(run.time_figures()))
        figures += (figure for figure in times if figure.value == figure.value)
        if "W3" in options.workload:
            figures += run.print_memory()
        for cell, samples in run.samples.items():
            medians.append({"protocol": protocol, **cell._asdict(), "ns_per_event": statistics.median(samples)})
    met = print_targets(figures)
    if options.json:
        rows = {"medians": medians, "figures": [figure._asdict() for figure in figures]}
        options.json.write_text(json.dumps({"versions": versions(), **rows}, indent=1) + "\n")
    return 1 if options.check and not met else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
