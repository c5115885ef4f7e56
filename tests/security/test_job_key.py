"""The key of a job, and what its first words are worth."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import mxnet as mx
import pytest
from kvstore_ext import _core
from kvstore_ext.errors import ClusterError, OptionError
from kvstore_ext.security.curve_hello import ANSWER_BYTES, CurveHello, receive
from kvstore_ext.security.encryption import encrypt_process
from kvstore_ext.security.job_key import NAME, JobKey

from tests.support.processes import run_python

from . import library_slots


def test_a_key_is_64_hexadecimal_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(NAME, raising=False)
    assert JobKey.from_environment() is None
    monkeypatch.setenv(NAME, "0aF" + 61 * "0")
    key = JobKey.from_environment()
    assert key is not None
    assert key.secret == b"\x0a\xf0" + bytes(30)


@pytest.mark.parametrize(
    "text", ["", "sesame", 63 * "a", 65 * "a", 63 * "a" + "g", 64 * "a" + "\n"]
)
def test_anything_else_is_refused_and_not_repeated(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv(NAME, text)
    with pytest.raises(OptionError, match="it must be 64 hexadecimal digits") as refused:
        JobKey.from_environment()
    assert not text or text.strip() not in str(refused.value)


def test_what_is_derived_is_one_for_each_purpose_and_key() -> None:
    one, other = JobKey(bytes(32)), JobKey(bytes(31) + b"\x01")
    known = {
        one.secret, one.socket_secret, other.socket_secret,
        bytes.fromhex(one.fingerprint), bytes.fromhex(other.fingerprint),
    }
    assert len(known) == 5
    assert one.fingerprint not in one.socket_secret.hex()
    assert one.secret.hex() not in repr(one)
    # Old processes of a job and new ones must find the same.
    assert one.fingerprint == "c340297c"


def test_no_answer_but_that_of_the_key_is_taken() -> None:
    hello = CurveHello(bytes(31) + b"\x01")
    start = bytes([4, 168]) + b"\x07WELCOME"
    for answer in (b"", start, start.ljust(ANSWER_BYTES, b"\0"), hello.frame[:ANSWER_BYTES]):
        assert not hello.is_answered_by(answer)


def test_what_is_looked_for_in_other_libraries_is_what_this_one_has() -> None:
    """`library_slots` tells of an MXNet that cannot be loaded here."""
    (library,) = mx.libinfo.find_lib_path()
    assert len(library_slots.replaced()) == 16
    assert {"_ZN2ps3Van4SendERKNS_7MessageE", "zmq_setsockopt"} < library_slots.called()
    assert library_slots.lacks(library) == []
    missing = library_slots.lacks(_core.__file__)
    assert {"0 slots of zmq_bind", "no zmq_bind", "no MXGetLastError"} < set(missing)


def test_a_process_that_cannot_encrypt_does_not_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mx.libinfo, "find_lib_path", lambda: ["libm.so.6"])
    refused = f"{NAME} is set, but this server cannot encrypt: libmxnet.so has no zmq_msg_init_size"
    with pytest.raises(ClusterError, match=refused):
        encrypt_process(JobKey(bytes(32)), "server")


def test_who_says_a_byte_now_and_then_is_not_waited_for() -> None:
    one, other = socket.socketpair()
    ended = threading.Event()

    def drip() -> None:
        while not ended.wait(0.05):
            other.sendall(b".")

    dripping = threading.Thread(target=drip)
    dripping.start()
    with one, other:
        one.settimeout(0.5)
        try:
            with pytest.raises(socket.timeout):
                receive(one, 60)  # which take three seconds
        finally:
            ended.set()
            dripping.join()


def test_a_library_that_has_not_what_strangers_are_kept_out_by_is_named() -> None:
    missing = _core.harden("libm.so.6")
    assert len(missing) == 2
    assert all(reason.startswith("libmxnet.so has no zmq_msg_init_size") for reason in missing)


IMPORTED_AGAIN = """
import ctypes, os, subprocess
import kvstore_ext
import mxnet as mx
from kvstore_ext import _core
from kvstore_ext.security.encryption import encrypt_process
from kvstore_ext.security.job_key import JobKey

library = os.path.realpath(mx.libinfo.find_lib_path()[0])
command = ["readelf", "-W", "-r", library]
lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
(place,) = [int(line.split()[0], 16) for line in lines if line.split()[4:5] == ["zmq_bind"]]
with open("/proc/self/maps") as maps:
    base = min(int(line.split("-")[0], 16) for line in maps if line.rstrip().endswith(library))
slot = ctypes.c_uint64.from_address(base + place)
encrypt_process(JobKey(bytes(32)), "worker")
encrypting = slot.value
assert _core.harden(library) == []
assert slot.value == encrypting
"""


def test_a_process_that_encrypts_still_does_after_another_import(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(IMPORTED_AGAIN)
    run_python(script)
