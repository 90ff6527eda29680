#!/usr/bin/env python3
"""A Llama and a Qwen3 in plain PyTorch, in float64, that know nothing of hyperrun: what hyperrun must compute.

  torch_fixture.py DIRECTORY            writes the files below, for each variant in DIRECTORY/VARIANT
  torch_fixture.py --compare DIRECTORY  computes them anew and compares; exit status 1 when they differ,
                                        77 when PyTorch is not installed

Variants: llama, tied (a llama whose head is the embedding), qwen3.

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


VARIANTS = ("llama", "tied", "qwen3")


def shapes(variant):
    shape = {"model.embed_tokens.weight": (VOCAB, HIDDEN)}
    for l in range(LAYERS):
        at = f"model.layers.{l}."
        shape[at + "input_layernorm.weight"] = (HIDDEN,)
        shape[at + "self_attn.q_proj.weight"] = (HEADS * HEAD_DIM, HIDDEN)
        shape[at + "self_attn.k_proj.weight"] = (KV_HEADS * HEAD_DIM, HIDDEN)
        shape[at + "self_attn.v_proj.weight"] = (KV_HEADS * HEAD_DIM, HIDDEN)
        shape[at + "self_attn.o_proj.weight"] = (HIDDEN, HEADS * HEAD_DIM)
        shape[at + "post_attention_layernorm.weight"] = (HIDDEN,)
        shape[at + "mlp.gate_proj.weight"] = (FFN, HIDDEN)
        shape[at + "mlp.up_proj.weight"] = (FFN, HIDDEN)
        shape[at + "mlp.down_proj.weight"] = (HIDDEN, FFN)
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
        weights[name] = (1 + 0.2 * draw if len(shape) == 1 else 0.3 * draw).float().double()
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


def forward(ids, w):
    x = w["model.embed_tokens.weight"][ids]
    for l in range(LAYERS):
        at = f"model.layers.{l}."
        x = x + attention(rms_norm(x, w[at + "input_layernorm.weight"]), w, at + "self_attn.")
        y = rms_norm(x, w[at + "post_attention_layernorm.weight"])
        gate, up = y @ w[at + "mlp.gate_proj.weight"].T, y @ w[at + "mlp.up_proj.weight"].T
        x = x + (torch.nn.functional.silu(gate) * up) @ w[at + "mlp.down_proj.weight"].T
    head = w.get("lm_head.weight", w["model.embed_tokens.weight"])
    return rms_norm(x, w["model.norm.weight"]) @ head.T


def learning_rate(step):
    if step < WARMUP:
        return LR * (step + 1) / WARMUP
    share = (step - WARMUP) / (TOTAL_STEPS - WARMUP)
    return MIN_LR + (LR - MIN_LR) * (1 + math.cos(math.pi * share)) / 2


def train(ids, targets, weights):
    names = list(weights)
    w = {n: weights[n].clone().requires_grad_() for n in names}
    matrices = [w[n] for n in names if w[n].dim() > 1]
    vectors = [w[n] for n in names if w[n].dim() == 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": DECAY}, {"params": vectors, "weight_decay": 0.0}],
                                  lr=LR, betas=(BETA1, BETA2), eps=ADAM_EPS)
    out, losses, norms = {}, [], []
    for step in range(STEPS):
        logits = forward(ids, w)
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, VOCAB), targets.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            out["logits"] = logits.detach()
            out.update({"grad." + n: w[n].grad.clone() for n in names})
        norms.append(torch.nn.utils.clip_grad_norm_(list(w.values()), CLIP).reshape(()))
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step)
        optimizer.step()
        losses.append(loss.detach())
    out.update({"after." + n: w[n].detach() for n in names})
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
