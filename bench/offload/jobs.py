"""The jobs of sweep.py: models, layouts, and the texts of their files."""
import json
import pathlib
import re

DEVICES, HBM = 8, 64 * 2**30
ENDLESS = "4096 TiB"
PROFILE = "endless.textproto"  # a file beside the job; no job has more HBM or pool than its profile
ACTIVATIONS = 'policy: "hyperoffload" tensors: ["activations", "gradients"]'
RECOMPUTE = ("none", "selective", "full")
SEQUENCES = (2048, 8192, 32768, 131072, 262144, 393216, 524288)

LLAMA = "layers: {layers} hidden: 4096 heads: 32 kv_heads: 8 ffn: 14336 vocab: 128256 rope_theta: 500000"
DEEPSEEK = """name: "deepseek_v3" layers: {layers} hidden: 7168 heads: 128 ffn: 18432 vocab: 129280
  latent {{ q_rank: 1536 kv_rank: 512 nope_dim: 128 rope_dim: 64 value_dim: 128 }}
  experts {{ count: 256 choices: 8 ffn: 2048 shared: 1 dense_layers: 1 scoring: "sigmoid" scale: 2.5 bias_rate: 1e-3
            groups: 8 group_choices: 4 capacity {{ factor: 1.25 }} }}"""
# Axes with their sizes, the slowest changing first, then presets that are not named as an axis, and the schedule.
DENSE_LAYOUTS = """dp8 zero2; cp8 zero3; ring8 zero3; dp8 zero1; dp8 zero3; cp8 zero1; ring8 zero1; dp4 tp2 zero1;
  dp4 tp2 zero3; dp2 tp4 zero1; dp2 tp4 zero3; tp8; tpx4 tpy2; dp2 tpx2 tpy2 zero1; dp4 cp2 zero1; dp4 cp2 zero3;
  dp2 cp4 zero3; ring2 tp4; ring4 tp2; cp2 tp4; pp2 dp4 zero1 zero_bubble; pp2 dp4 zero1 1f1b; pp2 tp4 zero_bubble;
  pp2 tp4 1f1b; pp2 dp2 tp2 zero1 zero_bubble; pp4 dp2 zero1 zero_bubble; pp4 dp2 zero1 1f1b; pp4 tp2 zero_bubble"""
# `folded`: experts over all axes that split tokens.
EXPERT_LAYOUTS = """ep8 zero1; ep8 zero3; ep8; ep4 tp2; ep4 tp2 etp; ep2 tp4; ep2 tp4 etp; tp8 etp; ep4 cp2;
  ep4 dp2 zero1; ep4 dp2 zero3; pp2 ep4 1f1b; pp2 ep4 zero_bubble; pp2 ep2 tp2 zero_bubble; tp8 folded;
  dp2 tp4 zero1 folded; dp2 tp4 zero3 folded; dp4 tp2 zero1 folded; dp4 tp2 zero3 folded; cp8 zero1 folded;
  cp8 zero3 folded; dp2 cp4 zero1 folded; dp2 cp4 zero3 folded; dp4 cp2 zero1 folded; dp4 cp2 zero3 folded;
  cp2 tp4 zero1 folded; cp2 tp4 zero3 folded; cp4 tp2 zero1 folded; cp4 tp2 zero3 folded;
  pp2 tp4 folded 1f1b; pp2 tp4 folded zero_bubble; pp2 cp4 zero1 folded 1f1b; pp2 cp4 zero1 folded zero_bubble"""
# name: model, layers, layouts without offloading, the plain layout, tokens a device, the wanted gain
MODELS = {"llama8b": (LLAMA, 32, DENSE_LAYOUTS, "dp8", (16384, 32768, 65536, 131072), 0.20),
          "deepseek": (DEEPSEEK, 3, EXPERT_LAYOUTS, "ep8", (8192, 32768), 0.12)}


def profile_text():
    """The matrix384 profile, with HBM and a pool that hold any job, and no reserve."""
    text = (pathlib.Path(__file__).resolve().parents[2] / "proto/profiles/matrix384.textproto").read_text()
    for field in (r"\n  hbm", r"\n  pool {\s*capacity"):
        endless = f'{{ value: "{ENDLESS}" evidence: "placeholder" source: "whatever a job needs" }}'
        text, count = re.subn(rf"({field}) {{ value: .*}}", rf"\1 {endless}", text)
        assert count == 1, f"the profile has {count} fields that look like {field}"
    return re.sub(r"\n  reserve {.*}", "", text)


def axes_of(layout):
    return {name: int(size) for name, size in re.findall(r"\b([a-z]+)(\d+)\b", layout) if name != "zero"}


def zero_rules(zero, over):
    """ZeRO over axes that its presets do not know, but on which weights are whole as well."""
    axes = ", ".join(f'"{axis}"' for axis in over)
    tensors = {"zero1": ["*.adam_*"], "zero2": ["*.adam_*", "*.grad*"], "zero3": ["*"]}[zero]
    return "".join(f'rules {{ tensor: "{t}" stored: true dims {{ dim: "*" axes: [{axes}] }} }} ' for t in tensors)


def parallel(layout):
    axes, words = axes_of(layout), layout.split()
    mesh = " ".join(f'mesh {{ name: "{name}" size: {size} }}' for name, size in axes.items())
    presets = [name for name in axes if name not in ("pp", "tpx", "tpy")]
    presets += ["sp"] * ("tp" in axes) + ["tp2d"] * ("tpx" in axes) + ["etp"] * ("etp" in words)
    zero = next((word for word in words if re.fullmatch(r"zero\d", word)), None)
    over = [name for name in ("dp", "cp", "ring", "ep") if name in axes]
    by_preset = over == ["dp"]
    presets += [zero] * bool(zero and by_preset)
    rules = zero_rules(zero, over) if zero and not by_preset else ""
    if "folded" in words:
        over_all = ", ".join(f'"{name}"' for name in axes if name != "pp")
        dims = f'dims {{ dim: "experts" axes: [{over_all}] }}'
        rules += "".join(f'rules {{ tensor: "layers.*.experts.{w}" {dims} }} ' for w in ("gate", "up", "down"))
    pipeline = f'pipeline {{ axis: "pp" schedule: "{words[-1]}" }}' if "pp" in axes else ""
    return f"{mesh} presets: {json.dumps(presets)} {rules} {pipeline}"


def recomputed(how):
    if how.startswith("full of"):
        last = int(how.split()[-1]) - 1
        return f'recompute {{ policy: "selective" }} recompute {{ policy: "full" last_layer: {last} }}'
    return "" if how == "none" else f'recompute {{ policy: "{how}" }}'


def job_text(point, layout, micro_batches, recompute, policy, budget=HBM):
    """A job whose devices have `budget` bytes of HBM. Without transfers the budget is endless, to find the job's need."""
    model, layers, *_ = MODELS[point["model"]]
    hbm = ENDLESS if policy == "none" else f"{budget} B"
    clip = "clip_norm: 0" if "unclipped" in layout.split() else ""
    memory = ACTIVATIONS if policy == "activations" else f'policy: "{policy}"'
    return f"""name: "sweep"
supernode {{ devices: {DEVICES} profile: "{PROFILE}" hbm: "{hbm}" pool: "{ENDLESS}" }}
model {{ {model.format(layers=layers)} sequence: {point["sequence"]} }}
parallel {{ {parallel(layout)} }}
memory {{ {memory} }}
data {{ corpus: "none" }}
training {{ steps: 1 batch: {point["batch"]} micro_batches: {micro_batches} lr: 3e-4 {clip} precision: "bfloat16"
           {recomputed(recompute)} }}
"""


def micro_batch_counts(layout, batch):
    axes = axes_of(layout)
    ways, stages = axes.get("dp", 1) * axes.get("ep", 1), axes.get("pp", 1)
    most = min(batch // ways, 8 * stages) if stages > 1 else batch // ways
    counts = [stages * 2**k for k in range(most.bit_length())]
    return [count for count in counts if count <= most and batch % (count * ways) == 0]
