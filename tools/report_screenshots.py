#!/usr/bin/env python3
"""Pictures of a report as a browser shows it: wide in the light, and on a phone in the dark.

    python tools/report_screenshots.py traces/report.html docs/figures

It needs Debian's package chromium, and no network.
"""
from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run", "--hide-scrollbars"),
)
DARK = "--blink-settings=preferredColorScheme=0"
# By what is added to the file's name: width and height in pixels, and how.
PICTURES = {"wide": ("1000,1900", ()), "phone": ("390,1600", (DARK,))}


def main() -> None:
    parser = argparse.ArgumentParser(description="Take pictures of a report.")
    parser.add_argument("report", type=Path, help="what kvstore-ext report has written")
    parser.add_argument("directory", type=Path, help="where report-NAME.png go")
    found = parser.parse_args()
    for name, (size, flags) in PICTURES.items():
        picture = found.directory.resolve() / f"report-{name}.png"
        with tempfile.TemporaryDirectory() as profile:
            subprocess.run(
                ["chromium", *FLAGS, *flags, f"--user-data-dir={profile}", f"--window-size={size}",
                 f"--screenshot={picture}", found.report.resolve().as_uri()],
                check=True,
                timeout=300,
                stderr=subprocess.DEVNULL,
            )  # fmt: skip
        print(picture)


if __name__ == "__main__":
    main()
