"""Imports that may fail, or end the process: run by imports.py in a process of its own.

    python attempt.py numpy mxnet kvstore_ext

imports these in this order and prints what it learns of each as a line of JSON, an object with
"name" and either "error" or what there is to know. After the first error it ends.
"""
from __future__ import annotations

import dataclasses
import importlib
import json
import os
import sys
from typing import Any, Callable, Dict

Facts = Dict[str, Any]


def main(names: list[str]) -> None:
    """Imports what `names` lists, each of which is a key of ABOUT."""
    directory = os.path.dirname(os.path.abspath(__file__))
    if sys.path and os.path.realpath(sys.path[0]) == os.path.realpath(directory):
        del sys.path[0]
    # An installed kvstore_ext, which a job would use, comes before the one that this file is in.
    sys.path.append(os.path.dirname(os.path.dirname(directory)))
    # Only what is meant for imports.py goes there, whatever libraries print.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    role = os.environ.pop("DMLC_ROLE", None)  # with it, importing mxnet runs a server
    for name in names:
        try:
            module = importlib.import_module(name)
            if role is not None and name == "kvstore_ext":
                os.environ["DMLC_ROLE"] = role  # for about_environment
            facts = ABOUT[name](module)
        except Exception as error:
            facts = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps({"name": name, **facts}), file=answers)
        if "error" in facts:
            return


def about_numpy(numpy: Any) -> Facts:
    """Returns which NumPy it is."""
    return {"version": numpy.__version__}


def about_mxnet(mxnet: Any) -> Facts:
    """Returns which MXNet it is, and what it was built with."""
    features = mxnet.runtime.Features()
    has_cuda = features.is_enabled("CUDA")
    return {
        "version": mxnet.__version__,
        "library": mxnet.libinfo.find_lib_path()[0],
        "cuda": has_cuda,
        "gpus": count_gpus(mxnet) if has_cuda else 0,
        "distributed": features.is_enabled("DIST_KVSTORE"),
    }


def count_gpus(mxnet: Any) -> int:
    """Returns how many GPUs MXNet finds; 0 where it cannot look for them."""
    try:
        return int(mxnet.context.num_gpus())
    except mxnet.MXNetError:
        return 0


def about_kvstore_ext(kvstore_ext: Any) -> Facts:
    """Returns which kvstore_ext it is, and what its core says of this processor."""
    return {
        "version": kvstore_ext.__version__,
        "directory": os.path.dirname(os.path.abspath(kvstore_ext.__file__)),
        "kernels": kvstore_ext._core.kernels(),
        **about_cipher(kvstore_ext),
        **about_environment(kvstore_ext),
    }


def about_cipher(kvstore_ext: Any) -> Facts:
    """Returns which library a job with a key encrypts by, or why there is none."""
    try:
        return {"cipher": kvstore_ext._core.cipher_library()}
    except RuntimeError as error:
        return {"refused_cipher": str(error)}


def about_environment(kvstore_ext: Any) -> Facts:
    """What a store would make of the environment: the job, and why it would refuse anything."""
    config = importlib.import_module("kvstore_ext.config")
    registry = importlib.import_module("kvstore_ext.compression.registry")
    facts: Facts = {"job": None, "refused_job": None, "refused_options": None}
    try:
        job = config.Job.from_environment()
        facts["job"] = job and dataclasses.asdict(job)
    except kvstore_ext.OptionError as error:
        facts["refused_job"] = str(error)
    try:
        kvstore_ext.Options.from_environment(registry.option_names())
    except kvstore_ext.OptionError as error:
        facts["refused_options"] = str(error)
    return facts


ABOUT: Dict[str, Callable[[Any], Facts]] = {
    "numpy": about_numpy,
    "mxnet": about_mxnet,
    "kvstore_ext": about_kvstore_ext,
}

if __name__ == "__main__":
    main(sys.argv[1:])
