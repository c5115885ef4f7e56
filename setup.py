"""Builds the C++ core, kvstore_ext._core; everything else stands in pyproject.toml.

A room, which is a directory of the core, is compiled as one file that includes all of its own:
reading pybind11 and the standard library again for each of them took most of the time.
"""
import hashlib
import os
import shutil
import sys
from glob import glob
from pathlib import Path

import pybind11
from pybind11.setup_helpers import ParallelCompile, Pybind11Extension, build_ext
from setuptools import setup
from setuptools.command.build import build

CORE = "kvstore_ext/csrc"

core = Pybind11Extension(
    "kvstore_ext._core",
    sorted(glob(f"{CORE}/**/*.cc", recursive=True)),
    depends=[
        "setup.py",
        *sorted(
            name for kind in ("h", "inc") for name in glob(f"{CORE}/**/*.{kind}", recursive=True)
        ),
    ],
    include_dirs=[CORE],
    cxx_std=17,
    # libmxnet.so was built with the old std::string, which crosses our border to it.
    define_macros=[("_GLIBCXX_USE_CXX11_ABI", "0")],
    extra_compile_args=[
        "-O3",
        # The codecs' kernels give the same bits for every instruction set, and are compiled into
        # vector instructions: nothing looks at errno or at floating-point exceptions.
        "-ffp-contract=off",
        "-fno-math-errno",
        "-fno-trapping-math",
        "-Wall",
        "-Wextra",
        # Another compiler may warn of more: that is the project's own matter.
        *(["-Werror"] if os.environ.get("WERROR") else []),
        # Our instantiations of the standard library's templates must not mix with libmxnet's,
        # whose compiler laid some of them out differently.
        "-fvisibility=hidden",
        "-fno-gnu-unique",
        "-MMD",  # for `changed`
    ],
    extra_link_args=["-Wl,-Bsymbolic"],
    libraries=["dl"],
)


# Each codec has private names that the others have as well.
COMPILED_FILE_BY_FILE = ["codecs"]


def room_files(sources, directory):
    """Writes a file a room that includes the room's sources; returns what is to be compiled."""
    rooms = {}
    compiled = []
    for source in sources:
        room = os.path.relpath(os.path.dirname(source), CORE)
        if room in COMPILED_FILE_BY_FILE:
            compiled.append(source)
        else:
            rooms.setdefault(room, []).append(source)
    os.makedirs(directory, exist_ok=True)
    for room, members in rooms.items():
        path = Path(directory, room.replace("/", "_") + ".cc")
        text = "".join(f'#include "{os.path.relpath(member, CORE)}"\n' for member in members)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
        compiled.append(str(path))
    # The longest first, so that no processor waits for it at the end.
    return sorted(compiled, key=lambda name: Path(name).stem not in ("bindings", "codecs_kernels"))


def changed(target, source):
    """Whether an object file is older than any of our files that it was compiled from, or this."""
    made = Path(target)
    rule = made.with_suffix(".d")
    if not made.exists() or not rule.exists():
        return True
    sources = [name for name in rule.read_text().split() if name.startswith(CORE)]
    return any(
        not Path(name).exists() or Path(name).stat().st_mtime > made.stat().st_mtime
        for name in [*sources, source, __file__]
    )


def own_flags():
    """What tells objects apart that were compiled by another compiler or flags of the user's."""
    names = ("CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS")
    flags = "".join(f"{name}={os.environ[name]}\n" for name in names if os.environ.get(name))
    return f"-{hashlib.sha256(flags.encode()).hexdigest()[:8]}" if flags else ""


class Build(build):
    """Begins with nothing of the last build but its objects: modules that are no more would be
    installed again, and a core that only its rooms' own files have changed would count as new."""

    def run(self):
        for package in self.distribution.packages:
            if "." not in package:
                shutil.rmtree(Path(self.build_lib, package), ignore_errors=True)
        super().run()


class BuildCore(build_ext):
    """Compiles what has changed, and on all processors."""

    def finalize_options(self):
        super().finalize_options()
        # Where it is found again: pip builds elsewhere each time. Objects of one version of
        # pybind11, wherever that lies, do not fit those of another.
        tag = sys.implementation.cache_tag
        self.build_temp = f"build/{tag}-pybind11-{pybind11.__version__}{own_flags()}"

    def build_extension(self, ext):
        ext.depends = [*ext.depends, *ext.sources]
        ext.sources = room_files(ext.sources, f"{self.build_temp}/rooms")
        super().build_extension(ext)


ParallelCompile(needs_recompile=changed).install()
setup(ext_modules=[core], cmdclass={"build": Build, "build_ext": BuildCore})
