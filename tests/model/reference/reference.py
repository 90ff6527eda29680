#!/usr/bin/env python3
"""Families of models in NumPy, in float64, that know nothing of hyperrun: what Hugging Face's classes compute from a
config.json and a model.safetensors.

  reference.py list                         the names of the variants below
  reference.py make VARIANT DIRECTORY       writes config.json, random weights (model.safetensors) and expected.safetensors:
                                            ids, targets [sequences, length], logp [sequences, length] of the targets
  reference.py score DIRECTORY LENGTH ID... prints the log probability of each id behind the first, one a line; LENGTH is
                                            the longest text, on which some rotary scalings depend

Exit status 77: NumPy is not installed.
"""
import json
import math
import os
import struct
import sys

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is not installed (Debian: python3-numpy)")
    sys.exit(77)

SEQUENCES, LENGTH = 2, 24

LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 32, "intermediate_size": 40,
         "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 260,
         "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "tie_word_embeddings": False, "hidden_act": "silu"}


def family(name, architecture, **fields):
    return {**LLAMA, "model_type": name, "architectures": [architecture + "ForCausalLM"], **fields}


DEEPSEEK = dict(num_key_value_heads=4, kv_lora_rank=12, qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=5,
                moe_intermediate_size=12, n_routed_experts=8, n_shared_experts=2, num_experts_per_tok=3,
                first_k_dense_replace=1, moe_layer_freq=1, routed_scaling_factor=1.7)
QWEN_MOE = dict(num_experts=6, num_experts_per_tok=2, moe_intermediate_size=12, head_dim=8)
YARN = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}

VARIANTS = {
    # As files of Llama 2 were: many fields are missing.
    "llama2": {k: v for k, v in LLAMA.items() if k not in ("num_key_value_heads", "hidden_act", "rms_norm_eps")},
    "llama3": {**LLAMA, "tie_word_embeddings": True, "rope_theta": 500.0,
               "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                "original_max_position_embeddings": 40}},
    "llama_biases": {**LLAMA, "attention_bias": True, "mlp_bias": True},
    "llama_linear": {**LLAMA, "rope_scaling": {"type": "linear", "factor": 3.0}},
    "llama_dynamic": {**LLAMA, "max_position_embeddings": 10, "rope_scaling": {"type": "dynamic", "factor": 2.0}},
    "llama_dynamic_short": {**LLAMA, "rope_scaling": {"type": "dynamic", "factor": 2.0}},
    "llama_yarn": {**LLAMA, "rope_scaling": {**YARN, "beta_fast": 4, "beta_slow": 0.5}},
    "llama_yarn_factor": {**LLAMA, "rope_parameters": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 300.0,
                                                       "original_max_position_embeddings": 16,
                                                       "attention_factor": 0.8, "truncate": False}},
    "mistral": family("mistral", "Mistral", sliding_window=5),
    "mistral_whole": family("mistral", "Mistral", sliding_window=None, head_dim=12),
    "mixtral": family("mixtral", "Mixtral", sliding_window=7, num_local_experts=4, num_experts_per_tok=2,
                      rope_theta=1e6),
    "qwen2": family("qwen2", "Qwen2", use_sliding_window=True, sliding_window=4, max_window_layers=1),
    "qwen2_yarn": family("qwen2", "Qwen2", use_sliding_window=False, sliding_window=4, max_window_layers=1,
                         tie_word_embeddings=True, rope_scaling=YARN),
    "qwen3": family("qwen3", "Qwen3", head_dim=12, use_sliding_window=True, sliding_window=3, attention_bias=True,
                    layer_types=["sliding_attention", "full_attention", "sliding_attention"]),
    "qwen3_moe": family("qwen3_moe", "Qwen3Moe", norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[1],
                        **QWEN_MOE),
    "qwen3_moe_steps": family("qwen3_moe", "Qwen3Moe", decoder_sparse_step=2, mlp_only_layers=[], num_hidden_layers=5,
                              **{k: v for k, v in QWEN_MOE.items() if k != "head_dim"}),
    "deepseek_v2": family("deepseek_v2", "DeepseekV2", q_lora_rank=None, topk_method="group_limited_greedy", n_group=4,
                          topk_group=2, scoring_func="softmax", norm_topk_prob=False,
                          rope_scaling={**YARN, "mscale": 0.707, "mscale_all_dim": 0.9, "beta_fast": 8}, **DEEPSEEK),
    "deepseek_v2_greedy": family("deepseek_v2", "DeepseekV2", q_lora_rank=10, topk_method="greedy", n_group=1,
                                 topk_group=1, **DEEPSEEK),
    "deepseek_v3": family("deepseek_v3", "DeepseekV3", q_lora_rank=10, topk_method="noaux_tc", n_group=4, topk_group=2,
                          scoring_func="sigmoid", norm_topk_prob=True,
                          rope_scaling={**YARN, "mscale": 1.0, "mscale_all_dim": 1.0}, **DEEPSEEK),
    "phi3": family("phi3", "Phi3", sliding_window=6, rope_scaling=None, original_max_position_embeddings=64,
                   partial_rotary_factor=0.5),
    "phi3_short": family("phi3", "Phi3", sliding_window=None, original_max_position_embeddings=32,
                         rope_scaling={"type": "su", "short_factor": [1.0, 1.1, 1.3, 1.7],
                                       "long_factor": [1.0, 2.0, 4.0, 8.0]}),
    "phi3_long": family("phi3", "Phi3", sliding_window=262144, original_max_position_embeddings=16,
                        rope_scaling={"type": "longrope", "short_factor": [1.0, 1.1, 1.3, 1.7],
                                      "long_factor": [1.0, 2.0, 4.0, 8.0]}),
    "gpt2": {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 24, "n_head": 4, "n_layer": 2,
             "n_positions": 64, "vocab_size": 260, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5},
}


# --- config.json ------------------------------------------------------------------------------------------------------

class Config:
    """The fields of a config.json, with what the family's class has for those that are missing."""

    DEFAULTS = {"rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": False, "attention_bias": False,
                "mlp_bias": False, "partial_rotary_factor": 1.0, "norm_topk_prob": False, "decoder_sparse_step": 1,
                "mlp_only_layers": [], "use_sliding_window": False, "first_k_dense_replace": 0, "topk_method": "greedy",
                "routed_scaling_factor": 1.0}

    def __init__(self, fields):
        self.fields = fields

    def __getattr__(self, name):
        return self.fields.get(name, self.DEFAULTS.get(name))

    @property
    def kv_heads(self):
        return self.num_key_value_heads or self.num_attention_heads

    @property
    def width(self):  # of a head
        if self.kv_lora_rank:
            return self.qk_nope_head_dim + self.qk_rope_head_dim
        if self.model_type == "qwen3" and "head_dim" not in self.fields:
            return 128
        return self.head_dim or self.hidden_size // self.num_attention_heads

    @property
    def rope(self):
        block = self.rope_scaling or self.rope_parameters or {}
        return {"rope_theta": self.rope_theta, **block, "kind": block.get("rope_type", block.get("type", "default"))}

    def window(self, layer):
        if self.model_type in ("mistral", "mixtral", "phi3"):
            return self.sliding_window
        if self.model_type not in ("qwen2", "qwen3", "qwen3_moe") or not self.use_sliding_window:
            return None
        if self.layer_types:
            return self.sliding_window if self.layer_types[layer] == "sliding_attention" else None
        return self.sliding_window if layer >= self.max_window_layers else None

    def has_experts(self, layer):
        if self.model_type == "mixtral":
            return True
        if self.model_type == "qwen3_moe":
            return layer not in self.mlp_only_layers and (layer + 1) % self.decoder_sparse_step == 0
        return bool(self.n_routed_experts) and layer >= self.first_k_dense_replace


# --- weights ----------------------------------------------------------------------------------------------------------

def attention_shapes(c, at):
    heads, kv, n, hidden = c.num_attention_heads, c.kv_heads, c.width, c.hidden_size
    if c.kv_lora_rank:
        rank, rope = c.kv_lora_rank, c.qk_rope_head_dim
        shapes = {"kv_a_proj_with_mqa.weight": (rank + rope, hidden), "kv_a_layernorm.weight": (rank,),
                  "kv_b_proj.weight": (heads * (c.qk_nope_head_dim + c.v_head_dim), rank),
                  "o_proj.weight": (hidden, heads * c.v_head_dim)}
        if c.q_lora_rank:
            shapes.update({"q_a_proj.weight": (c.q_lora_rank, hidden), "q_a_layernorm.weight": (c.q_lora_rank,),
                           "q_b_proj.weight": (heads * n, c.q_lora_rank)})
        else:
            shapes["q_proj.weight"] = (heads * n, hidden)
    elif c.model_type == "phi3":
        shapes = {"qkv_proj.weight": ((heads + 2 * kv) * n, hidden), "o_proj.weight": (hidden, heads * n)}
    else:
        shapes = {"q_proj.weight": (heads * n, hidden), "k_proj.weight": (kv * n, hidden),
                  "v_proj.weight": (kv * n, hidden), "o_proj.weight": (hidden, heads * n)}
    biased = {"qwen2": "qkv"}.get(c.model_type, "qkvo" if c.attention_bias else "")
    shapes.update({f"{m}_proj.bias": shapes[f"{m}_proj.weight"][:1] for m in biased})
    if c.model_type.startswith("qwen3"):
        shapes.update({"q_norm.weight": (n,), "k_norm.weight": (n,)})
    return {at + name: shape for name, shape in shapes.items()}


def swiglu_shapes(c, at, width, names=("gate_proj", "up_proj", "down_proj"), biased=False):
    gate, up, down = names
    shapes = {f"{at}{gate}.weight": (width, c.hidden_size), f"{at}{up}.weight": (width, c.hidden_size),
              f"{at}{down}.weight": (c.hidden_size, width)}
    if biased:
        shapes.update({f"{at}{m}.bias": shapes[f"{at}{m}.weight"][:1] for m in names})
    return shapes


def ffn_shapes(c, layer, at):
    if c.model_type == "phi3":
        return {at + "mlp.gate_up_proj.weight": (2 * c.intermediate_size, c.hidden_size),
                at + "mlp.down_proj.weight": (c.hidden_size, c.intermediate_size)}
    if not c.has_experts(layer):
        return swiglu_shapes(c, at + "mlp.", c.intermediate_size, biased=c.mlp_bias)
    mixtral = c.model_type == "mixtral"
    at += "block_sparse_moe." if mixtral else "mlp."
    count = c.num_local_experts or c.num_experts or c.n_routed_experts
    shapes = {at + "gate.weight": (count, c.hidden_size)}
    for e in range(count):
        names = ("w1", "w3", "w2") if mixtral else ("gate_proj", "up_proj", "down_proj")
        shapes.update(swiglu_shapes(c, f"{at}experts.{e}.", c.moe_intermediate_size or c.intermediate_size, names))
    if c.n_shared_experts:
        shapes.update(swiglu_shapes(c, at + "shared_experts.", c.moe_intermediate_size * c.n_shared_experts))
    if c.model_type == "deepseek_v3":
        shapes[at + "gate.e_score_correction_bias"] = (count,)
    return shapes


def gpt2_shapes(c):
    n = c.n_embd
    shapes = {"transformer.wte.weight": (c.vocab_size, n), "transformer.wpe.weight": (c.n_positions, n)}
    norms = ["transformer.ln_f"]
    for layer in range(c.n_layer):
        at = f"transformer.h.{layer}."
        norms += [at + "ln_1", at + "ln_2"]
        for name, shape in (("attn.c_attn", (n, 3 * n)), ("attn.c_proj", (n, n)), ("mlp.c_fc", (n, 4 * n)),
                            ("mlp.c_proj", (4 * n, n))):
            shapes[f"{at}{name}.weight"], shapes[f"{at}{name}.bias"] = shape, shape[1:]
    for name in norms:
        shapes[name + ".weight"] = shapes[name + ".bias"] = (n,)
    return shapes


def shapes_of(c):
    if c.model_type == "gpt2":
        return gpt2_shapes(c)
    shapes = {"model.embed_tokens.weight": (c.vocab_size, c.hidden_size), "model.norm.weight": (c.hidden_size,)}
    if not c.tie_word_embeddings:
        shapes["lm_head.weight"] = (c.vocab_size, c.hidden_size)
    for layer in range(c.num_hidden_layers):
        at = f"model.layers.{layer}."
        shapes[at + "input_layernorm.weight"] = shapes[at + "post_attention_layernorm.weight"] = (c.hidden_size,)
        shapes.update(attention_shapes(c, at + "self_attn."))
        shapes.update(ffn_shapes(c, layer, at))
    return shapes


def random_weights(c):
    """Large enough that attention is far from uniform; norms away from 1, biases from 0. Rounded to float32."""
    generator = np.random.default_rng(20240229)
    weights = {}
    for name, shape in shapes_of(c).items():
        middle = 0.0 if len(shape) > 1 or name.endswith("bias") else 1.0
        spread = 0.25 if len(shape) > 1 else 0.2
        weights[name] = (middle + spread * generator.standard_normal(shape)).astype(np.float32).astype(np.float64)
    return weights


# --- the models -------------------------------------------------------------------------------------------------------

def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def silu(x):
    return x / (1 + np.exp(-x))


def linear(x, w, name):
    y = x @ w[name + ".weight"].T
    return y + w[name + ".bias"] if name + ".bias" in w else y


def rms_norm(c, x, weight):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + c.rms_norm_eps) * weight


def yarn_scale(factor, mscale=1.0):
    return 1.0 if factor <= 1 else 0.1 * mscale * math.log(factor) + 1.0


def yarn_frequencies(block, dim, base, original):
    def pair_of(rotations):
        return dim * math.log(original / (rotations * 2 * math.pi)) / (2 * math.log(base))
    low, high = pair_of(block.get("beta_fast") or 32), pair_of(block.get("beta_slow") or 1)
    if block.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    ramp = np.clip((np.arange(dim // 2) - low) / ((high - low) or 0.001), 0, 1)
    plain = base ** (-np.arange(0, dim, 2) / dim)
    return plain / block["factor"] * ramp + plain * (1 - ramp)


def rotary(c, dim, longest):
    """Frequencies of the pairs, and the factor of cosines and sines."""
    block, base = c.rope, c.rope["rope_theta"]
    kind, plain = block["kind"], base ** (-np.arange(0, dim, 2) / dim)
    if kind == "linear":
        return plain / block["factor"], 1.0
    if kind == "dynamic":
        most, factor = c.max_position_embeddings, block["factor"]
        base = base * (factor * max(longest, most) / most - (factor - 1)) ** (dim / (dim - 2))
        return base ** (-np.arange(0, dim, 2) / dim), 1.0
    if kind == "llama3":
        factor, low, high = block["factor"], block["low_freq_factor"], block["high_freq_factor"]
        original = block["original_max_position_embeddings"]
        length = 2 * math.pi / plain
        smooth = (original / length - low) / (high - low)
        between = (1 - smooth) * plain / factor + smooth * plain
        return np.where(length < original / high, plain, np.where(length > original / low, plain / factor, between)), 1.0
    if kind == "yarn":
        original = block.get("original_max_position_embeddings") or c.max_position_embeddings
        scale = block.get("attention_factor")
        if scale is None:
            scale = yarn_scale(block["factor"])
            if block.get("mscale") and block.get("mscale_all_dim"):
                scale = (yarn_scale(block["factor"], block["mscale"]) /
                         yarn_scale(block["factor"], block["mscale_all_dim"]))
        return yarn_frequencies(block, dim, base, original), scale
    if kind in ("longrope", "su"):
        original = c.original_max_position_embeddings
        factor = c.max_position_embeddings / original
        scale = math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 else 1.0
        return plain / np.array(block["long_factor" if longest > original else "short_factor"]), scale
    return plain, 1.0


def turned(x, turns, neighbours):  # x [batch, length, heads, dim]
    frequencies, scale = turns
    angle = np.arange(x.shape[1])[:, None] * frequencies[None, :]
    cos, sin = scale * np.cos(angle)[None, :, None], scale * np.sin(angle)[None, :, None]
    half = x.shape[-1] // 2
    a, b = (x[..., 0::2], x[..., 1::2]) if neighbours else (x[..., :half], x[..., half:])
    return np.concatenate((a * cos - b * sin, b * cos + a * sin), -1)


def attend(q, k, v, scale, window):  # [batch, length, heads, .]
    groups = q.shape[2] // k.shape[2]
    k, v = np.repeat(k, groups, 2), np.repeat(v, groups, 2)
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) * scale
    query, key = np.arange(q.shape[1])[:, None], np.arange(q.shape[1])[None, :]
    hidden = key > query
    if window:
        hidden = hidden | (key <= query - window)
    return np.einsum("bhqk,bkhd->bqhd", softmax(np.where(hidden, -np.inf, scores)), v).reshape(*q.shape[:2], -1)


def grouped_attention(c, x, w, at, layer, longest):
    heads, kv, n = c.num_attention_heads, c.kv_heads, c.width
    if at + "qkv_proj.weight" in w:
        q, k, v = np.split(linear(x, w, at + "qkv_proj"), [heads * n, (heads + kv) * n], -1)
    else:
        q, k, v = (linear(x, w, f"{at}{m}_proj") for m in "qkv")
    q, k, v = q.reshape(*x.shape[:2], heads, n), k.reshape(*x.shape[:2], kv, n), v.reshape(*x.shape[:2], kv, n)
    if at + "q_norm.weight" in w:
        q, k = rms_norm(c, q, w[at + "q_norm.weight"]), rms_norm(c, k, w[at + "k_norm.weight"])
    dim = int(n * c.partial_rotary_factor)
    turns = rotary(c, dim, longest)
    q, k = (np.concatenate((turned(t[..., :dim], turns, False), t[..., dim:]), -1) for t in (q, k))
    return linear(attend(q, k, v, n ** -0.5, c.window(layer)), w, at + "o_proj")


def latent_attention(c, x, w, at, longest):
    heads, nope, rope, shape = c.num_attention_heads, c.qk_nope_head_dim, c.qk_rope_head_dim, x.shape[:2]
    if c.q_lora_rank:
        q = linear(rms_norm(c, linear(x, w, at + "q_a_proj"), w[at + "q_a_layernorm.weight"]), w, at + "q_b_proj")
    else:
        q = linear(x, w, at + "q_proj")
    q = q.reshape(*shape, heads, nope + rope)
    down = linear(x, w, at + "kv_a_proj_with_mqa")
    state, shared = down[..., :c.kv_lora_rank], down[..., c.kv_lora_rank:]
    kv = linear(rms_norm(c, state, w[at + "kv_a_layernorm.weight"]), w, at + "kv_b_proj").reshape(*shape, heads, -1)
    turns = rotary(c, rope, longest)
    q = np.concatenate((q[..., :nope], turned(q[..., nope:], turns, True)), -1)
    shared = np.repeat(turned(shared[:, :, None, :], turns, True), heads, 2)
    scale, block = (nope + rope) ** -0.5, c.rope
    if block["kind"] != "default" and block.get("mscale_all_dim"):
        scale *= yarn_scale(block["factor"], block["mscale_all_dim"]) ** 2
    return linear(attend(q, np.concatenate((kv[..., :nope], shared), -1), kv[..., nope:], scale, None), w, at + "o_proj")


def swiglu(x, w, at, names=("gate_proj", "up_proj", "down_proj")):
    if at + "gate_up_proj.weight" in w:
        gate, up = np.split(linear(x, w, at + "gate_up_proj"), 2, -1)
        return linear(silu(gate) * up, w, at + "down_proj")
    gate, up, down = names
    return linear(silu(linear(x, w, at + gate)) * linear(x, w, at + up), w, at + down)


def best(x, k):
    return np.argsort(-x, -1, kind="stable")[..., :k]


def gates_of(c, x, w, at):
    """The gate of each expert for each token; 0 for those that were not chosen."""
    logits = linear(x, w, at + "gate")
    p = 1 / (1 + np.exp(-logits)) if c.model_type == "deepseek_v3" else softmax(logits)
    ranks, normalize, scale = p, c.norm_topk_prob, 1.0
    if c.model_type == "mixtral":
        normalize = True
    if c.model_type.startswith("deepseek"):
        scale = c.routed_scaling_factor
        if c.model_type == "deepseek_v3":
            ranks = p + w[at + "gate.e_score_correction_bias"]
        if c.topk_method != "greedy":
            groups = ranks.reshape(*ranks.shape[:-1], c.n_group, -1)
            of = groups.max(-1) if c.topk_method == "group_limited_greedy" else np.sort(groups, -1)[..., -2:].sum(-1)
            kept = np.zeros_like(of)
            np.put_along_axis(kept, best(of, c.topk_group), 1, -1)
            ranks = np.where(np.repeat(kept, groups.shape[-1], -1) > 0, ranks, 0)
    chosen = np.zeros_like(p)
    np.put_along_axis(chosen, best(ranks, c.num_experts_per_tok), 1, -1)
    gates = p * chosen
    return scale * (gates / gates.sum(-1, keepdims=True) if normalize else gates)


def experts(c, x, w, at):
    mixtral = c.model_type == "mixtral"
    at += "block_sparse_moe." if mixtral else "mlp."
    names = ("w1", "w3", "w2") if mixtral else ("gate_proj", "up_proj", "down_proj")
    gates = gates_of(c, x, w, at)
    y = sum(gates[..., e:e + 1] * swiglu(x, w, f"{at}experts.{e}.", names) for e in range(gates.shape[-1]))
    return y + swiglu(x, w, at + "shared_experts.") if c.n_shared_experts else y


def gpt2_logits(c, ids, w):
    def norm(x, name):
        x = x - x.mean(-1, keepdims=True)
        return (x / np.sqrt((x * x).mean(-1, keepdims=True) + c.layer_norm_epsilon) * w[name + ".weight"] +
                w[name + ".bias"])

    def conv1d(x, name):
        return x @ w[name + ".weight"] + w[name + ".bias"]
    x = w["transformer.wte.weight"][ids] + w["transformer.wpe.weight"][:ids.shape[1]]
    for layer in range(c.n_layer):
        at = f"transformer.h.{layer}."
        q, k, v = (t.reshape(*ids.shape, c.n_head, -1)
                   for t in np.split(conv1d(norm(x, at + "ln_1"), at + "attn.c_attn"), 3, -1))
        x = x + conv1d(attend(q, k, v, q.shape[-1] ** -0.5, None), at + "attn.c_proj")
        h = conv1d(norm(x, at + "ln_2"), at + "mlp.c_fc")
        h = 0.5 * h * (1 + np.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h ** 3)))
        x = x + conv1d(h, at + "mlp.c_proj")
    return norm(x, "transformer.ln_f") @ w["transformer.wte.weight"].T


def logits_of(c, ids, w, longest):
    if c.model_type == "gpt2":
        return gpt2_logits(c, ids, w)
    x = w["model.embed_tokens.weight"][ids]
    for layer in range(c.num_hidden_layers):
        at = f"model.layers.{layer}."
        y = rms_norm(c, x, w[at + "input_layernorm.weight"])
        if c.kv_lora_rank:
            x = x + latent_attention(c, y, w, at + "self_attn.", longest)
        else:
            x = x + grouped_attention(c, y, w, at + "self_attn.", layer, longest)
        y = rms_norm(c, x, w[at + "post_attention_layernorm.weight"])
        x = x + (experts(c, y, w, at) if c.has_experts(layer) else swiglu(y, w, at + "mlp."))
    head = w["model.embed_tokens.weight"] if c.tie_word_embeddings else w["lm_head.weight"]
    return rms_norm(c, x, w["model.norm.weight"]) @ head.T


def log_probs(c, ids, targets, w, longest):
    logits = logits_of(c, ids, w, longest)
    most = logits.max(-1, keepdims=True)
    total = most[..., 0] + np.log(np.exp(logits - most).sum(-1))
    return np.take_along_axis(logits, targets[..., None], -1)[..., 0] - total


# --- files ------------------------------------------------------------------------------------------------------------

def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, t in tensors.items():
        whole = np.issubdtype(t.dtype, np.integer)
        raw = t.astype("<i4" if whole else "<f4").tobytes()
        header[name] = {"dtype": "I32" if whole else "F32", "shape": list(t.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    with open(path, "rb") as file:
        raw = file.read()
    (length,) = struct.unpack("<Q", raw[:8])
    data, tensors = raw[8 + length:], {}
    for name, t in json.loads(raw[8:8 + length]).items():
        if name != "__metadata__":
            begin, end = t["data_offsets"]
            tensors[name] = np.frombuffer(data[begin:end], "<f4").astype(np.float64).reshape(t["shape"])
    return tensors


def make(variant, directory):
    fields = VARIANTS[variant]
    c = Config(fields)
    weights = random_weights(c)
    tokens = np.random.default_rng(7).integers(0, c.vocab_size, (SEQUENCES, LENGTH + 1))
    ids, targets = tokens[:, :-1], tokens[:, 1:]
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "config.json"), "w", encoding="utf-8") as file:
        json.dump(fields, file, indent=2)
    write_safetensors(os.path.join(directory, "model.safetensors"), weights)
    write_safetensors(os.path.join(directory, "expected.safetensors"),
                      {"ids": ids, "targets": targets, "logp": log_probs(c, ids, targets, weights, LENGTH)})


def score(directory, longest, ids):
    with open(os.path.join(directory, "config.json"), encoding="utf-8") as file:
        c = Config(json.load(file))
    weights = read_safetensors(os.path.join(directory, "model.safetensors"))
    ids = np.array([ids])
    for value in log_probs(c, ids[:, :-1], ids[:, 1:], weights, longest)[0]:
        print(repr(float(value)))


if __name__ == "__main__":
    if sys.argv[1] == "list":
        print("\n".join(VARIANTS))
    elif sys.argv[1] == "make":
        make(sys.argv[2], sys.argv[3])
    else:
        score(sys.argv[2], int(sys.argv[3]), [int(i) for i in sys.argv[4:]])
