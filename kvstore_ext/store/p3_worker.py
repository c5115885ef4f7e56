"""The KVStore that a script sees: takes its keys and arrays, and hands them to the router."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Union

import mxnet as mx

from ..config import Options
from ..errors import KVStoreError
from ..keys.names import Arrays, Key, pairs
from .statistics import statistics
from .unrecorded import unrecorded
from .verified_store import VerifiedStore
from .whole_files import whole_file


class P3Worker(VerifiedStore):
    """Priority-based parameter propagation: `mx.kv.create('p3')`, or `'dist_sync_p3'`.

    Behaves as MXNet's `dist_sync`. Dense keys travel on the lane: cut into slices, the layers that
    the next forward pass needs first ahead of the others (P3: Jayarajan et al., MLSys 2019), and
    answered by the servers without being asked. Keys with row-sparse weights or gradients travel
    through MXNet's own store.

    Outside a launched job it is rank 0 of 1 and runs the same code in the process. A process may
    have several stores, each with keys and an optimizer of its own; all workers open them in the
    same order.

    Parameters
    ----------
    options
        Read from KVSTORE_EXT_OPTIONS unless given.

    Raises
    ------
    OptionError
        For a malformed option or environment.
    ClusterError
        Where the cluster does not come up within the option `timeout`, workers disagree, or servers
        are not P3Server.
    """

    def __init__(self, options: Optional[Options] = None) -> None:
        super().__init__(options)
        self._updater: Any = None  # MXNet's name for what has the optimizer's states
        self._begin()

    @unrecorded
    def init(self, key: Union[Key, Sequence[Key]], value: Arrays) -> None:
        """Gives keys their first value, rank 0's; returns before it has reached the servers.

        Parameters
        ----------
        key
            An int or str, or a sequence of them; a key is initialised once, on all workers.
        value
            An array a key, of float32, float64 or float16 and any shape; or row-sparse.

        Raises
        ------
        ArrayMismatch
            For integers and other types.
        KVStoreError
            For a key that exists.
        """
        self._check_open()
        self._warn_of_unused_options()
        self._router.begin(pairs(key, value), {}, 0)

    @unrecorded
    def broadcast(
        self, key: Union[Key, Sequence[Key]], value: Arrays, out: Arrays, priority: int = 0
    ) -> None:
        """Initialises keys and writes rank 0's value into `out`; otherwise as `init`."""
        self._check_open()
        self._warn_of_unused_options()
        self._router.begin(pairs(key, value), dict(pairs(key, out)), priority)

    @unrecorded
    def push(self, key: Union[Key, Sequence[Key]], value: Arrays, priority: int = 0) -> None:
        """Sends gradients, summed over a worker's devices, once they are computed.

        Parameters
        ----------
        key
            An int or str, or a sequence of them.
        value
            An array a key, or a list of arrays, one a device, with the key's shape and type.
        priority
            Keys with higher ones go first, until the store has learned the order in which the next
            forward pass needs them.

        Raises
        ------
        KeyNotInitialised, ArrayMismatch, ClusterError
            Before anything is sent.
        """
        self._check_open()
        values = pairs(key, value)
        self._before_push(values)
        self._router.push(values, priority)

    @unrecorded
    def pull(
        self,
        key: Union[Key, Sequence[Key]],
        out: Optional[Arrays] = None,
        priority: int = 0,
        ignore_sparse: bool = True,
    ) -> None:
        """Writes the value as of this worker's last push into `out`: one array, or one a device.

        Raises as `push` does.
        """
        self._check_open()
        if out is None:
            raise KVStoreError("pull needs an array to write to: out is None")
        if not ignore_sparse:
            raise KVStoreError("a distributed store cannot pull with ignore_sparse=False")
        self._router.pull(pairs(key, out), priority)

    @unrecorded
    def pushpull(
        self,
        key: Union[Key, Sequence[Key]],
        value: Arrays,
        out: Optional[Arrays] = None,
        priority: int = 0,
    ) -> None:
        """`push`, then `pull` into `out`, or into `value` where there is no `out`; returns at once.

        A slice of `out` is written when its result arrives; whoever reads `out` waits for all.
        """
        self._check_open()
        values, outs = pairs(key, value), None if out is None else pairs(key, out)
        self._before_push(values)
        self._router.pushpull(values, outs, priority)

    @unrecorded
    def broadcast_from(
        self, root: int, key: Union[Key, Sequence[Key]], value: Arrays, priority: int = 0
    ) -> None:
        """Overwrites every worker's `value` with worker `root`'s; returns at once.

        With each rank in turn as root, every worker obtains every worker's arrays, and holds one
        other worker's at a time. The root sends an array once and receives nothing; every other
        worker sends nothing and receives it once. Neither an optimizer nor compression changes it.

        Parameters
        ----------
        root
            A rank, the same on all workers, which also call in the same order.
        key
            An int or str, or a sequence of them: names apart from those of `init`, which need none.
        value
            An array a key, dense, of float32, float64 or float16 and a shape that a key keeps.

        Raises
        ------
        ArrayMismatch
            For another type, or another shape than the key had before.
        KVStoreError
            For a root that is no worker. ClusterError follows where workers disagree about the root
            or the shape, or one does not come.
        """
        self._check_open()
        self._broadcasts.begin(root, pairs(key, value), priority)

    @unrecorded
    def row_sparse_pull(
        self,
        key: Union[Key, Sequence[Key]],
        out: Optional[Arrays] = None,
        priority: int = 0,
        row_ids: Optional[Arrays] = None,
    ) -> None:
        """Writes rows of keys with row-sparse weights or gradients into row-sparse arrays.

        Parameters
        ----------
        out
            A row-sparse array a key, or one a device.
        row_ids
            An int64 array of row numbers a key; they may repeat.
        """
        self._check_open()
        if out is None:
            raise KVStoreError("row_sparse_pull needs an array to write to: out is None")
        if row_ids is None:
            raise KVStoreError("row_sparse_pull needs the numbers of rows: row_ids is None")
        if isinstance(key, (int, str)):
            return self._router.pull_rows(key, out, row_ids, priority)
        if isinstance(row_ids, mx.nd.NDArray):
            row_ids = [row_ids]  # as MXNet takes it: its rows are no arrays of a key each
        if not len(key) == len(out) == len(row_ids):
            raise KVStoreError(
                f"got {len(key)} keys, {len(out)} arrays and {len(row_ids)} row_ids; they must "
                "be as many"
            )
        for name, arrays, rows in zip(key, out, row_ids):
            self._router.pull_rows(name, arrays, rows, priority)
        return None

    def set_optimizer(self, optimizer: mx.optimizer.Optimizer) -> None:
        """Has parameters updated with this optimizer, rank 0's, from its first step.

        On the servers, slice by slice, where that comes to the same; otherwise on every worker,
        parameter by parameter, from the sum of the gradients. What a script changes afterwards
        (lr, wd, rescale_grad, another lr_scheduler ...) holds from its next push on. Waits for the
        rounds that were begun without it.

        Raises
        ------
        KVStoreError
            For what is no optimizer, or one that draws random numbers. Where the store has one
            already: for another class once a key was pushed with it; for one that must run on the
            workers where it ran on the servers, even before that; and for the other way round once
            there are dense keys.
        """
        self._check_open()
        if not isinstance(optimizer, mx.optimizer.Optimizer):
            name = optimizer if isinstance(optimizer, str) else "sgd"
            raise KVStoreError(
                f"set_optimizer got {optimizer!r}; it must be an Optimizer, such as "
                f"mx.optimizer.create({name!r})"
            )
        self._updater = self._router.set_optimizer(optimizer)
        self._warn_of_plain_parameters(optimizer)

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """Writes the optimizer's states, and what compression carries over, into a file.

        Any worker may, without the others, between two of its steps. Where it fails, the file is as
        it was before.

        Parameters
        ----------
        dump_optimizer
            Whether the optimizer is written as well, with its rates and counts.

        Raises
        ------
        KVStoreError
            Where the store has no optimizer, or one that cannot be pickled is to be written.
        """
        self._check_optimizer()
        self._lane.wait_for_all()
        # MXNet empties a file before it asks for the states.
        with whole_file(fname, self.rank) as partial:
            super().save_optimizer_states(partial, dump_optimizer)

    def load_optimizer_states(self, fname: str) -> None:
        """Goes on from what `save_optimizer_states` wrote. Where workers update all call it; where
        servers do rank 0's call counts, and others may leave it out.

        Raises
        ------
        KVStoreError
            Where the store has no optimizer; and for another model's states, or none.
        """
        self._check_optimizer()
        self._lane.wait_for_all()
        super().load_optimizer_states(fname)

    def _check_optimizer(self) -> None:
        self._check_open()
        if not hasattr(self._updater, "get_states"):  # as a function has none
            raise KVStoreError("the store has no optimizer: call set_optimizer")

    def _set_updater(self, updater: Callable[[Key, Any, Any], None]) -> None:
        """Outside a cluster, has updater(key, gradient, value) update whole parameters.

        In a cluster it does nothing, as in MXNet's distributed stores.
        """
        self._check_open()
        if not self._lane.in_process:
            return
        self._router.set_updater(updater)
        self._updater = updater

    def stats(self) -> Dict[str, Any]:
        """What this process's lane has done since it was opened.

        Returns
        -------
        dict
            sent, received: bytes by type of message, headers of the network apart; messages_sent,
            messages_received: how many messages by type, where a batch is one; shared_memory: bytes
            of payload, both ways, that needed no network; ratio: of the
            gradients' size to that in which they left; zeros: share of compressed elements that
            came out as 0, from every sixteenth slice of a key; zero_counts: by key, how many did,
            of how many that were looked at; scalers: a key's last one; excluded: dense keys that a
            store with a method leaves uncompressed; non_finite: rounds of keys that did not count;
            refused: messages, here, at the servers and at the scheduler, that no process of the
            job sends;
            strangers: connections that were refused here, in a job with a key; foreign: messages
            that were dropped here before ps-lite read them;
            encode, queue, wire, decode: seconds, added up over slices, which wait and travel at the
            same time; wire ends with the result's arrival.
        """
        return statistics(self._worker, self._router.method)

    def learned_order(self) -> List[Key]:
        """Keys in the order in which the next forward pass needs them; empty until it is known."""
        names = {arrays.identity: name for name, arrays in self._router.keys.items()}
        return [names[identity] for identity in self._worker.order() if identity in names]
