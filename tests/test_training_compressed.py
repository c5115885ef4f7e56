"""Compressed gradients in a job: what every worker gets is what the papers' formulas give."""
from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Callable

import numpy as np
import pytest
from cluster import TESTS, Cluster
from compressed import Case, gradient_of_worker
from kvstore_ext.keys import identity
from reference_codecs import DGC, QSGD, Half, Method, OneBit, TernGrad, TwoBit
from reference_rounds import Simulation

SCRIPT = TESTS / "workers" / "push_compressed.py"
WORKERS = 3
# With the reference's method for a key of a shape.
CASES: dict[str, tuple[Case, Callable[[tuple], Method]]] = {
    "terngrad": (Case("terngrad"), lambda shape: TernGrad()),
    "terngrad, on two devices": (Case("terngrad", devices=2), lambda shape: TernGrad()),
    "terngrad of float16": (Case("terngrad", dtype="float16"), lambda shape: TernGrad()),
    "terngrad, unshared": (
        Case("terngrad", {"scaler_sharing": False, "clip_sigma": 0}),
        lambda shape: TernGrad(0.0, sharing=False),
    ),
    "terngrad with feedback": (
        Case("terngrad", {"error_feedback": True, "seed": 5}),
        lambda shape: TernGrad(feedback=True, seed=5),
    ),
    "qsgd": (Case("qsgd"), lambda shape: QSGD()),
    "qsgd of float16": (Case("qsgd", dtype="float16", devices=2), lambda shape: QSGD()),
    "qsgd with feedback": (
        Case("qsgd", {"bits": 3, "bucket": 100, "norm": "max", "error_feedback": True}),
        lambda shape: QSGD(3, 100, euclidean=False, feedback=True),
    ),
    "dgc": (
        Case("dgc", {"ratio": 0.01, "warmup_rounds": 3, "clip_norm": 0.1}, momentum=0.9),
        lambda shape: DGC(0.01, 3, 4, 0.1),
    ),
    "onebit": (Case("onebit"), lambda shape: OneBit()),
    "onebit by columns": (
        Case("onebit", {"bucket": 0}),
        lambda shape: OneBit(bucket=max(1, int(np.prod(shape[1:])))),
    ),
    "fp16": (Case("fp16"), lambda shape: Half()),
    "fp16 with feedback": (Case("fp16", {"error_feedback": True}), lambda shape: Half(True)),
    "2bit": (Case("2bit", {"threshold": 0.02}), lambda shape: TwoBit(0.02)),
}


@pytest.fixture(scope="module")
def found(module_cluster: Cluster) -> list[Path]:
    """Where each worker has left what it pulled, for all cases of one job: DIRECTORY/CASE-RANK."""
    directory = module_cluster.directory
    cases = [json.dumps(asdict(case)) for case, _ in CASES.values()]
    # Sums of three workers depend on the order unless they are deterministic.
    options = {"slice_bytes": 3000, "deterministic": True}
    module_cluster.run(SCRIPT, directory, *cases, workers=WORKERS, options=options)
    return directory


@pytest.mark.parametrize("name", CASES)
def test_every_worker_gets_the_bits_of_the_reference(found: Path, name: str) -> None:
    case, method_of = CASES[name]
    number = list(CASES).index(name)
    results = [dict(np.load(found / f"{number}-{rank}.npz")) for rank in range(WORKERS)]
    for key, shape in enumerate(case.shapes):
        simulation = Simulation(
            method_of(tuple(shape)),
            WORKERS,
            int(np.prod(shape)),
            seed=case.options.get("seed", 0),
            key=identity(number, key),
            momentum=case.momentum,
        )
        for round in range(1, case.rounds + 1):
            gradients = [gradient_of_worker(case, rank, key, round) for rank in range(WORKERS)]
            expected = simulation.round(gradients, round).astype(case.dtype).reshape(shape)
            for result in results:
                np.testing.assert_array_equal(result[f"{key}-{round}"], expected, f"{key}-{round}")
