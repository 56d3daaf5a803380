#!/usr/bin/env python3
"""How long `octet plan` of a large model takes, as a process.

    plan_bench.py OCTET [--runs 20] [--dir FOLDER] [--form fp8|compressed-tensors] [-- PLAN-FLAGS]

Writes a checkpoint with the shapes of Qwen3-32B-FP8 in both dialects: headers, and sparse files of full length that take
no space on the disk. Prints the median wall and processor time of the process over all runs, and what --timing says in
the last. A plan that does not fit this machine (exit status 3) is planned all the same and counts.
"""

import argparse
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
import time

LAYERS, HIDDEN, INTERMEDIATE, VOCAB = 64, 5120, 25600, 151936
HEADS, KV_HEADS, HEAD_DIM, BLOCK = 64, 8, 128, 128
SHARD_BYTES = 5_000_000_000  # as transformers shards
BYTES = {"F8_E4M3": 1, "BF16": 2}


def linears():
    """Module of a layer -> its shape [N, K]."""
    q, kv = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
    return {"self_attn.q_proj": (q, HIDDEN), "self_attn.k_proj": (kv, HIDDEN), "self_attn.v_proj": (kv, HIDDEN),
            "self_attn.o_proj": (HIDDEN, q), "mlp.gate_proj": (INTERMEDIATE, HIDDEN),
            "mlp.up_proj": (INTERMEDIATE, HIDDEN), "mlp.down_proj": (HIDDEN, INTERMEDIATE)}


def tensors(scale_name):
    """Every (name, dtype, shape) of the checkpoint."""
    yield "lm_head.weight", "BF16", [VOCAB, HIDDEN]
    yield "model.embed_tokens.weight", "BF16", [VOCAB, HIDDEN]
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}."
        for norm in ("input_layernorm", "post_attention_layernorm"):
            yield f"{prefix}{norm}.weight", "BF16", [HIDDEN]
        for norm in ("q_norm", "k_norm"):
            yield f"{prefix}self_attn.{norm}.weight", "BF16", [HEAD_DIM]
        for module, (n, k) in linears().items():
            yield f"{prefix}{module}.weight", "F8_E4M3", [n, k]
            yield f"{prefix}{module}.{scale_name}", "BF16", [n // BLOCK, k // BLOCK]
    yield "model.norm.weight", "BF16", [HIDDEN]


def fp8_config():
    # Published checkpoints list the modules that have no FP8 weight one by one.
    plain = ["lm_head"]
    for layer in range(LAYERS):
        plain += [f"model.layers.{layer}.{name}" for name in ("input_layernorm", "post_attention_layernorm", "mlp.gate")]
    return {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [BLOCK, BLOCK],
            "modules_to_not_convert": plain}


def compressed_tensors_config():
    common = {"num_bits": 8, "type": "float", "symmetric": True}
    weights = {**common, "dynamic": False, "strategy": "block", "block_structure": [BLOCK, BLOCK]}
    inputs = {**common, "dynamic": True, "strategy": "group", "group_size": BLOCK}
    group = {"format": "float-quantized", "targets": ["Linear"], "weights": weights, "input_activations": inputs,
             "output_activations": None}
    return {"quant_method": "compressed-tensors", "format": "float-quantized", "quantization_status": "compressed",
            "config_groups": {"group_0": group}, "ignore": ["lm_head"], "kv_cache_scheme": None}


FORMS = {"fp8": ("weight_scale_inv", fp8_config), "compressed-tensors": ("weight_scale", compressed_tensors_config)}


def config(quantization):
    return {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "torch_dtype": "bfloat16",
            "hidden_size": HIDDEN, "intermediate_size": INTERMEDIATE, "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "head_dim": HEAD_DIM, "vocab_size": VOCAB,
            "max_position_embeddings": 40960, "rms_norm_eps": 1e-6, "rope_theta": 1000000, "hidden_act": "silu",
            "tie_word_embeddings": False, "attention_bias": False, "use_sliding_window": False, "bos_token_id": 151643,
            "eos_token_id": 151645, "quantization_config": quantization}


def write_shard(path, entries):
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, dtype, shape, size in entries:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + offset)


def write_checkpoint(folder, form):
    folder.mkdir()
    scale_name, quantization = FORMS[form]
    shards, used = [[]], 0
    for name, dtype, shape in tensors(scale_name):
        size = BYTES[dtype]
        for extent in shape:
            size *= extent
        if used + size > SHARD_BYTES and shards[-1]:
            shards.append([])
            used = 0
        shards[-1].append((name, dtype, shape, size))
        used += size
    weight_map = {}
    for i, entries in enumerate(shards, 1):
        file = f"model-{i:05}-of-{len(shards):05}.safetensors"
        write_shard(folder / file, entries)
        weight_map.update((entry[0], file) for entry in entries)
    total = sum(entry[3] for entries in shards for entry in entries)
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2))
    (folder / "config.json").write_text(json.dumps(config(quantization()), indent=2))
    return len(shards), len(weight_map), total


def run_once(command):
    """Milliseconds of wall time, of processor time, and the standard error."""
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        errors = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 3):
        sys.exit(f"{' '.join(command)}: exit status {process.returncode}\n{errors}")
    return wall * 1e3, (usage.ru_utime + usage.ru_stime) * 1e3, errors


def measure(octet, folder, form, runs, flags):
    model = folder / form
    shards, count, total = write_checkpoint(model, form)
    command = [octet, "plan", str(model), "--timing", *flags]
    run_once(command)  # warms the page cache
    results = [run_once(command) for _ in range(runs)]
    wall, processor = (statistics.median(r[i] for r in results) for i in (0, 1))
    print(f"{form}: {count} tensors in {shards} shards, {total / 1e9:.1f} GB; median of {runs} runs: "
          f"wall {wall:.1f} ms, user+sys {processor:.1f} ms")
    for line in results[-1][2].split("octet: ")[0].splitlines():
        print(f"    {line}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("octet")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--dir", help="where to write the checkpoint; the default is the system's temporary folder")
    parser.add_argument("--form", choices=FORMS, action="append", help="one dialect only")
    argv = sys.argv[1:]
    cut = argv.index("--") if "--" in argv else len(argv)
    args = parser.parse_args(argv[:cut])
    octet = str(pathlib.Path(args.octet).resolve())
    with tempfile.TemporaryDirectory(dir=args.dir) as folder:
        for form in args.form or FORMS:
            measure(octet, pathlib.Path(folder), form, args.runs, argv[cut + 1:])


if __name__ == "__main__":
    main()
