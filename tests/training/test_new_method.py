"""A method is a file of Python, a codec, and an entry in each of the two lists of methods.

One is added to a copy of the project, which compiles it and nothing else, and trains with it.
"""
from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.support.cluster import Cluster
from tests.support.paths import ROOT, python_path
from tests.support.processes import LIMIT, Ended, run_python
from tests.support.results import load_all

METHOD = ROOT / "tests" / "support" / "toy_method"

# Where the method's files go, and before which lines of the lists its own lines come.
DIRECTORIES = {
    "topk.py": "kvstore_ext/compression",
    "topk.h": "kvstore_ext/csrc/codecs",
    "topk.cc": "kvstore_ext/csrc/codecs",
}
LINES = {
    "kvstore_ext/methods.py": {
        "from .compression.topk import TopK\n": "from .compression.two_bit import TwoBit\n",
        "    TopK,\n": "    TwoBit,\n",
    },
    "kvstore_ext/csrc/codecs/codec_list.cc": {
        '#include "codecs/topk.h"\n': '#include "codecs/two_bit.h"\n',
        "      TopK::Method(),\n": "      TwoBit::Method(),\n",
    },
}
RATIO = 0.1
ELEMENTS = 3000
STEPS = 2


COMPILING = 600.0  # seconds until it must have ended, where no object was compiled before


def run(project: Path, *arguments: object, seconds: float = LIMIT) -> Ended:
    """Runs Python, which finds the package in the copy."""
    path = {"PYTHONPATH": python_path(project)}
    return run_python(*arguments, directory=project, environment=path, seconds=seconds)


def compile_core(project: Path) -> dict[Path, int]:
    """Compiles what has changed; returns all objects' times."""
    run(project, "setup.py", "build_ext", "--inplace", seconds=COMPILING)
    return {file: file.stat().st_mtime_ns for file in (project / "build").rglob("*.o")}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project."""
    copy = tmp_path_factory.mktemp("project")
    # Copies keep the files' times, by which setup.py sees what has changed.
    for name in ("setup.py", "pyproject.toml", "README.md"):
        shutil.copy2(ROOT / name, copy)
    left_out = shutil.ignore_patterns("_core*.so", "__pycache__")
    shutil.copytree(ROOT / "kvstore_ext", copy / "kvstore_ext", ignore=left_out)
    return copy


@pytest.fixture(scope="module")
def compiled(copy: Path) -> set[str]:
    """What is compiled once the method has come to the copy."""
    for objects in (ROOT / "build").glob("*-pybind11-*"):  # one for each Python and its flags
        shutil.copytree(objects, copy / "build" / objects.name)
    before = compile_core(copy)
    for name, directory in DIRECTORIES.items():
        shutil.copy(METHOD / name, copy / directory)
    for name, lines in LINES.items():
        text = (copy / name).read_text()
        for line, following in lines.items():
            assert text.count(following) == 1
            text = text.replace(following, line + following)
        (copy / name).write_text(text)
    changed = [file for file, time in compile_core(copy).items() if before.get(file) != time]
    return {"/".join(file.relative_to(copy / "build").parts[1:]) for file in changed}


@pytest.fixture
def project(copy: Path, compiled: set[str]) -> Path:
    """The copy with the method, compiled."""
    return copy


def test_only_the_codec_and_the_list_of_codecs_are_compiled(compiled: set[str]) -> None:
    codecs = "kvstore_ext/csrc/codecs"
    assert compiled == {f"{codecs}/topk.o", f"{codecs}/codec_list.o"}


def test_it_is_listed_with_what_its_options_may_be(project: Path) -> None:
    listed = run(project, "-m", "kvstore_ext", "--list").stdout
    (described,) = [text for text in listed.split("\n\n") if text.startswith("topk:")]
    assert "topk: The largest elements of each gradient; the others are lost." in described
    assert "  ratio = 0.01  (a number above 0 to 1)" in described


def test_a_store_of_its_name_compresses_without_a_cluster(project: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        """
import kvstore_ext
import mxnet as mx

store = mx.kv.create("topk")
try:
    store.set_gradient_compression({"type": "topk", "ratio": 1.5})
except kvstore_ext.OptionError as error:
    print(error)
store.set_gradient_compression({"type": "topk", "ratio": 0.5})
out = mx.nd.zeros(4)
store.broadcast("key", out, out=out)
store.pushpull("key", mx.nd.array([1, -4, 3, 2]), out=out)
print(out.asnumpy().tolist())
"""
    )
    refused, found = run(project, script).stdout.splitlines()
    assert refused == "topk: ratio is 1.5; it must be a number above 0 to 1, in float32"
    assert found == "[0.0, -4.0, 3.0, 0.0]"


def train(directory: str, elements: str, steps: str) -> None:
    """Takes steps against gradients that it draws; saves these and the parameters after each."""
    import kvstore_ext
    import mxnet as mx
    import numpy as np

    from tests.support import results

    store = mx.kv.create("topk")
    random = np.random.RandomState(store.rank)
    gradients = random.standard_normal((int(steps), int(elements))).astype(np.float32)
    parameters = np.zeros_like(gradients)
    weight = mx.gluon.Parameter("weight", shape=int(elements), init="zeros")
    weight.initialize()
    trainer = mx.gluon.Trainer([weight], "sgd", {"learning_rate": 1}, kvstore=store)
    for gradient, after in zip(gradients, parameters):
        with mx.autograd.record():
            loss = (weight.data() * mx.nd.array(gradient)).sum()
        loss.backward()
        trainer.step(1)
        after[:] = weight.data().asnumpy()
    package = np.array(kvstore_ext.__file__)
    found = {"package": package, "gradients": gradients, "parameters": parameters}
    results.save(directory, "topk", store.rank, found)


def largest(gradient: np.ndarray) -> np.ndarray:
    """The elements that are sent; the others are 0."""
    count = int(np.ceil(RATIO * gradient.size))
    selected = np.argsort(-abs(gradient), kind="stable")[:count]
    sent = np.zeros_like(gradient)
    sent[selected] = gradient[selected]
    return sent


def test_workers_train_with_the_sum_of_the_elements_that_they_selected(
    project: Path, cluster: Cluster, tmp_path: Path
) -> None:
    cluster.run(
        train, tmp_path, ELEMENTS, STEPS,
        workers=2, servers=1, directory=project,
        options={"ratio": RATIO, "slice_bytes": 1000},  # three slices
        environment={"PYTHONPATH": python_path(project)},
    )
    first, second = load_all(tmp_path, "topk", 2)
    expected = np.zeros(ELEMENTS, np.float32)
    for step in range(STEPS):
        expected -= largest(first["gradients"][step]) + largest(second["gradients"][step])
        for found in (first, second):
            np.testing.assert_array_equal(found["parameters"][step], expected)
            assert str(found["package"]) == str(project / "kvstore_ext" / "__init__.py")
