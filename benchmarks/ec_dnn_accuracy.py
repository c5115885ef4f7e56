#!/usr/bin/env python3
r"""EC-DNN beside averages of models and a final ensemble: the paper's evaluation, in Markdown.

    OMP_NUM_THREADS=1 python benchmarks/ec_dnn_accuracy.py --results ec_dnn.jsonl \
        --picture docs/figures/ec-dnn.svg > benchmarks/ec_dnn_accuracy.md

After Sun and Liu, Neurocomputing 2018, section 6: tables 1 to 3 and figures 1 to 3, 5 and 6, of
small networks on data at hand. Workers are simulated (simulations/ensembles.py). The command can be
ended and called again at any time, and several can share the work (trainings.py).
"""
from __future__ import annotations

import argparse
from pathlib import Path
from typing import Iterator

from ensembles import plan
from ensembles.language_names import LANGUAGES
from ensembles.noisy_digits import NOISE
from ensembles.picture import draw
from ensembles.tables import Tables, numbers
from ensembles.tasks import BATCH, TASKS
from ensembles.training import DECAY, MOMENTUM, Training
from trainings import command, complete

_DIGITS = f"Digits of scikit-learn; of those to train on {100 * NOISE:.0f} % have a wrong label"
ABOUT = {
    "digits": _DIGITS,
    "digits-long": _DIGITS,
    "names": f"Names in the CLDR, and which of {len(LANGUAGES)} languages each is in",
}


def about(seeds: int) -> Iterator[str]:
    """How it was made."""
    yield "# EC-DNN, averages of models and a final ensemble"
    yield ""
    yield f"Made by `OMP_NUM_THREADS=1 {command('ec_dnn_accuracy.py')}`."
    yield ""
    yield (
        "Errors are in per cent of the test part, means over the seeds with intervals of 95 % (t "
        f"distribution); {seeds} seeds, from each of which follow the split, the first parameters "
        "and the order of the examples. G is the global model, L the local one with the smallest "
        "training loss, after the last compression. Each method has the tau of the smallest "
        "validation error of its global model. Nothing is chosen by the test part, but p and mu "
        "were by the validation parts of other seeds, which have images of these test parts. A "
        f"network has one hidden layer; SGD with momentum {MOMENTUM} and decay {DECAY} trains it "
        f"on mini-batches of {BATCH}, at a rate that falls to a tenth for the last sixth. Every "
        "worker trains on as many mini-batches, those of compression included, whatever its share "
        "of the examples.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, required=True, help="JSON lines; made if absent")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--data", nargs="+", default=["shared", "partitioned"],
                        choices=("shared", "partitioned"), help="whether workers share examples")
    parser.add_argument("--picture", type=Path, help="an SVG of the first task")
    arguments = parser.parse_args()
    if arguments.picture and "shared" not in arguments.data:
        parser.error("--picture shows workers that share examples: it needs --data shared")
    wanted = plan.wanted(arguments.tasks, arguments.seeds, arguments.data)
    results = complete(arguments.results, Training, wanted)
    print("\n".join(about(len(arguments.seeds))))
    print("\n".join(("\n## EC-DNN's numbers (table 1)\n", *numbers(results))))
    for name in arguments.tasks:
        task = TASKS[name]
        print(f"\n## {task.title}\n\n{ABOUT[name]}; {task.hidden} hidden units, "
              f"{task.steps} mini-batches a worker, a rate of {task.rate} to begin with.")
        print("\n".join(Tables(results, name, arguments.seeds).lines(arguments.data)))
    if arguments.picture:
        draw(results, arguments.tasks[0], arguments.seeds, arguments.picture)


if __name__ == "__main__":
    main()
