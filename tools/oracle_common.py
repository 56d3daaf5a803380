"""What the golden_*.py scripts share: seeded weights, compact JSON, arrays as text."""

import base64
import json
import os
import zlib

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TQDM_DISABLE", "1")
os.environ.setdefault("LLM_COMPRESSOR_LOG_DISABLED", "true")

import numpy as np
import torch
import transformers

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DATA = os.path.join(ROOT, "testing", "data")


def setup():
    """One thread, so that sums have one order and a golden has one value."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    transformers.utils.logging.disable_progress_bar()


def rng(*words):
    """A NumPy generator seeded by words, equal on every machine and in every version of NumPy that keeps PCG64."""
    return np.random.Generator(np.random.PCG64(zlib.crc32("/".join(map(str, words)).encode())))


def base64_f32(x):
    """A tensor as base64 of little-endian float32, row-major."""
    return base64_bytes(x.detach().to(torch.float32).contiguous().numpy().astype("<f4").tobytes())


def base64_bytes(raw):
    """Bytes as base64 text."""
    return base64.b64encode(raw).decode("ascii")


def raw_bytes(x):
    """The bytes of a tensor of any dtype, row-major, little-endian."""
    return x.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def write_json(path, value):
    """One top-level member per line: small, and a diff shows which member changed."""
    lines = [f"{json.dumps(key)}: {json.dumps(item, separators=(',', ':'))}" for key, item in value.items()]
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as out:
        out.write("{\n" + ",\n".join(lines) + "\n}\n")


def randomize(model, *seed):
    """Give every parameter seeded values that make each part of the graph matter.

    Linear layers keep the variance of their input, q and k make it larger so that attention is far from uniform, norm
    weights differ from 1 and biases from 0.
    """
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            shape = tuple(parameter.shape)
            x = rng(*seed, name).standard_normal(shape)
            if "norm" in name:
                x = 1.0 + 0.2 * x
            elif name.endswith("bias"):
                x = 0.3 * x
            elif "lm_head" in name or "embed_tokens" in name:
                x = 2.0 / np.sqrt(shape[-1]) * x
            else:
                gain = 1.5 if "q_proj" in name or "k_proj" in name else 1.0
                x = gain / np.sqrt(shape[-1]) * x
            parameter.copy_(torch.from_numpy(x.astype(np.float32)))


def random_ids(vocab, count, *seed):
    """Seeded token ids below `vocab`."""
    return [int(i) for i in rng(*seed, "ids").integers(0, vocab, count)]


def logits_of(model, ids):
    """Logits of every position of one sequence, [T, V]."""
    with torch.no_grad():
        return model(torch.tensor([ids]), use_cache=False).logits[0]


def edit_json(path, edit):
    """Rewrite one JSON file by a function of its value."""
    with open(path, encoding="utf-8") as source:
        value = json.load(source)
    value = edit(value)
    with open(path, "w", encoding="utf-8") as out:
        json.dump(value, out, indent=2)
        out.write("\n")
