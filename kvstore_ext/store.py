"""The KVStore that a script sees: checks what it is given, and hands operations to the lane."""
from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
import warnings
from typing import Any, Callable, ContextManager, Dict, List, Optional, Sequence, Tuple, Union

import mxnet as mx
from mxnet.base import _LIB, MXNetError, check_call
from mxnet.kvstore import KVStore

from . import compression
from .broadcasts import Broadcasts
from .carried import Carries
from .closing import failures, open_stores
from .config import Job, Options
from .errors import ClusterError, KVStoreError
from .exchange import Exchange
from .keys import Arrays, Key, pairs
from .lane import ClusterLane
from .local_lane import LocalLane
from .report import report


class P3(KVStore):
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

    # Of a store that has its name from a compression.
    compression: Optional[str] = None

    def __init__(self, options: Optional[Options] = None) -> None:
        self.closed = True  # until it is made
        method = None
        if self.compression is not None:
            given = compression.options_of_environment()
            method = compression.parse({"type": self.compression, **given})
        options = options or Options.from_environment(compression.option_names())
        job = Job.from_environment()
        try:
            self._lane = (
                LocalLane("p3", options) if job is None else ClusterLane.shared("p3", options, job)
            )
        except ClusterError as error:
            failures.append(error)
            raise
        super().__init__(self._lane.stock.handle)
        self._updater: Any = None  # MXNet's name for what has the optimizer's states
        self._exchange = Exchange(self._lane)
        self._broadcasts = Broadcasts(self._lane, self._exchange.number)
        if method is not None:
            self._exchange.compress(method)
        mx.profiler.set_kvstore_handle(self.handle)  # as mx.kv.create does for MXNet's own
        self._worker = self._lane.worker
        self.closed = False
        open_stores.add(self)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # of a store half made, or an interpreter half gone
            if threading.current_thread().daemon:
                # Closing waits for the lane's own threads, of which this may be one.
                threading.Thread(target=self._close_alone).start()
            else:
                self._close_alone()

    def _close_alone(self) -> None:
        try:
            self.close()
        except KVStoreError as error:  # nobody could catch it here
            failures.append(error)
            print(f"kvstore_ext: {error}", file=sys.stderr)

    # What stays the stock store's is not repeated here: save_optimizer_states and
    # load_optimizer_states, which ask self._updater.

    @property
    def type(self) -> str:
        """'dist_sync_p3', or with a compression's name at the end; with Slim-DP 'dist_slim_dp'.

        Trainer and Module look for 'dist' in it. With '_sync' Module divides a gradient by the
        batch of all workers, of which the sum is taken; Slim-DP's optimizers see their own.
        """
        if self._exchange.local is not None:
            return "dist_slim_dp"
        return f"dist_sync_{self.compression or 'p3'}"

    def is_capable(self, capability: str) -> bool:
        """As MXNet's; 'optimizer' is False where sums had better travel back compressed, so that
        Trainer and Module update on the workers."""
        method = self._exchange.compressed.method
        if capability.lower() == "optimizer" and method is not None and method.prefers_workers:
            return False
        return bool(super().is_capable(capability))

    @property
    def rank(self) -> int:
        """This worker's rank, from 0."""
        return self._lane.rank

    @property
    def num_workers(self) -> int:
        """How many workers the job has."""
        return self._lane.workers

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
        self._exchange.begin(pairs(key, value), {}, 0)

    def broadcast(
        self, key: Union[Key, Sequence[Key]], value: Arrays, out: Arrays, priority: int = 0
    ) -> None:
        """Initialises keys and writes rank 0's value into `out`; otherwise as `init`."""
        self._check_open()
        self._warn_of_unused_options()
        self._exchange.begin(pairs(key, value), dict(pairs(key, out)), priority)

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
        self._exchange.exchange(pairs(key, value), None, priority)

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
        assert out is not None, "pull needs an array to write to"
        if not ignore_sparse:
            raise KVStoreError("a distributed store cannot pull with ignore_sparse=False")
        self._check_open()
        self._exchange.exchange(None, pairs(key, out), priority)

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
        values = pairs(key, value)
        outs = values if out is None else pairs(key, out)
        self._exchange.exchange(values, outs, priority)

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
        assert out is not None, "row_sparse_pull needs an array to write to"
        assert row_ids is not None, "row_sparse_pull needs row_ids"
        if isinstance(key, (int, str)):
            return self._exchange.pull_rows(key, out, row_ids, priority)
        if not len(key) == len(out) == len(row_ids):
            raise KVStoreError(
                f"got {len(key)} keys, {len(out)} arrays and {len(row_ids)} row_ids; they must "
                "be as many"
            )
        for name, arrays, rows in zip(key, out, row_ids):
            self._exchange.pull_rows(name, arrays, rows, priority)
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
            For one of another class after training began, or one that draws random numbers.
        """
        self._check_open()
        self._updater = self._exchange.set_optimizer(optimizer)

    def _set_updater(self, updater: Callable[[Key, Any, Any], None]) -> None:
        """Outside a cluster, has updater(key, gradient, value) update whole parameters.

        In a cluster it does nothing, as in MXNet's distributed stores.
        """
        self._check_open()
        self._exchange.set_updater(updater)
        self._updater = updater

    def set_gradient_compression(self, compression_params: Dict[str, Any]) -> None:
        """Compresses gradients, and their sums where no optimizer runs on the servers.

        Parameters
        ----------
        compression_params
            {'type': 'terngrad', 'clip_sigma': 2.5}: see the package compression, or python -m
            kvstore_ext --list. Options that are not given are taken from KVSTORE_EXT_OPTIONS.

        Raises
        ------
        OptionError
            For an unknown type or option, or a value out of range.
        KVStoreError
            Once there are keys.
        """
        self._check_open()
        given = compression.options_of_environment()
        self._exchange.compress(compression.parse({**given, **compression_params}))

    def adopt_optimizer(self, optimizer: mx.optimizer.Optimizer) -> None:
        """Tells a compressing store of the optimizer with which the script updates parameters.

        To be called by scripts that update parameters themselves; for Trainer and Module it is.

        The store learns parameters' names for the option `exclude`. With dgc it applies the
        optimizer's momentum in its stead, and sets it to 0.

        Raises
        ------
        KVStoreError
            With dgc, for a momentum that is not plain SGD's.
        """
        self._check_open()
        self._exchange.compressed.adopt(optimizer)

    def global_parameters(self) -> ContextManager[None]:
        """Has the script's parameters be the global ones for the block, to test or save them.

        With Slim-DP those of the servers take the place of this worker's own, which come back
        afterwards; with other stores they are the same.

            with store.global_parameters():
                print(accuracy(net, validation_data))
                net.save_parameters("model.params")
        """
        self._check_open()
        local = self._exchange.local
        return contextlib.nullcontext() if local is None else local.global_parameters()

    @property
    def carried(self) -> Carries:
        """What compression carries over from round to round; saved states have it."""
        return self._exchange.carried

    def stats(self) -> Dict[str, Any]:
        """What this process's lane has done since it was opened.

        Returns
        -------
        dict
            sent, received: bytes by type of message, headers of the network apart; ratio: of the
            gradients' size to that in which they left; zeros: share of compressed elements that
            came out as 0, from every sixteenth slice; scalers: a key's last one; non_finite: rounds
            of keys that did not count; encode, queue, wire, decode: seconds, added up over slices,
            which wait and travel at the same time; wire ends with the result's arrival.
        """
        return report(self._worker, self._exchange.keys)

    def barrier(self) -> None:
        """Waits until all workers have come here; raises ClusterError after `timeout`."""
        self._check_open()
        self._lane.barrier()

    def _barrier(self) -> None:
        self.barrier()

    def _send_command_to_servers(self, head: int, body: str) -> None:
        """Has the servers' controller execute a command; raises ClusterError after `timeout`."""
        self._check_open()
        self._lane.call(
            lambda: KVStore._send_command_to_servers(self._lane.stock, head, body),
            "answered a command",
        )

    def get_num_dead_node(self, node_id: int, timeout: int = 60) -> int:
        """How many processes were silent for so many seconds, by the scheduler's heartbeats.

        node_id adds up what is counted: 1 the scheduler, 2 servers, 4 workers.
        """
        if self.closed:
            raise KVStoreError("the store is closed")
        dead = ctypes.c_int()
        check_call(_LIB.MXKVStoreGetNumDeadNode(self.handle, node_id, ctypes.byref(dead), timeout))
        return dead.value

    def learned_order(self) -> List[Key]:
        """Keys in the order in which the next forward pass needs them; empty until it is known."""
        names = {arrays.identity: name for name, arrays in self._exchange.keys.items()}
        return [names[identity] for identity in self._worker.order() if identity in names]

    def take_trace(self) -> List[Tuple[float, str, Key, int, int, int]]:
        """Events on this store's dense keys since the last call, with the option `trace`: (time in
        seconds, what, key, slice, round, priority); what is 'ready', 'send', 'result' or 'done'.
        Those of the process's other stores are dropped."""
        names = {arrays.identity: name for name, arrays in self._exchange.keys.items()}
        return [
            (event[0], event[1], names[event[2]], *event[3:])
            for event in self._worker.take_trace()
            if event[2] in names
        ]

    def close(self) -> None:
        """Waits for all operations. Idempotent, and called at exit by itself.

        A process's last store waits for the other workers to close too, and raises ClusterError
        where the job failed.
        """
        if self.closed:
            return
        self.closed = True
        if self._exchange.local is not None:
            self._exchange.local.selector.join()
        if not self._worker.failure():
            with contextlib.suppress(MXNetError):  # of a computation: the script's to report
                mx.nd.waitall()
        self._lane.close()

    def fail(self, reason: str) -> None:
        """Ends the job on all processes, with this reason."""
        self._worker.abort(f"worker {self.rank}: {reason}")

    def _warn_of_unused_options(self) -> None:
        unused = compression.options_of_environment()
        if unused and self._exchange.compressed.method is None:
            warnings.warn(
                f"KVSTORE_EXT_OPTIONS has options of a compression, {', '.join(unused)}, but the "
                f"store {self.type} compresses nothing; mx.kv.create('terngrad'), say, does",
                stacklevel=3,
            )

    def _check_open(self) -> None:
        if self.closed:
            raise KVStoreError("the store is closed")
        failure = self._worker.failure()
        if failure:
            raise ClusterError(failure)
