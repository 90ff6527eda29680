#!/usr/bin/python3
"""The peer: the same Llama in eager PyTorch on the CPU, trained or generating. bench/train/compare.py and
bench/generation/compare.py run it beside hyperrun.

    torch_peer.py --dim 256 --layers 4 --heads 8 --vocab 4096 --seq 256 --batch 4 --threads 2
    torch_peer.py ... --ranks 2 --threads 1        data parallel over gloo; --batch stays the global one
    torch_peer.py ... --seq 160 --batch 1 --generate --prompt 32 --grow 128
                                                   prompts of 32 tokens, each grows by 128, the likeliest each time

It is written as a careful user would: q, k and v are one projection, gate and up are one, RoPE turns q and k
together, the mask and the scale enter with the product of q and k, AdamW is the foreach one, DDP's gradients are
views of its buckets. Unlike hyperrun it does not clip gradients, which spares it that work. Generating, it keeps
keys and values in tensors of the full length, and computes the logits of the last token alone. The set-up that must
stand before the process starts (BLAS, vector width, malloc that keeps its pages) is compare.py's.

Prints one JSON line: parameters, the seconds of each step (all ranks begin a step together; rank 0's time) and
the losses; generating, the seconds of each prompt and of each further token."""
import argparse
import json
import os
import sys
import tempfile
import time


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("dim", "layers", "heads", "vocab", "seq", "batch"):
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("--ffn", type=int, default=0, help="0: 8/3 dim, rounded up to a multiple of 64")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--steps", type=int, default=12, help="or prompts, generating")
    parser.add_argument("--generate", action="store_true")
    parser.add_argument("--prompt", type=int, default=32)
    parser.add_argument("--grow", type=int, default=128)
    parsed = parser.parse_args()
    parsed.ffn = parsed.ffn or -(-8 * parsed.dim // 3 // 64) * 64
    if parsed.batch % parsed.ranks:
        parser.error("--ranks must divide --batch")
    if parsed.generate and (parsed.ranks > 1 or parsed.prompt + parsed.grow > parsed.seq):
        parser.error("--generate is of one rank, and up to --seq")
    return parsed


def fork_ranks(ranks):
    """Forks the ranks before torch is loaded, so that no rank inherits its threads. Returns (rank, children)."""
    children = []
    for rank in range(1, ranks):
        pid = os.fork()
        if pid == 0:
            return rank, []
        children.append(pid)
    return 0, children


def build_model(a):
    import torch
    from torch import nn
    from torch.nn import functional as F

    head_dim = a.dim // a.heads

    class RmsNorm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(a.dim))

        def forward(self, x):
            return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * self.weight

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(a.dim, 3 * a.dim, bias=False)
            self.out = nn.Linear(a.dim, a.dim, bias=False)

        def forward(self, x, cos, sin, mask, cache=None, start=0):
            batch, seq, _ = x.shape
            qkv = self.qkv(x).view(batch, seq, 3, a.heads, head_dim).permute(2, 0, 3, 1, 4)
            low, high = qkv[:2].chunk(2, -1)
            turned = torch.cat((low * cos - high * sin, high * cos + low * sin), -1)
            q, k = turned.view(2, batch * a.heads, seq, head_dim).unbind(0)
            v = qkv[2].reshape(batch * a.heads, seq, head_dim)
            if cache is not None:
                for all_of_them, new in zip(cache, (k, v)):
                    all_of_them[:, start:start + seq] = new
                k, v = (all_of_them[:, :start + seq] for all_of_them in cache)
            one = seq == 1 and cache is not None  # it sees everything: its mask is not read
            weights = torch.baddbmm(mask, q, k.transpose(1, 2), beta=0 if one else 1, alpha=head_dim ** -0.5).softmax(-1)
            mixed = torch.bmm(weights, v).view(batch, a.heads, seq, head_dim)
            return self.out(mixed.transpose(1, 2).reshape(batch, seq, a.dim))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention_norm, self.attention = RmsNorm(), Attention()
            self.ffn_norm = RmsNorm()
            self.gate_up = nn.Linear(a.dim, 2 * a.ffn, bias=False)
            self.down = nn.Linear(a.ffn, a.dim, bias=False)

        def forward(self, x, cos, sin, mask, cache=None, start=0):
            x = x + self.attention(self.attention_norm(x), cos, sin, mask, cache, start)
            gate, up = self.gate_up(self.ffn_norm(x)).chunk(2, -1)
            return x + self.down(F.silu(gate) * up)

    class Llama(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(a.vocab, a.dim)
            self.blocks = nn.ModuleList(Block() for _ in range(a.layers))
            self.norm = RmsNorm()
            self.head = nn.Linear(a.dim, a.vocab, bias=False)
            for parameter in self.parameters():
                if parameter.dim() > 1:
                    nn.init.normal_(parameter, std=0.02)
            rates = 10000.0 ** (-torch.arange(0, head_dim, 2) / head_dim)
            angles = torch.outer(torch.arange(a.seq), rates)
            self.register_buffer("cos", angles.cos())
            self.register_buffer("sin", angles.sin())
            self.register_buffer("mask", torch.full((1, a.seq, a.seq), float("-inf")).triu(1))

        def forward(self, ids, targets):
            x = self.embedding(ids)
            for block in self.blocks:
                x = block(x, self.cos, self.sin, self.mask)
            logits = self.head(self.norm(x))
            return F.cross_entropy(logits.view(-1, a.vocab), targets.reshape(-1))

        def last_logits(self, ids, caches, start):
            x, end = self.embedding(ids), start + ids.shape[1]
            for block, cache in zip(self.blocks, caches):
                x = block(x, self.cos[start:end], self.sin[start:end], self.mask[:, start:end, :end], cache, start)
            return self.head(self.norm(x[:, -1]))

    return Llama()


def generate(a):
    import torch

    torch.set_num_threads(a.threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    model = build_model(a).eval()
    prompts, tokens = [], []
    timed = lambda ids, caches, start: (model.last_logits(ids, caches, start).argmax(-1, keepdim=True), time.perf_counter())
    with torch.inference_mode():
        for _ in range(a.steps):
            lines = (a.batch * a.heads, a.prompt + a.grow, a.dim // a.heads)
            caches = [(torch.zeros(lines), torch.zeros(lines)) for _ in range(a.layers)]
            ids = torch.randint(0, a.vocab, (a.batch, a.prompt))
            begin = time.perf_counter()
            last, end = timed(ids, caches, 0)
            prompts.append(end - begin)
            for start in range(a.prompt, a.prompt + a.grow - 1):
                begin = end
                last, end = timed(last, caches, start)
                tokens.append(end - begin)
    print(json.dumps({"torch": torch.__version__, "parameters": sum(p.numel() for p in model.parameters()),
                      "prompt_seconds": prompts, "token_seconds": tokens}))


def train(a, rank, rendezvous):
    import torch
    from torch import distributed

    torch.set_num_threads(a.threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    model = build_model(a)
    parameters = sum(p.numel() for p in model.parameters())
    if a.ranks > 1:
        distributed.init_process_group("gloo", init_method="file://" + rendezvous, rank=rank, world_size=a.ranks)
        model = torch.nn.parallel.DistributedDataParallel(model, broadcast_buffers=False, gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), foreach=True)
    generator = torch.Generator().manual_seed(7 + rank)
    ids = [torch.randint(0, a.vocab, (a.batch // a.ranks, a.seq + 1), generator=generator) for _ in range(a.steps)]
    seconds, losses = [], []
    for batch in ids:
        if a.ranks > 1:
            distributed.barrier()
        begin = time.perf_counter()
        loss = model(batch[:, :-1], batch[:, 1:])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seconds.append(time.perf_counter() - begin)
        losses.append(loss.item())
    if rank == 0:
        print(json.dumps({"torch": torch.__version__, "parameters": parameters, "seconds": seconds, "losses": losses}))
    if a.ranks > 1:
        distributed.barrier()
        distributed.destroy_process_group()


def main():
    a = arguments()
    if a.generate:
        return generate(a)
    with tempfile.TemporaryDirectory() as directory:
        rank, children = fork_ranks(a.ranks)
        if a.ranks > 1 and a.threads == 1 and a.ranks <= os.cpu_count():
            os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[rank]})
        train(a, rank, os.path.join(directory, "ranks"))
        if rank > 0:
            sys.stdout.flush()
            os._exit(0)  # rank 0 removes the directory
        failed = sum(os.waitpid(child, 0)[1] != 0 for child in children)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
