#!/usr/bin/env python3
"""A Llama, a Qwen3, a Mixtral, a DeepSeek-V3 and a GPT-2 in plain PyTorch, in float64, that know nothing of hyperrun: what hyperrun must compute.

  torch_fixture.py DIRECTORY            writes the files below, for each variant in DIRECTORY/VARIANT
  torch_fixture.py --compare DIRECTORY  computes them anew and compares; exit status 1 when they differ,
                                        77 when PyTorch is not installed

Variants: llama, tied (a llama whose head is the embedding), qwen3, mixtral, deepseek_v3 (with a dense layer, groups
of experts, a bias of scores and a module that predicts one token further, whose loss is in the gradients alone), gpt2
(whose table has more positions than a text), gpt2_untied.

model.safetensors     initial weights under Hugging Face's names, as a checkpoint that hyperrun can load
expected.safetensors
  ids, targets        [batch, seq], the same at every step
  loss                of steps 0, 1, 2
  grad_norm           of steps 0, 1, 2, before clipping
  logits              [batch, seq, vocab] of step 0
  grad.NAME           of step 0, before clipping
  after.NAME          weights after three steps of AdamW with clipping, warm-up and cosine

The sizes and rates below are repeated in torch_test.cc.
"""
import argparse
import json
import math
import os
import struct
import sys

try:
    import torch
except ImportError:
    print("skipped: PyTorch is not installed (Debian: python3-torch)")
    sys.exit(77)

LAYERS, HIDDEN, HEADS, KV_HEADS, HEAD_DIM, FFN, VOCAB, SEQ, BATCH = 2, 16, 4, 2, 4, 40, 66, 16, 4
THETA, NORM_EPS = 10000.0, 1e-5
STEPS, TOTAL_STEPS, WARMUP, LR, MIN_LR = 3, 8, 2, 1e-2, 1e-3
BETA1, BETA2, ADAM_EPS, DECAY, CLIP = 0.9, 0.95, 1e-8, 0.1, 0.5


EXPERTS, CHOICES, EXPERT_FFN = 4, 2, 12  # of mixtral and deepseek_v3
# Of deepseek_v3:
Q_RANK, KV_RANK, NOPE, ROPE, VALUE = 12, 8, 6, 4, 5
DENSE_LAYERS, SHARED, GROUPS, GROUP_CHOICES, SCALE, BIAS_RATE, MTP_FACTOR = 1, 1, 2, 1, 2.5, 0.01, 0.3

POSITIONS = 20  # of gpt2

VARIANTS = ("llama", "tied", "qwen3", "mixtral", "deepseek_v3", "gpt2", "gpt2_untied")


def swiglu_shapes(at, width, names=("gate_proj", "up_proj", "down_proj")):
    return {f"{at}{names[0]}.weight": (width, HIDDEN), f"{at}{names[1]}.weight": (width, HIDDEN),
            f"{at}{names[2]}.weight": (HIDDEN, width)}


def attention_shapes(variant, at):
    if variant != "deepseek_v3":
        return {at + "q_proj.weight": (HEADS * HEAD_DIM, HIDDEN), at + "k_proj.weight": (KV_HEADS * HEAD_DIM, HIDDEN),
                at + "v_proj.weight": (KV_HEADS * HEAD_DIM, HIDDEN), at + "o_proj.weight": (HIDDEN, HEADS * HEAD_DIM)}
    return {at + "q_a_proj.weight": (Q_RANK, HIDDEN), at + "q_a_layernorm.weight": (Q_RANK,),
            at + "q_b_proj.weight": (HEADS * (NOPE + ROPE), Q_RANK),
            at + "kv_a_proj_with_mqa.weight": (KV_RANK + ROPE, HIDDEN), at + "kv_a_layernorm.weight": (KV_RANK,),
            at + "kv_b_proj.weight": (HEADS * (NOPE + VALUE), KV_RANK), at + "o_proj.weight": (HIDDEN, HEADS * VALUE)}


def ffn_shapes(variant, l, at):
    shape = {}
    if variant == "mixtral":
        shape[at + "block_sparse_moe.gate.weight"] = (EXPERTS, HIDDEN)
        for e in range(EXPERTS):
            shape.update(swiglu_shapes(f"{at}block_sparse_moe.experts.{e}.", EXPERT_FFN, ("w1", "w3", "w2")))
    elif variant == "deepseek_v3" and l >= DENSE_LAYERS:
        shape[at + "mlp.gate.weight"] = (EXPERTS, HIDDEN)
        shape[at + "mlp.gate.e_score_correction_bias"] = (EXPERTS,)
        for e in range(EXPERTS):
            shape.update(swiglu_shapes(f"{at}mlp.experts.{e}.", EXPERT_FFN))
        shape.update(swiglu_shapes(at + "mlp.shared_experts.", SHARED * EXPERT_FFN))
    else:
        shape.update(swiglu_shapes(at + "mlp.", FFN))
    return shape


def gpt2_shapes(variant):
    shape = {"transformer.wte.weight": (VOCAB, HIDDEN), "transformer.wpe.weight": (POSITIONS, HIDDEN)}
    norms = ["transformer.ln_f"]
    for l in range(LAYERS):
        at = f"transformer.h.{l}."
        norms += [at + "ln_1", at + "ln_2"]
        for name, size in (("attn.c_attn", (HIDDEN, 3 * HIDDEN)), ("attn.c_proj", (HIDDEN, HIDDEN)),
                           ("mlp.c_fc", (HIDDEN, FFN)), ("mlp.c_proj", (FFN, HIDDEN))):
            shape[f"{at}{name}.weight"], shape[f"{at}{name}.bias"] = size, size[1:]
    for name in norms:
        shape[name + ".weight"] = shape[name + ".bias"] = (HIDDEN,)
    if variant == "gpt2_untied":
        shape["lm_head.weight"] = (VOCAB, HIDDEN)
    return shape


def shapes(variant):
    if variant.startswith("gpt2"):
        return gpt2_shapes(variant)
    shape = {"model.embed_tokens.weight": (VOCAB, HIDDEN)}
    for l in range(LAYERS + (variant == "deepseek_v3")):
        at = f"model.layers.{l}."
        shape[at + "input_layernorm.weight"] = (HIDDEN,)
        shape.update(attention_shapes(variant, at + "self_attn."))
        shape[at + "post_attention_layernorm.weight"] = (HIDDEN,)
        shape.update(ffn_shapes(variant, l, at))
        if l == LAYERS:
            shape[at + "enorm.weight"] = shape[at + "hnorm.weight"] = shape[at + "shared_head.norm.weight"] = (HIDDEN,)
            shape[at + "eh_proj.weight"] = (HIDDEN, 2 * HIDDEN)
    shape["model.norm.weight"] = (HIDDEN,)
    if variant != "tied":
        shape["lm_head.weight"] = (VOCAB, HIDDEN)
    if variant == "qwen3":
        for l in range(LAYERS):
            shape[f"model.layers.{l}.self_attn.q_norm.weight"] = (HEAD_DIM,)
            shape[f"model.layers.{l}.self_attn.k_norm.weight"] = (HEAD_DIM,)
    return shape


def initial_weights(variant):
    """Large enough that attention is far from uniform; norms away from 1. Rounded to float32, as stored."""
    generator = torch.Generator().manual_seed(20240229)
    weights = {}
    for name, shape in shapes(variant).items():
        draw = torch.randn(shape, generator=generator, dtype=torch.float64)
        middle = 0 if name.endswith("bias") or len(shape) > 1 else 1
        weights[name] = (middle + (0.2 if len(shape) == 1 else 0.3) * draw).float().double()
    return weights


def rms_norm(x, w):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + NORM_EPS) * w


def rope(x):  # [batch, heads, seq, head_dim]; pairs are (i, i + head_dim / 2)
    half = HEAD_DIM // 2
    frequency = THETA ** (-torch.arange(half, dtype=torch.float64) * 2 / HEAD_DIM)
    angle = torch.arange(SEQ, dtype=torch.float64)[:, None] * frequency[None, :]
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), -1)


def attention(x, w, at):
    def heads(name, count):
        return (x @ w[at + name].T).view(BATCH, SEQ, count, HEAD_DIM).transpose(1, 2)
    q, k, v = heads("q_proj.weight", HEADS), heads("k_proj.weight", KV_HEADS), heads("v_proj.weight", KV_HEADS)
    if at + "q_norm.weight" in w:
        q, k = rms_norm(q, w[at + "q_norm.weight"]), rms_norm(k, w[at + "k_norm.weight"])
    q, k = rope(q), rope(k)
    k, v = (t.repeat_interleave(HEADS // KV_HEADS, dim=1) for t in (k, v))
    scores = q @ k.transpose(2, 3) / math.sqrt(HEAD_DIM)
    scores = scores.masked_fill(torch.ones(SEQ, SEQ, dtype=torch.bool).triu(1), -math.inf)
    o = (scores.softmax(-1) @ v).transpose(1, 2).reshape(BATCH, SEQ, HEADS * HEAD_DIM)
    return o @ w[at + "o_proj.weight"].T


def turned_neighbours(x):  # [batch, seq, heads, ROPE], as complex numbers
    frequency = THETA ** (-torch.arange(ROPE // 2, dtype=torch.float64) * 2 / ROPE)
    angle = torch.arange(SEQ, dtype=torch.float64)[:, None] * frequency[None, :]
    turn = torch.polar(torch.ones_like(angle), angle)[None, :, None, :]
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], ROPE // 2, 2))
    return torch.view_as_real(pairs * turn).flatten(-2)


def latent_attention(x, w, at):
    q = rms_norm(x @ w[at + "q_a_proj.weight"].T, w[at + "q_a_layernorm.weight"]) @ w[at + "q_b_proj.weight"].T
    q = q.view(BATCH, SEQ, HEADS, NOPE + ROPE)
    q_nope, q_rope = q.split([NOPE, ROPE], -1)
    state, k_rope = (x @ w[at + "kv_a_proj_with_mqa.weight"].T).split([KV_RANK, ROPE], -1)
    kv = rms_norm(state, w[at + "kv_a_layernorm.weight"]) @ w[at + "kv_b_proj.weight"].T
    k_nope, v = kv.view(BATCH, SEQ, HEADS, NOPE + VALUE).split([NOPE, VALUE], -1)
    k_rope = turned_neighbours(k_rope[:, :, None, :]).expand(-1, -1, HEADS, -1)
    q = torch.cat((q_nope, turned_neighbours(q_rope)), -1).transpose(1, 2)
    k, v = torch.cat((k_nope, k_rope), -1).transpose(1, 2), v.transpose(1, 2)
    scores = q @ k.transpose(2, 3) / math.sqrt(NOPE + ROPE)
    scores = scores.masked_fill(torch.ones(SEQ, SEQ, dtype=torch.bool).triu(1), -math.inf)
    return (scores.softmax(-1) @ v).transpose(1, 2).reshape(BATCH, SEQ, HEADS * VALUE) @ w[at + "o_proj.weight"].T


def swiglu(x, w, at, names=("gate_proj", "up_proj", "down_proj")):
    gate, up, down = (w[f"{at}{name}.weight"] for name in names)
    return (torch.nn.functional.silu(x @ gate.T) * (x @ up.T)) @ down.T


def mixture(x, w, at, names, gates, ids):
    """Each expert of all tokens, times the gate of those that have chosen it."""
    out = torch.zeros_like(x)
    for e in range(EXPERTS):
        weight = (gates * (ids == e)).sum(-1, keepdim=True)
        out = out + weight * swiglu(x, w, f"{at}experts.{e}.", names)
    return out


def mixtral_experts(x, w, at):
    logits = x @ w[at + "gate.weight"].T
    best, ids = logits.topk(CHOICES, -1)
    return mixture(x, w, at, ("w1", "w3", "w2"), best.softmax(-1), ids)


def deepseek_experts(x, w, at, loads):
    scores = (x @ w[at + "gate.weight"].T).sigmoid()
    biased = (scores + w[at + "gate.e_score_correction_bias"]).detach()
    of_groups = biased.view(BATCH, SEQ, GROUPS, EXPERTS // GROUPS).topk(2, -1)[0].sum(-1)
    kept = torch.zeros_like(of_groups).scatter(-1, of_groups.topk(GROUP_CHOICES, -1)[1], 1.0)
    outside = kept.repeat_interleave(EXPERTS // GROUPS, -1) == 0
    ids = biased.masked_fill(outside, -math.inf).topk(CHOICES, -1)[1]
    loads[at] = torch.bincount(ids.reshape(-1), minlength=EXPERTS).double()
    gates = scores.gather(-1, ids)
    gates = SCALE * gates / gates.sum(-1, keepdim=True)
    return (mixture(x, w, at, ("gate_proj", "up_proj", "down_proj"), gates, ids) +
            swiglu(x, w, at + "shared_experts."))


def block(x, w, l, loads):
    at = f"model.layers.{l}."
    attend = latent_attention if at + "self_attn.kv_b_proj.weight" in w else attention
    x = x + attend(rms_norm(x, w[at + "input_layernorm.weight"]), w, at + "self_attn.")
    y = rms_norm(x, w[at + "post_attention_layernorm.weight"])
    if at + "block_sparse_moe.gate.weight" in w:
        return x + mixtral_experts(y, w, at + "block_sparse_moe.")
    if at + "mlp.gate.weight" in w:
        return x + deepseek_experts(y, w, at + "mlp.", loads)
    return x + swiglu(y, w, at + "mlp.")


def gpt2_forward(ids, w):
    def layer_norm(x, name):
        return torch.nn.functional.layer_norm(x, (HIDDEN,), w[name + ".weight"], w[name + ".bias"], NORM_EPS)

    def conv1d(x, name):
        return x @ w[name + ".weight"] + w[name + ".bias"]
    x = w["transformer.wte.weight"][ids] + w["transformer.wpe.weight"][torch.arange(SEQ)]
    for l in range(LAYERS):
        at = f"transformer.h.{l}."
        qkv = conv1d(layer_norm(x, at + "ln_1"), at + "attn.c_attn").split(HIDDEN, -1)
        q, k, v = (t.view(BATCH, SEQ, HEADS, HEAD_DIM).transpose(1, 2) for t in qkv)
        scores = q @ k.transpose(2, 3) / math.sqrt(HEAD_DIM)
        scores = scores.masked_fill(torch.ones(SEQ, SEQ, dtype=torch.bool).triu(1), -math.inf)
        x = x + conv1d((scores.softmax(-1) @ v).transpose(1, 2).reshape(BATCH, SEQ, HIDDEN), at + "attn.c_proj")
        h = torch.nn.functional.gelu(conv1d(layer_norm(x, at + "ln_2"), at + "mlp.c_fc"), approximate="tanh")
        x = x + conv1d(h, at + "mlp.c_proj")
    return layer_norm(x, "transformer.ln_f") @ w.get("lm_head.weight", w["transformer.wte.weight"]).T, x


def forward(ids, w, loads):
    """The logits, and the states that they are made of."""
    if "transformer.wte.weight" in w:
        return gpt2_forward(ids, w)
    x = w["model.embed_tokens.weight"][ids]
    for l in range(LAYERS):
        x = block(x, w, l, loads)
    head = w.get("lm_head.weight", w["model.embed_tokens.weight"])
    return rms_norm(x, w["model.norm.weight"]) @ head.T, x


def further_loss(x, targets, w, loads):
    """Of the module that is behind the layers: what comes after the targets, the last of which has no successor."""
    at = f"model.layers.{LAYERS}."
    token = rms_norm(w["model.embed_tokens.weight"][targets], w[at + "enorm.weight"])
    state = rms_norm(x, w[at + "hnorm.weight"])
    x = block(torch.cat((token, state), -1) @ w[at + "eh_proj.weight"].T, w, LAYERS, loads)
    logits = rms_norm(x, w[at + "shared_head.norm.weight"]) @ w["lm_head.weight"].T
    losses = torch.nn.functional.cross_entropy(logits[:, :-1].reshape(-1, VOCAB), targets[:, 1:].reshape(-1),
                                               reduction="sum")
    return losses / (BATCH * SEQ)


def learning_rate(step):
    if step < WARMUP:
        return LR * (step + 1) / WARMUP
    share = (step - WARMUP) / (TOTAL_STEPS - WARMUP)
    return MIN_LR + (LR - MIN_LR) * (1 + math.cos(math.pi * share)) / 2


def train(ids, targets, weights):
    names = [n for n in weights if not n.endswith("correction_bias")]
    w = {n: weights[n].clone().requires_grad_(n in names) for n in weights}
    matrices = [w[n] for n in names if w[n].dim() > 1]
    vectors = [w[n] for n in names if w[n].dim() == 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": DECAY}, {"params": vectors, "weight_decay": 0.0}],
                                  lr=LR, betas=(BETA1, BETA2), eps=ADAM_EPS)
    out, losses, norms = {}, [], []
    for step in range(STEPS):
        loads = {}
        logits, x = forward(ids, w, loads)
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, VOCAB), targets.reshape(-1))
        further = 0.0
        if f"model.layers.{LAYERS}.eh_proj.weight" in w:
            further = MTP_FACTOR * further_loss(x, targets, w, loads)
        optimizer.zero_grad()
        (loss + further).backward()
        if step == 0:
            out["logits"] = logits.detach()
            out.update({"grad." + n: w[n].grad.clone() for n in names})
        norms.append(torch.nn.utils.clip_grad_norm_([w[n] for n in names], CLIP).reshape(()))
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step)
        optimizer.step()
        for at, load in loads.items():
            w[at + "gate.e_score_correction_bias"] += BIAS_RATE * (load.mean() - load).sign()
        losses.append(loss.detach())
    out.update({"after." + n: w[n].detach() for n in w})
    out["loss"], out["grad_norm"] = torch.stack(losses), torch.stack(norms)
    return out


def safetensors(tensors):
    header, data = {}, b""
    for name, t in tensors.items():
        whole = t.dtype in (torch.int32, torch.int64)
        values = t.reshape(-1).tolist()
        raw = struct.pack(f"<{len(values)}{'i' if whole else 'f'}", *values)
        header[name] = {"dtype": "I32" if whole else "F32", "shape": list(t.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def floats(raw):
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + length])
    data = raw[8 + length:]
    out = {}
    for name, t in header.items():
        begin, end = t["data_offsets"]
        kind = "i" if t["dtype"] == "I32" else "f"
        out[name] = (t["shape"], struct.unpack(f"<{(end - begin) // 4}{kind}", data[begin:end]))
    return out


def differs(fresh, stored):
    """The first tensor that differs by more than float32 round-off of the stored values, or None."""
    a, b = floats(fresh), floats(stored)
    if a.keys() != b.keys():
        return "names of tensors"
    for name in a:
        if a[name][0] != b[name][0]:
            return "shape of " + name
        size = max(map(abs, b[name][1]))
        if any(abs(x - y) > 1e-6 * size for x, y in zip(a[name][1], b[name][1])):
            return name
    return None


def put(directory, weights, expected, compare):
    """Writes both files, or says what differs from those that are there."""
    if not compare:
        os.makedirs(directory, exist_ok=True)
    for name, tensors in (("model.safetensors", weights), ("expected.safetensors", expected)):
        raw, path = safetensors(tensors), os.path.join(directory, name)
        if not compare:
            with open(path, "wb") as file:
                file.write(raw)
            continue
        with open(path, "rb") as file:
            wrong = differs(raw, file.read())
        if wrong:
            return wrong
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory")
    parser.add_argument("--compare", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(7)
    tokens = torch.randint(0, VOCAB, (BATCH, SEQ + 1), generator=generator)
    ids, targets = tokens[:, :-1], tokens[:, 1:]
    for variant in VARIANTS:
        weights = initial_weights(variant)
        expected = {"ids": ids, "targets": targets, **train(ids, targets, weights)}
        directory = os.path.join(args.directory, variant)
        wrong = put(directory, weights, expected, args.compare)
        if wrong:
            print(f"{directory}: PyTorch {torch.__version__} gives another {wrong}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
