"""Builds the C++ core, kvstore_ext._core; everything else stands in pyproject.toml."""
from glob import glob

from pybind11.setup_helpers import Pybind11Extension, build_ext
from setuptools import setup

core = Pybind11Extension(
    "kvstore_ext._core",
    sorted(glob("kvstore_ext/csrc/*.cc")),
    depends=sorted(glob("kvstore_ext/csrc/*.h") + glob("kvstore_ext/csrc/*.inc")),
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
        "-Werror",
        # Our instantiations of the standard library's templates must not mix with libmxnet's,
        # whose compiler laid some of them out differently.
        "-fvisibility=hidden",
        "-fno-gnu-unique",
    ],
    extra_link_args=["-Wl,-Bsymbolic"],
    libraries=["dl"],
)

setup(ext_modules=[core], cmdclass={"build_ext": build_ext})
