#!/usr/bin/env python3
"""JAX's side of bench/pjrt_jax.py: trains a Llama in pure jax.numpy, and prints losses and times as one line of JSON.

    pjrt_jax_model.py JOB.json

JOB.json, which bench/pjrt_jax.py writes: `weights` and `config`, files of a Hugging Face folder; `rows`, a file of
`skein data sample --json --count`; `precision`, fp32 or bf16; `optimizer`, the keys of [optimizer] in a configuration;
`steps`; `plugin`, the path of a PJRT plugin, or "" for JAX's own CPU client; `form`, a Form below.

What is computed  that which docs/notation.md defines, with documents masked from each other. In bf16 weights,
                  activations and the gradients of a micro-batch are bf16, and moments, sums of gradients and the
                  update fp32; the updated weight is rounded to nearest
How               one jitted program for a whole step, which takes weights and moments as donated arguments
"""
import dataclasses
import functools
import json
import math
import sys
import time

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

NO_LABEL = -100


@dataclasses.dataclass(frozen=True)
class Form:
    """The choices that change speed alone."""
    micro: int = 4                # sequences that a forward and backward runs at once
    loop: str = "unrolled"        # over micro-batches: unrolled or scan
    layers: str = "unrolled"      # or scan, over stacked weights
    attention: str = "blocks:128"  # a block of queries with the keys up to its end; or whole: all keys for all queries
    projections: str = "joined"   # q, k, v in one product, gate and up in another; or separate
    loss: str = "derived"         # by JAX; or written: the gradient of the logits in the forward pass
    head: str = "tied"            # or copied: each of the two uses of the embedding has a gradient of its own
    embedding: str = "scatter"    # how rows of its gradient are added: scatter or product (with one-hot rows)
    products: str = "copied"      # gradients of products: derived (by JAX), written (of operands and with results in
    #                               the model's dtype), or copied (so, with operands transposed by a copy, below)

    @classmethod
    def parse(cls, text):
        """Of "micro=8,loss=written"; what is not named has its default."""
        chosen = dict(part.split("=") for part in text.split(",") if part)
        unknown = set(chosen) - {field.name for field in dataclasses.fields(cls)}
        if unknown:
            sys.exit(f"a form has no {', '.join(sorted(unknown))}: expected keys of Form, such as micro=8")
        if "micro" in chosen:
            chosen["micro"] = int(chosen["micro"])
        return cls(**chosen)


# ---- what a run reads ----

def read_tensors(path):
    """All tensors of a safetensors file as fp32."""
    dtypes = {"F32": np.float32, "BF16": ml_dtypes.bfloat16}
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        body = file.read()
    header.pop("__metadata__", None)
    tensors = {}
    for name, tensor in header.items():
        begin, end = tensor["data_offsets"]
        values = np.frombuffer(body[begin:end], dtype=dtypes[tensor["dtype"]])
        tensors[name] = values.reshape(tensor["shape"]).astype(np.float32)
    return tensors


def read_batches(path):
    """[tokens, labels, positions, first visible key] of each step, i32[4, sequences, length]."""
    batches = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            rows = json.loads(line)["rows"]
            starts = []
            for row in rows:
                begins = np.zeros(len(row["tokens"]), np.int32)
                begins[row["document_starts"]] = row["document_starts"]
                starts.append(np.maximum.accumulate(begins))
            arrays = [[row[key] for row in rows] for key in ("tokens", "labels", "positions")]
            batches.append(np.array(arrays + [starts], np.int32))
    return batches


def learning_rate(optimizer, step):
    peak, floor = optimizer["learning_rate"], optimizer["min_learning_rate"]
    warmup, decay = optimizer["warmup_steps"], optimizer["decay_steps"]
    if step <= warmup:
        return peak * step / warmup
    share = min(1.0, (step - warmup) / decay)
    return floor + (peak - floor) * (1 + math.cos(math.pi * share)) / 2


# ---- the model ----

class Llama:
    def __init__(self, config, form, dtype):
        self.form, self.dtype = form, dtype
        self.hidden, self.layers = config["hidden_size"], config["num_hidden_layers"]
        self.heads, self.kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
        self.head_dim, self.inner = config["head_dim"], config["intermediate_size"]
        self.vocab, self.epsilon = config["vocab_size"], config["rms_norm_eps"]
        self.theta = config.get("rope_theta") or config["rope_parameters"]["rope_theta"]
        if not config["tie_word_embeddings"]:
            sys.exit("tie_word_embeddings is false: expected a model whose head is its embedding")

    def parameters(self, tensors):
        """Of a Hugging Face folder's tensors. Weights of products are [outputs, inputs], as there."""
        def weight(*names):
            return np.concatenate([tensors[name + ".weight"] for name in names])

        def layer(i):
            attention, mlp = f"model.layers.{i}.self_attn.", f"model.layers.{i}.mlp."
            qkv = [attention + name for name in ("q_proj", "k_proj", "v_proj")]
            gate_up = [mlp + name for name in ("gate_proj", "up_proj")]
            weights = {"attention_norm": tensors[f"model.layers.{i}.input_layernorm.weight"],
                       "mlp_norm": tensors[f"model.layers.{i}.post_attention_layernorm.weight"],
                       "out": weight(attention + "o_proj"), "down": weight(mlp + "down_proj")}
            if self.form.projections == "joined":
                return weights | {"qkv": weight(*qkv), "gate_up": weight(*gate_up)}
            return weights | {name.rpartition(".")[2]: weight(name) for name in qkv + gate_up}

        layers = [layer(i) for i in range(self.layers)]
        if self.form.layers == "scan":
            layers = jax.tree.map(lambda *parts: np.stack(parts), *layers)
        weights = {"embedding": tensors["model.embed_tokens.weight"], "norm": tensors["model.norm.weight"],
                   "layers": layers}
        return jax.tree.map(lambda x: np.ascontiguousarray(x).astype(self.dtype), weights)

    def product(self, x, w):
        """x w^T, summed in fp32."""
        if self.form.products == "derived":
            return jnp.matmul(x, w.T, preferred_element_type=jnp.float32).astype(self.dtype)
        rows = x.reshape(-1, x.shape[-1])
        return linear(rows, w, self.form.products == "copied").astype(self.dtype).reshape(*x.shape[:-1], w.shape[0])

    def multiply(self, a, b, b_dim):
        """Of each head: a [rows, n] with dim `b_dim` of b as the one that is summed over; fp32."""
        if self.form.products == "derived":
            return batch_dot(a, b, 3, b_dim)
        return batch_product(a, b, b_dim, self.form.products == "copied")

    def rms_norm(self, x, w):
        wide = x.astype(jnp.float32)
        scale = jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + self.epsilon)
        return (wide * scale * w.astype(jnp.float32)).astype(self.dtype)

    def rotations(self, positions):
        """Cosines and sines, [sequences, length, 1, head_dim / 2]."""
        dims = np.arange(0, self.head_dim, 2, dtype=np.float64) / self.head_dim
        angles = np.arange(positions.shape[-1])[:, None] * self.theta ** -dims
        table = jnp.asarray(np.stack([np.cos(angles), np.sin(angles)]), jnp.float32)
        return [part[positions][:, :, None] for part in table]

    def rotate(self, x, rotations):
        cos, sin = rotations
        first, second = jnp.split(x.astype(jnp.float32), 2, axis=-1)
        return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], -1).astype(self.dtype)

    def attend(self, q, k, v, begins):
        """q, k, v [sequences, length, heads, head_dim]; begins [sequences, length]."""
        sequences, length, group = q.shape[0], q.shape[1], self.heads // self.kv_heads
        q = q.reshape(sequences, length, self.kv_heads, group, self.head_dim).transpose(0, 2, 3, 1, 4)
        k, v = k.transpose(0, 2, 1, 3), v.transpose(0, 2, 1, 3)
        kind, _, size = self.form.attention.partition(":")
        size = int(size) if kind == "blocks" else length

        def block(begin):
            end = begin + size
            keys = jnp.arange(end)
            of_queries = begins[:, begin:end, None]
            is_visible = (keys <= jnp.arange(begin, end)[:, None]) & (keys >= of_queries)
            rows = q[:, :, :, begin:end].reshape(sequences, self.kv_heads, group * size, self.head_dim)
            scores = self.multiply(rows, k[:, :, :end], 3) * (1 / math.sqrt(self.head_dim))
            scores = scores.reshape(sequences, self.kv_heads, group, size, end)
            scores = jnp.where(is_visible[:, None, None], scores, -1e30)
            shares = jax.nn.softmax(scores, axis=-1).astype(self.dtype)
            shares = shares.reshape(sequences, self.kv_heads, group * size, end)
            attended = self.multiply(shares, v[:, :, :end], 2).astype(self.dtype)
            return attended.reshape(sequences, self.kv_heads, group, size, self.head_dim)

        blocks = [block(begin) for begin in range(0, length, size)]
        attended = blocks[0] if len(blocks) == 1 else jnp.concatenate(blocks, axis=3)
        return attended.transpose(0, 3, 1, 2, 4).reshape(sequences, length, self.heads * self.head_dim)

    def layer(self, x, w, rotations, begins):
        sequences, length = x.shape[:2]
        sizes = [self.heads * self.head_dim, self.kv_heads * self.head_dim, self.kv_heads * self.head_dim]
        n = self.rms_norm(x, w["attention_norm"])
        if "qkv" in w:
            q, k, v = jnp.split(self.product(n, w["qkv"]), [sizes[0], sizes[0] + sizes[1]], axis=-1)
        else:
            q, k, v = (self.product(n, w[name]) for name in ("q_proj", "k_proj", "v_proj"))
        q, k, v = (part.reshape(sequences, length, -1, self.head_dim) for part in (q, k, v))
        attended = self.attend(self.rotate(q, rotations), self.rotate(k, rotations), v, begins)
        x = x + self.product(attended, w["out"])
        n = self.rms_norm(x, w["mlp_norm"])
        if "gate_up" in w:
            gate, up = jnp.split(self.product(n, w["gate_up"]), 2, axis=-1)
        else:
            gate, up = self.product(n, w["gate_proj"]), self.product(n, w["up_proj"])
        gate, up = gate.astype(jnp.float32), up.astype(jnp.float32)
        return x + self.product((jax.nn.silu(gate) * up).astype(self.dtype), w["down"])

    def loss(self, parameters, batch):
        """The sum over label tokens, which the caller divides by their number."""
        tokens, labels, positions, begins = batch
        rotations = self.rotations(positions)
        table = parameters["embedding"]
        x = look_up(table, tokens) if self.form.embedding == "product" else table[tokens]
        one_layer = functools.partial(self.layer, rotations=rotations, begins=begins)
        if self.form.layers == "scan":
            x, _ = jax.lax.scan(lambda x, w: (one_layer(x, w), None), x, parameters["layers"])
        else:
            for w in parameters["layers"]:
                x = one_layer(x, w)
        x = self.rms_norm(x, parameters["norm"]).reshape(-1, self.hidden)
        logits = self.product(x, parameters.get("head", table))
        form = cross_entropy if self.form.loss == "derived" else written_cross_entropy
        return form(logits, labels.reshape(-1))


# ---- products with gradients of their own ----
#
# XLA's CPU compiler passes a product to its fast library, in bf16 without conversions, if neither operand is summed
# over along its rows, as both are in dw = dy^T x. A transpose alone is undone by the compiler, which is why rows are
# first divided into spans.

def copied_transpose(x):
    """The last two dims of x, exchanged by a copy."""
    *batch, rows, cols = x.shape
    span = math.gcd(rows, 64)
    divided = x.reshape(*batch, rows // span, span, cols)
    n = len(batch)
    moved = jax.lax.optimization_barrier(divided.transpose(*range(n), n + 2, n, n + 1))
    return moved.reshape(*batch, cols, rows)


def dot(a, b, a_dim, b_dim, batch=()):
    """Summed in fp32, and fp32."""
    return jax.lax.dot_general(a, b, (((a_dim,), (b_dim,)), (batch, batch)), preferred_element_type=jnp.float32)


def batch_dot(a, b, a_dim, b_dim):
    return dot(a, b, a_dim, b_dim, batch=(0, 1))


def sum_over_rows(a, b, is_copied, batch=()):
    """a^T b"""
    n = len(batch)
    return dot(copied_transpose(a), b, n + 1, n, batch) if is_copied else dot(a, b, n, n, batch)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def linear(x, w, is_copied):
    """x w^T in fp32; x [rows, inputs], w [outputs, inputs]."""
    return dot(x, w, 1, 1)


def linear_backward(is_copied, kept, grads):
    x, w = kept
    grads = grads.astype(x.dtype)
    return dot(grads, w, 1, 0).astype(x.dtype), sum_over_rows(grads, x, is_copied).astype(w.dtype)


linear.defvjp(lambda x, w, is_copied: (linear(x, w, is_copied), (x, w)), linear_backward)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def batch_product(a, b, b_dim, is_copied):
    """Of each head: a b^T (b_dim 3) or a b (2), in fp32."""
    return batch_dot(a, b, 3, b_dim)


def batch_product_backward(b_dim, is_copied, kept, grads):
    a, b = kept
    grads = grads.astype(a.dtype)
    to_a = batch_dot(grads, b, 3, 5 - b_dim)
    left, right = (grads, a) if b_dim == 3 else (a, grads)
    return to_a.astype(a.dtype), sum_over_rows(left, right, is_copied, batch=(0, 1)).astype(b.dtype)


batch_product.defvjp(lambda a, b, b_dim, is_copied: (batch_dot(a, b, 3, b_dim), (a, b)), batch_product_backward)


# ---- the loss ----

def cross_entropy(logits, labels):
    logits = logits.astype(jnp.float32)
    of_label = jnp.take_along_axis(logits, jnp.maximum(labels, 0)[:, None], axis=-1)[:, 0]
    losses = jax.nn.logsumexp(logits, axis=-1) - of_label
    return jnp.sum(jnp.where(labels == NO_LABEL, 0, losses))


@jax.custom_vjp
def written_cross_entropy(logits, labels):
    return cross_entropy(logits, labels)


def written_forward(logits, labels):
    wide = logits.astype(jnp.float32)
    most = jnp.max(wide, axis=-1, keepdims=True)
    powers = jnp.exp(wide - most)
    total = jnp.sum(powers, axis=-1, keepdims=True)
    is_label = jnp.arange(wide.shape[1]) == labels[:, None]
    has_label = labels != NO_LABEL
    of_label = jnp.take_along_axis(wide, jnp.maximum(labels, 0)[:, None], axis=-1)
    losses = (jnp.log(total) + most - of_label)[:, 0]
    grads = jnp.where(has_label[:, None], powers / total - is_label, 0).astype(logits.dtype)
    return jnp.sum(jnp.where(has_label, losses, 0)), grads


def written_backward(grads, by):
    return (grads * by.astype(grads.dtype)), None


written_cross_entropy.defvjp(written_forward, written_backward)


@jax.custom_vjp
def look_up(table, tokens):
    return table[tokens]


def look_up_forward(table, tokens):
    return table[tokens], (tokens, table.shape[0])


def look_up_backward(kept, grads):
    tokens, rows = kept
    one_hot = jax.nn.one_hot(tokens.reshape(-1), rows, dtype=grads.dtype, axis=0)
    return jnp.matmul(one_hot, grads.reshape(-1, grads.shape[-1])), None


look_up.defvjp(look_up_forward, look_up_backward)


# ---- a step ----

def gradients(model, weights, batch):
    """The loss and the gradient sums of all micro-batches, fp32. batch i32[4, sequences, length]."""
    form = model.form
    sequences = batch.shape[1]
    micros = sequences // form.micro
    parameters = weights | {"head": weights["embedding"]} if form.head == "copied" else weights
    one = jax.value_and_grad(model.loss)

    def wide(grads):
        grads = jax.tree.map(lambda g: g.astype(jnp.float32), grads)
        if form.head == "copied":
            head = grads.pop("head")
            grads["embedding"] = grads["embedding"] + head
        return grads

    def of(micro_batch):
        loss, grads = one(parameters, micro_batch)
        return loss, wide(grads)

    parts = batch.reshape(4, micros, form.micro, -1).swapaxes(0, 1)
    if micros == 1:
        return of(parts[0])
    if form.loop == "scan":
        zeros = jax.tree.map(lambda w: jnp.zeros(w.shape, jnp.float32), weights)
        sums, _ = jax.lax.scan(lambda sums, part: (jax.tree.map(jnp.add, sums, of(part)), None),
                               (jnp.float32(0), zeros), parts)
        return sums
    terms = [of(part) for part in parts]
    return functools.reduce(lambda a, b: jax.tree.map(jnp.add, a, b), terms)


def make_step(model, optimizer):
    beta1, beta2 = optimizer["beta1"], optimizer["beta2"]
    epsilon, weight_decay, most = optimizer["epsilon"], optimizer["weight_decay"], optimizer["clip_norm"]

    def step(state, batch, number, rate):
        weights, moments, squares = state
        labels = jnp.sum(batch[1] != NO_LABEL).astype(jnp.float32)
        loss, grads = gradients(model, weights, batch)
        norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(grads))) / labels
        scale = jnp.minimum(1, most / (norm + 1e-6)) / labels
        size = rate / (1 - beta1 ** number)
        inverse_root = 1 / jnp.sqrt(1 - beta2 ** number)

        def update(w, m, v, g):
            g = g * scale
            m = m + (1 - beta1) * (g - m)
            v = beta2 * v + (1 - beta2) * g * g
            wide = w.astype(jnp.float32) * (1 - rate * weight_decay) - size * m / (jnp.sqrt(v) * inverse_root + epsilon)
            return wide.astype(w.dtype), m, v

        updated = jax.tree.map(update, weights, moments, squares, grads)
        state = tuple(jax.tree.map(lambda _, new, i=i: new[i], weights, updated) for i in range(3))
        return state, loss / labels, norm

    return step


def open_plugin(path):
    """JAX's devices become those of the plugin."""
    from jax._src import xla_bridge
    xla_bridge.register_plugin("bench_plugin", library_path=path, priority=500)
    jax.config.update("jax_platforms", "bench_plugin")


def run(job):
    if job["plugin"]:
        open_plugin(job["plugin"])
    device = jax.devices()[0]
    form = Form.parse(job["form"])
    dtype = {"fp32": np.float32, "bf16": ml_dtypes.bfloat16}[job["precision"]]
    with open(job["config"], encoding="utf-8") as file:
        model = Llama(json.load(file), form, dtype)
    weights = model.parameters(read_tensors(job["weights"]))
    batches = read_batches(job["rows"])
    if batches[0].shape[1] % form.micro:
        sys.exit(f"micro is {form.micro}: expected a divisor of {batches[0].shape[1]} sequences")
    zeros = jax.tree.map(lambda w: np.zeros(w.shape, np.float32), weights)
    state = jax.device_put((weights, zeros, zeros), device)

    step = jax.jit(make_step(model, job["optimizer"]), donate_argnums=0)
    scalar = jax.ShapeDtypeStruct((), jnp.float32)
    lowered = step.lower(state, jax.ShapeDtypeStruct(batches[0].shape, jnp.int32), scalar, scalar)
    begin = time.perf_counter()
    compiled = lowered.compile(compiler_options=job.get("compiler_options") or None)
    compile_s = time.perf_counter() - begin

    losses, norms, times = [], [], []
    for number in range(1, job["steps"] + 1):
        begin = time.perf_counter()
        rate = np.float32(learning_rate(job["optimizer"], number))
        state, loss, norm = compiled(state, batches[number - 1], np.float32(number), rate)
        losses.append(float(loss))  # waits for the step
        norms.append(float(norm))
        times.append((time.perf_counter() - begin) * 1e3)
    return {"form": dataclasses.asdict(form), "compile_s": compile_s, "losses": losses, "grad_norms": norms,
            "step_ms": times}


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    print(json.dumps(run(job)))


if __name__ == "__main__":
    main()
