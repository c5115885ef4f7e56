"""What a worker of a soak runs."""
from __future__ import annotations

from pathlib import Path


def go_on(directory: str, step: int) -> None:
    """Has workers go on from a step at which they wait."""
    Path(directory, f"after {step}").touch()


def train(directory: str, store_name: str, keys: str, steps: str, every: str) -> None:
    """Pushes and pulls small keys, and says after every so many steps how far it has come, with a
    checksum of all that it has got. It then waits until it may go on."""
    import time
    import zlib
    from pathlib import Path

    import kvstore_ext  # noqa: F401
    import mxnet as mx
    import numpy as np

    from tests.support import heap

    heap.tell(directory)
    store = mx.kv.create(store_name)
    random = np.random.RandomState(store.rank)
    shapes = [(10 + key,) for key in range(int(keys))]
    # Sixty-fourths, so that their sums are the same in any order; three in turn.
    gradients = [
        [mx.nd.array(random.randint(-64, 65, shape) / 64) for shape in shapes] for _ in range(3)
    ]
    weights = [mx.nd.zeros(shape) for shape in shapes]
    if store_name in ("p3", "slim_dp"):
        store.set_optimizer(mx.optimizer.SGD(learning_rate=2**-10, momentum=0.5))
    for key, weight in enumerate(weights):
        store.broadcast(key, weight, out=weight)
    checksum = 0
    for step in range(1, int(steps) + 1):
        for key, weight in enumerate(weights):
            store.pushpull(key, gradients[step % 3][key], out=weight, priority=-key)
        with store.global_parameters():  # with slim_dp each worker has its own beside them
            for weight in weights:
                checksum = zlib.crc32(weight.asnumpy().tobytes(), checksum)
        if step % int(every) == 0 or step == int(steps):
            # In one piece: ps-lite writes of what it sends again, on threads of its own.
            print(f"at {step} {checksum}\n", end="", flush=True)
            while not Path(directory, f"after {step}").exists():
                time.sleep(0.05)
    store.close()
