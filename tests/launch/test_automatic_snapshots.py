"""kvstore-ext --snapshot: scripts that know nothing of snapshots go on from them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.processes import run_python
from tests.support.results import assert_same_bits, parameters_of

HEAD = """
import os
import signal
import sys

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

mx.random.seed(5)
np.random.seed(6)


def end_after(step):
    if step == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)


"""
NETWORK = """
net = gluon.nn.HybridSequential(prefix="net_")
net.add(gluon.nn.Dense(8), gluon.nn.BatchNorm(), gluon.nn.Dropout(0.5), gluon.nn.Dense(1))
net.initialize(mx.init.Xavier())
options = {"learning_rate": 0.1, "momentum": 0.9}
parameters = net.collect_params()
"""
LOOP = """
data = np.random.standard_normal((6, 4, 3))
for step in range(12):
    if step % 6 == 0:
        order = np.random.permutation(6)
        scale = mx.nd.random.uniform(1, 2)
    batch = data[order[step % 6]] + np.random.standard_normal((4, 3))
    with autograd.record():
        loss = (scale * net(mx.nd.array(batch))).square().sum()
    loss.backward()
    <step>
    end_after(step)
net.save_parameters(sys.argv[1])
"""
BY_STEP = f"""{HEAD}{NETWORK}
trainer = gluon.Trainer(parameters, "sgd", options, kvstore=mx.kv.create("p3"))
{LOOP.replace("<step>", "trainer.step(4)")}"""
IN_TWO = """trainer.allreduce_grads()
    for gradient in (parameter.grad() for parameter in parameters.values()
                     if parameter.grad_req != "null"):
        gradient.clip(-0.5, 0.5, out=gradient)
    trainer.update(4)"""
# Its own output has a new directory each time.
BY_UPDATE = f"""{HEAD}{NETWORK}
import tempfile
os.chdir(tempfile.mkdtemp(dir="."))
store = mx.kv.create("p3")
trainer = gluon.Trainer(parameters, "sgd", options, kvstore=store, update_on_kvstore=False)
{LOOP.replace("<step>", IN_TWO)}"""
# After a while it makes its steps in one.
BY_BOTH = BY_UPDATE.replace(IN_TWO, f"""if step < 3:
        {IN_TWO.replace(chr(10), chr(10) + "    ")}
    else:
        trainer.step(4)""")
# Two networks, each with a store: the critic makes two steps for each of the maker's.
ADVERSARIES = f"""{HEAD}
def make(prefix, width):
    net = gluon.nn.HybridSequential(prefix=prefix)
    net.add(gluon.nn.Dense(8), gluon.nn.BatchNorm(), gluon.nn.Dense(width))
    net.initialize(mx.init.Xavier())
    options = {{"learning_rate": 0.01, "momentum": 0.9}}
    return net, gluon.Trainer(net.collect_params(), "sgd", options, kvstore=mx.kv.create("p3"))


maker, makers = make("maker_", 3)
critic, critics = make("critic_", 1)
for step in range(12):
    for _ in range(2):
        noise = mx.nd.array(np.random.standard_normal((4, 2)))
        with autograd.record():
            loss = (critic(maker(noise)) - 1).square().sum()
        loss.backward()
        critics.step(4)
    with autograd.record():
        loss = critic(maker(noise)).square().sum()
    loss.backward()
    makers.step(4)
    end_after(step)
maker.save_parameters(sys.argv[1])
critic.save_parameters(sys.argv[1] + ".critic")
"""


# Each of two buckets is a Module, and all share the keys of one store.
BUCKETS = f"""{HEAD}
def symbol_of(length):
    data, label = mx.sym.var("data"), mx.sym.var("label")
    hidden = mx.sym.sum(data, axis=1, keepdims=True)
    output = mx.sym.FullyConnected(hidden, num_hidden=2, name="output")
    return mx.sym.LinearRegressionOutput(output, label, name="loss"), ("data",), ("label",)


module = mx.mod.BucketingModule(symbol_of, default_bucket_key=6)
shapes = {{length: ([mx.io.DataDesc("data", (4, length))], [mx.io.DataDesc("label", (4, 2))])
           for length in (6, 3)}}
module.bind(*shapes[6])
module.init_params(mx.init.Normal(0.5))
options = (("learning_rate", 0.1), ("momentum", 0.9))
module.init_optimizer(kvstore=mx.kv.create("p3"), optimizer_params=options)
for step in range(12):
    length = (6, 3)[step % 2]
    random = np.random.RandomState(step)
    batch = mx.io.DataBatch(
        [mx.nd.array(random.standard_normal((4, length)))],
        [mx.nd.array(random.standard_normal((4, 2)))], bucket_key=length,
        provide_data=shapes[length][0], provide_label=shapes[length][1])
    module.forward_backward(batch)
    module.update()
    end_after(step)
mx.nd.save(sys.argv[1], module.get_params()[0])
"""
# Of two heads each step trains one.
IN_TURNS = f"""{HEAD}
heads = [gluon.nn.Dense(1, in_units=3, prefix=f"head{{number}}_") for number in range(2)]
net = gluon.nn.Sequential(prefix="")
net.add(*heads)
net.initialize(mx.init.Xavier())
options = {{"learning_rate": 0.1, "momentum": 0.9}}
store = mx.kv.create("p3")
trainer = gluon.Trainer(net.collect_params(), "sgd", options, store, update_on_kvstore=False)
data = np.random.standard_normal((12, 4, 3))
for step in range(12):
    head = heads[(0, 1, 1, 1)[step % 4]]
    with autograd.record():
        loss = head(mx.nd.array(data[step])).square().sum()
    loss.backward()
    trainer.step(4, ignore_stale_grad=True)
    end_after(step)
net.save_parameters(sys.argv[1])
"""
# One of two stores is closed, and the other goes on.
LEFT_ALONE = f"""{HEAD}
runs = []
for prefix in ("first_", "second_"):
    net = gluon.nn.Dense(1, in_units=3, prefix=prefix)
    net.initialize(mx.init.Xavier())
    store, options = mx.kv.create("p3"), {{"learning_rate": 0.1, "momentum": 0.9}}
    runs.append((net, store, gluon.Trainer(net.collect_params(), "sgd", options, kvstore=store)))
for step in range(12):
    if step == 6:
        runs.pop(0)[1].close()
    batch = mx.nd.array(np.random.RandomState(step).standard_normal((4, 3)))
    for net, _, trainer in runs:
        with autograd.record():
            loss = net(batch).square().sum()
        loss.backward()
        trainer.step(4)
    end_after(step)
net.save_parameters(sys.argv[1])
"""
# It knows of snapshots, and takes its own into the same directory.
BY_ITSELF = f"""{HEAD}{NETWORK}
store = mx.kv.create("p3")
trainer = gluon.Trainer(parameters, "sgd", options, kvstore=store)
begin = store.restore("snapshots") or 0
print("begins at", begin, file=sys.stderr)
for step in range(begin, 12):
    batch = np.random.RandomState(step).standard_normal((4, 3))
    with autograd.record():
        loss = net(mx.nd.array(batch)).square().sum()
    loss.backward()
    trainer.step(4)
    store.snapshot("snapshots", every=4)
    end_after(step)
net.save_parameters(sys.argv[1])
"""


def run(directory: Path, script: str, snapshots: str, name: str, last: int) -> str:
    """Runs the script, which is killed after a step unless that is -1; returns what it says."""
    file = directory / "script.py"
    file.write_text(script)
    command = ("--snapshot", snapshots, "--every", 4, file, directory / name, last)
    status = 0 if last < 0 else None
    ended = run_python("-m", "kvstore_run", *command, status=status, directory=directory, fork=True)
    return ended.stderr


def check_bits_after_a_kill(directory: Path, script: str) -> None:
    """A run that is killed and goes on ends with the parameters of one that nobody disturbs."""
    run(directory, script, "undisturbed", "whole", -1)
    run(directory, script, "disturbed", "killed", 9)
    run(directory, script, "disturbed", "after", -1)
    whole, after = (parameters_of(directory / name) for name in ("whole", "after"))
    assert_same_bits(after, whole)


@pytest.mark.parametrize(
    ("script", "last", "after"),
    [
        (BY_STEP, 9, "[48]"),
        (BY_UPDATE, 9, "[48]"),
        (BY_BOTH, 9, "[48]"),
        (BUCKETS, 9, "[48]"),
        (ADVERSARIES, 7, "(4|8|12|16)"),
    ],
    ids=["step", "update", "both", "buckets", "adversaries"],
)
def test_a_script_that_knows_nothing_of_snapshots_goes_on_from_them(
    tmp_path: Path, script: str, last: int, after: str
) -> None:
    run(tmp_path, script, "undisturbed", "whole", -1)
    run(tmp_path, script, "disturbed", "killed", last)
    assert not (tmp_path / "killed").exists()
    notes = run(tmp_path, script, "disturbed", "after", -1)
    assert re.search(f"goes on from step {after}, of a snapshot in .*disturbed(/store-1)?;", notes)
    for name in ("", ".critic") if script == ADVERSARIES else ("",):
        whole = parameters_of(tmp_path / f"whole{name}")
        assert len(whole) == (2 if script == BUCKETS else 8)
        assert_same_bits(parameters_of(tmp_path / f"after{name}"), whole)


def test_a_store_that_takes_the_place_of_a_closed_one_goes_on_too(tmp_path: Path) -> None:
    run(tmp_path, LEFT_ALONE, "undisturbed", "whole", -1)
    run(tmp_path, LEFT_ALONE, "disturbed", "killed", 9)
    notes = run(tmp_path, LEFT_ALONE, "disturbed", "after", -1)
    assert re.search("goes on from step 4, of a snapshot in .*disturbed;", notes)
    assert re.search("goes on from step [78], of a snapshot in .*disturbed/store-1;", notes)
    assert_same_bits(parameters_of(tmp_path / "after"), parameters_of(tmp_path / "whole"))


def test_a_script_that_ends_before_it_is_where_it_was_is_told(tmp_path: Path) -> None:
    """By a score, say, that is not the same again."""
    ends = "    if step == 2 and os.path.exists('ends'):\n        break\n"
    script = BY_STEP.replace("    end_after(step)\n", f"    end_after(step)\n{ends}")
    run(tmp_path, script, "snapshots", "killed", 9)
    (tmp_path / "ends").touch()
    said = run(tmp_path, script, "snapshots", "result", -1)
    assert re.search("has ended after 3 of the [48] steps that it was to repeat, and has", said)
    (tmp_path / "ends").unlink()
    assert "has ended after" not in run(tmp_path, script, "snapshots", "result", -1)


def test_a_script_that_goes_on_by_itself_repeats_nothing(tmp_path: Path) -> None:
    for name in ("undisturbed", "disturbed"):
        (tmp_path / name).mkdir()
    run(tmp_path / "undisturbed", BY_ITSELF, "snapshots", "result", -1)
    run(tmp_path / "disturbed", BY_ITSELF, "snapshots", "killed", 9)
    assert not (tmp_path / "disturbed" / "killed").exists()
    said = run(tmp_path / "disturbed", BY_ITSELF, "snapshots", "result", -1)
    assert "until the script has come there" not in said
    assert re.search("^begins at [48]$", said, re.MULTILINE), said
    found, whole = (
        parameters_of(tmp_path / name / "result") for name in ("disturbed", "undisturbed")
    )
    assert_same_bits(found, whole)


def test_a_script_without_trainer_or_module_is_told(tmp_path: Path) -> None:
    script = f"""{HEAD}
store = mx.kv.create("p3")
value = mx.nd.zeros((3,))
store.broadcast("weight", value, out=value)
for step in range(5):
    store.pushpull("weight", mx.nd.ones((3,)), out=value)
value.wait_to_read()
"""
    said = run(tmp_path, script, "snapshots", "result", -1)
    assert re.search("no snapshot is in .*: the script has made 5 steps, and none by Trainer", said)
    assert "no snapshot is in" not in run(tmp_path, BY_STEP, "snapshots", "result", -1)


def test_a_script_without_a_store_of_ours_is_told(tmp_path: Path) -> None:
    script = BY_STEP.replace('kvstore=mx.kv.create("p3")', "kvstore=None")
    said = run(tmp_path, script, "snapshots", "result", -1)
    assert "the script has trained without a store of kvstore_ext" in said


def test_steps_that_the_store_counts_otherwise_are_refused(tmp_path: Path) -> None:
    """Or it would go on later than where the snapshot was taken, and leave steps out."""
    metric = """
    if step == 2:
        total = mx.nd.ones((1,))
        store.init("metric", total)
        for batch in range(3):
            store.pushpull("metric", total)
    end_after(step)"""
    script = BY_STEP.replace("\n    end_after(step)", metric)
    script = script.replace("trainer =", 'store = mx.kv.create("p3")\ntrainer =')
    script = script.replace('kvstore=mx.kv.create("p3")', "kvstore=store")
    with pytest.raises(AssertionError, match="of which the script has made 4, and its store has"):
        run(tmp_path, script, "snapshots", "result", -1)


def test_a_step_that_ends_without_an_update_counts(tmp_path: Path) -> None:
    """As where a script skips those that overflow."""
    skips = BY_STEP.replace("    trainer.step(4)", """    trainer.allreduce_grads()
    if step != 2:
        trainer.update(4)""")
    script = skips.replace("options, kvstore=", "options, update_on_kvstore=False, kvstore=")
    check_bits_after_a_kill(tmp_path, script)


@pytest.mark.parametrize("how", ["", "update_on_kvstore=False, "])
def test_a_trainer_may_load_states(tmp_path: Path, how: str) -> None:
    """As where a script goes back to what was best."""
    goes_back = BY_STEP.replace("    end_after(step)", """    if step == 4:
        trainer.save_states(sys.argv[1] + ".states")
    if step == 6:
        trainer.load_states(sys.argv[1] + ".states")
    end_after(step)""")
    script = goes_back.replace("options, kvstore=", f"options, {how}kvstore=")
    check_bits_after_a_kill(tmp_path, script)


def test_gradients_of_repeated_steps_are_used_up(tmp_path: Path) -> None:
    """Each step trains one of two heads, and the other's gradient is an old one."""
    check_bits_after_a_kill(tmp_path, IN_TURNS)


def test_uneven_steps_are_refused(tmp_path: Path) -> None:
    script = f"""{HEAD}{NETWORK}
store = mx.kv.create("p3")
trainer = gluon.Trainer(parameters, "sgd", options, kvstore=store)
with autograd.record():
    loss = net(mx.nd.ones((4, 3))).sum()
loss.backward()
try:
    with store.joined():
        trainer.step(4)
except mx.MXNetError as error:
    print(error, file=sys.stderr)
"""
    said = run(tmp_path, script, "snapshots", "result", -1)
    assert "--snapshot takes one after each step, and within store.joined()" in said
