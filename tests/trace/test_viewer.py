"""A real viewer, speedscope in a browser without a window, opens the merged file and shows it."""
from __future__ import annotations

import base64
import html
import json
import re
import subprocess
from pathlib import Path

import pytest
from kvstore_ext.trace.events import Kind
from kvstore_ext.trace.merging import write_merged
from kvstore_ext.trace.reading import JobTrace

from tests.support.paths import ROOT
from tests.support.system_packages import need
from tests.trace.made_up import process

VIEWER = ROOT / "build" / "speedscope"
VERSION = "1.25.0"


@pytest.fixture(scope="module")
def viewer() -> Path:
    """The page that the viewer is; npm brings it, once."""
    page = VIEWER / VERSION / "node_modules" / "speedscope" / "dist" / "release" / "index.html"
    (npm,) = need("npm")
    if not page.exists():
        install = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(VIEWER / VERSION)]
        subprocess.run([*install, f"speedscope@{VERSION}"], check=True, timeout=300)
    return page


@pytest.mark.all_only
def test_a_viewer_shows_every_thread_with_its_time(viewer: Path, tmp_path: Path) -> None:
    (chromium,) = need("chromium")
    job = JobTrace((worker_of_one_step(), server_of_one_step()), {})
    with (tmp_path / "trace.json").open("w") as file:
        write_merged(job, file)
    content = base64.b64encode((tmp_path / "trace.json").read_bytes()).decode()
    profile = tmp_path / "profile.js"
    profile.write_text(f"speedscope.loadFileFromBase64('trace.json', {json.dumps(content)})")
    shown = subprocess.run(
        [
            *(chromium, "--headless", "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader"),
            *("--enable-unsafe-swiftshader", "--virtual-time-budget=15000", "--dump-dom"),
            *(f"--user-data-dir={tmp_path / 'browser'}", f"--screenshot={tmp_path / 'shown.png'}"),
            f"{viewer.as_uri()}#localProfilePath={profile}",
        ],
        capture_output=True,
        text=True,
        timeout=120,
    ).stdout
    rows = re.findall(r'<tr title="([^"]+)".*?<td class="[^"]+">([0-9.]+.s)</td></tr>', shown)
    assert {html.unescape(name): time for name, time in rows} == {
        "worker 0 on host (pid 1), steps (tid 1)": "9.00ms",
        "worker 0 on host (pid 1), layers (tid 2)": "5.00ms",
        "worker 0 on host (pid 1), thread 70 (tid 70)": "2.00ms",
        "server 0 on host (pid 10000), thread 80 (tid 80)": "1.00ms",
    }


def worker_of_one_step() -> object:
    """Its layer runs for 5 ms; then a slice is encoded in 1 ms, sent, and written in 1 ms."""
    ms = 10**6
    slice_0 = {"slice": 0, "round": 1, "peer": 0, "bytes": 100, "thread": 70, "message": 4}
    return process(
        "worker",
        0,
        {"kind": Kind.STEP, "begin": 0, "end": 9 * ms, "round": 1},
        {"kind": Kind.FORWARD, "begin": 0, "end": 5 * ms},
        {"kind": Kind.ENCODED, "begin": 5 * ms, "end": 6 * ms, **slice_0},
        {"kind": Kind.QUEUED, "begin": 6 * ms, "end": 6 * ms, **slice_0},
        {"kind": Kind.SENT, "begin": 6 * ms, "end": 6 * ms, **slice_0},
        {"kind": Kind.WRITTEN, "begin": 7 * ms, "end": 8 * ms, **slice_0},
    )


def server_of_one_step() -> object:
    """It adds that slice up in 1 ms."""
    ms = 10**6
    summed = {"kind": Kind.SUMMED, "slice": 0, "round": 1, "peer": 0, "thread": 80}
    return process("server", 0, {**summed, "begin": 6 * ms, "end": 7 * ms})
