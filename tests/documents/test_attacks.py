"""A document costs what its limits say: in memory, output and time, of us and of its converter."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from llm_kb.files.conversion import Conversions
from tests.attacks.test_git import is_alive, wait_until
from tests.console import PROJECT
from tests.documents.office import PDF

PAGE = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Resources%s/Contents 4 0 R>>"


def make_warning_pdf(pages: int, resources: bytes) -> bytes:
    """Return a PDF that lists one page many times, whose resources are quoted in warnings."""
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[%s]/Count %d>>" % (b"3 0 R " * pages, pages),
        PAGE % resources,
        b"<</Length 2>>stream\nBT\nendstream",
    ]
    numbered = enumerate(objects, 1)
    body = b"".join(b"%d 0 obj\n%s\nendobj\n" % each for each in numbered)
    return b"%PDF-1.7\n" + body + b"trailer\n<</Root 1 0 R>>\nstartxref\n0\n%%EOF"


def make_program(directory: Path, text: str) -> str:
    """Write a program in place of the converter; return its path."""
    program = directory / "python"
    program.write_text(text)
    program.chmod(0o755)
    return str(program)


CONVERT = """
import resource, sys
from llm_kb.files.conversion import ConversionError, Conversions
from tests.documents.office import PDF
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    Conversions(None).convert(PDF, sys.stdin.buffer.read())
except ConversionError as error:
    print(error, file=sys.stderr)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="counts memory in KiB")
@pytest.mark.parametrize(
    "resources", [b"(%s)", b"<</Font(%s)>>", b"<</Font<</F1(%s)>>>>", b"<</XObject(%s)>>"]
)
def test_what_a_converter_prints_does_not_fill_memory(resources: bytes) -> None:
    """Its warnings quote the document, once a page."""
    data = make_warning_pdf(100, resources % (b"A" * 1_000_000))
    done = subprocess.run(
        [sys.executable, "-c", CONVERT], input=data, capture_output=True, check=True, cwd=PROJECT
    )
    assert int(done.stdout) < 40_000


CHATTY = """#!{python}
import sys
sys.stderr.write("warning " * 2_000_000)
sys.stdout.write("x" * {size})
"""


@pytest.mark.slow
@pytest.mark.parametrize(("size", "reason"), [(20_000_000, ""), (60_000_000, "larger than 20 MB")])
def test_the_text_of_a_converter_is_bounded_by_its_reader(
    size: int, reason: str, tmp_path: Path
) -> None:
    program = make_program(tmp_path, CHATTY.format(python=sys.executable, size=size))
    conversions = Conversions(None, program=program)
    if not reason:
        assert len(conversions.convert(PDF, b"")) == size
        return
    with pytest.raises(Exception, match=reason):
        conversions.convert(PDF, b"")


SLOW = """#!/bin/sh
sleep 600 &
echo $$ $! > {pids}.new
mv {pids}.new {pids}
wait
"""

START = """
import sys
from llm_kb.files.conversion import Conversions
from tests.documents.office import PDF
Conversions(None, program={program!r}).convert(PDF, b"")
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_a_converter_ends_with_us(number: signal.Signals, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = START.format(program=make_program(tmp_path, SLOW.format(pids=pids)))
    process = subprocess.Popen(
        [sys.executable, "-c", script], stderr=subprocess.DEVNULL, cwd=PROJECT
    )
    try:
        assert wait_until(pids.exists, 30)
        family = [int(pid) for pid in pids.read_text().split()]
        assert all(map(is_alive, family))
        process.send_signal(number)
        process.wait(30)
        assert wait_until(lambda: not any(map(is_alive, family)), 30)
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_a_converter_that_takes_too_long_ends_with_what_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    program = make_program(tmp_path, SLOW.format(pids=pids))
    with pytest.raises(Exception, match="more than 1 sec"):
        Conversions(None, seconds=1, program=program).convert(PDF, b"")
    family = [int(pid) for pid in pids.read_text().split()]
    assert wait_until(lambda: not any(map(is_alive, family)), 30)
