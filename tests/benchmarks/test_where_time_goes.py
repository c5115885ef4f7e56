"""What perf's samples are called; counting them needs perf."""
from __future__ import annotations

import pytest
from where_time_goes import OTHER, kind_of, samples

TEXT = """
 ffffffff821f39e5 _copy_from_iter ([kernel.kallsyms])
     7f9c9a7f6e62 std::_Function_handler<void (ps::Message const&)> (/a b/libmxnet.so)
                0 [unknown]
"""


def test_samples_are_a_library_and_a_function() -> None:
    assert list(samples(TEXT)) == [
        ("kernel.kallsyms", "_copy_from_iter"),
        ("libmxnet.so", "std::_Function_handler<void (ps::Message const&)>"),
    ]


@pytest.mark.parametrize(
    ("library", "function", "kind"),
    [
        ("kernel.kallsyms", "_copy_to_iter", "the kernel copies what travels"),
        ("kernel.kallsyms", "tcp_sendmsg_locked", "the kernel's network"),
        ("kernel.kallsyms", "clear_page_erms", "the kernel gives memory"),
        ("kernel.kallsyms", "finish_task_switch.isra.0",
         "threads wait, wake and switch; the kernel's rest"),
        ("libc.so.6", "__memmove_avx512_unaligned_erms", "copying in memory"),
        ("libc.so.6", "_int_malloc", "allocating"),
        ("libc.so.6", "pthread_mutex_lock", "libc's rest: locks, clocks, polling"),
        ("_core.cpython-311-x86_64-linux-gnu.so", "kvstore_ext::AddTo", "adding up"),
        ("_core.cpython-311-x86_64-linux-gnu.so", "kvstore_ext::Link::Send", "the core's rest"),
        ("libmxnet.so", "zmq::epoll_t::loop", "ZeroMQ and ps-lite"),
        ("libmxnet.so", "mxnet::op::Fill", "MXNet"),
        ("libpython3.11.so.1.0", "_PyEval_EvalFrameDefault", "Python"),
        ("libcrypto.so.3", "[unknown]", OTHER),
    ],
)
def test_each_sample_is_of_one_kind(library: str, function: str, kind: str) -> None:
    assert kind_of(library, function) == kind
