"""As forward_gluon.py, with a Module."""

from __future__ import annotations

import json

import kvstore_ext  # noqa: F401
import mxnet as mx
from gluon_models.resnet50 import ResNet50

from tests.support.workers.overlap.watched import (
    CLASSES,
    IMAGES,
    LABELS,
    SHAPE,
    Watched,
    blocks_of,
    parameters_of,
)

store = mx.kv.create("p3")
net = Watched(ResNet50(CLASSES))
*outputs, logits = net(mx.sym.var("data"))
seen = [mx.sym.BlockGrad(output) for output in outputs]
symbol = mx.sym.Group([*seen, mx.sym.SoftmaxOutput(logits, name="softmax")])
module = mx.mod.Module(symbol)
module.bind([("data", SHAPE)], [("softmax_label", SHAPE[:1])])
module.init_params(mx.init.Xavier())
module.init_optimizer(kvstore=store, optimizer_params={"learning_rate": 0.01})
batch = mx.io.DataBatch([IMAGES], [LABELS])


def update_block_by_block() -> None:
    """As module.update(), but after each block it waits for rank 0."""
    group = module._exec_group
    for block in blocks_of(net.net):
        for parameter in parameters_of(block):
            i = group.param_names.index(parameter.name)
            store.pushpull(
                parameter.name, group.grad_arrays[i], out=group.param_arrays[i], priority=-i
            )
        store.barrier()


for _ in range(2):
    module.forward_backward(batch)
    module.update()
mx.nd.waitall()
module.forward_backward(batch)
if store.rank == 1:
    update_block_by_block()
else:
    module.update()
    module.forward(batch, is_train=True)
    for number, output in enumerate(module.get_outputs()):
        output.wait_to_read()
        print("module block", number, "has run", flush=True)
        store.barrier()
mx.nd.waitall()
print(json.dumps({"needed": module._exec_group.param_names, "learned": store.learned_order()}))
