# PYTHON_ARGCOMPLETE_OK
"""The command kvstore-launch, which starts distributed jobs: see kvstore_ext/launcher.

It lies beside kvstore_ext because a module in there cannot be imported without MXNet.
"""

from __future__ import annotations

import os
import runpy


def main() -> None:
    """Runs the launcher with the arguments in sys.argv; exits with its status."""
    packages = os.path.dirname(os.path.abspath(__file__))
    entry = os.path.join(packages, "kvstore_ext", "launcher", "__main__.py")
    runpy.run_path(entry, run_name="__main__")


if __name__ == "__main__":
    main()
