#!/usr/bin/env python3
"""Check that an FP8 checkpoint loads and runs in transformers with compressed-tensors, and says there what its formula says.

    check_quantized.py MODEL_DIR [--prompt TEXT | --ids 1,2,3] [--source BF16_DIR]

Fails (exit 1) when transformers misses a tensor or finds one that it does not know, when its float32 logits differ from those
of the formula in oracle_fp8.py by more than 1e-4 of their range, or are not finite. Rows that a dynamic group size does not
divide are refused by compressed-tensors; for such a checkpoint the loading alone is checked, and that is printed.

With --source every weight is also compared, byte for byte, with what llm-compressor makes of the bf16 checkpoint (weight
codes and weight scales; input scales depend on the calibration text and are left out).
"""

import argparse
import json
import os
import sys
import tempfile

import oracle_common as oracle
import oracle_fp8 as fp8
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def loaded(folder):
    """The checkpoint as transformers takes it, in float32; stops at tensors missing or unknown."""
    model, report = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    faults = {key: sorted(report[key])[:5] for key in ("missing_keys", "unexpected_keys", "mismatched_keys") if report[key]}
    if faults:
        sys.exit(f"{folder}: transformers does not take the checkpoint as it is: {faults}")
    return model.eval()


def ragged_layers(quantisation, model):
    """Linear layers whose rows the activation group size does not divide."""
    layers = {name: layer for name, layer in model.named_modules() if isinstance(layer, torch.nn.Linear)}
    groups = {name: group for name, (_, group) in fp8.schemes_of(quantisation, layers).items()}
    return [name for name, group in groups.items() if isinstance(group, int) and group and layers[name].in_features % group]


def form_of(quantisation):
    """The --scheme of `octet quantize` that makes such a checkpoint."""
    group = next(iter(quantisation["config_groups"].values()))
    inputs = group.get("input_activations")
    if inputs is None:
        return "fp8-weight-only"
    return "fp8-block" if group["weights"]["strategy"] == "block" else "fp8-dynamic" if inputs["dynamic"] else "fp8-static"


def compare_weights(folder, source, form):
    """Stop unless weights and weight scales are those of llm-compressor."""
    with tempfile.TemporaryDirectory() as scratch:
        out = os.path.join(scratch, form)
        if form == "fp8-static":  # Its weights do not depend on what it calibrates with.
            fp8.compress_static_ids(source, out, [1, 2, 3, 4])
        else:
            fp8.compress(source, out, form, None)
        ours, theirs = fp8.read_tensors(folder), fp8.read_tensors(out)
    if sorted(ours) != sorted(theirs):
        sys.exit(f"{folder}: other tensors than llm-compressor writes: {sorted(set(ours) ^ set(theirs))[:5]}")
    compared = 0
    for name, x in theirs.items():
        if name.endswith(".input_scale"):
            continue
        y = ours[name]
        if x.dtype != y.dtype or x.shape != y.shape or oracle.raw_bytes(x) != oracle.raw_bytes(y):
            sys.exit(f"{folder}: '{name}' is not what llm-compressor writes: {y.dtype} {list(y.shape)}, "
                     f"expected {x.dtype} {list(x.shape)}, or other bytes")
        compared += 1
    print(f"{compared} tensors equal those of llm-compressor ({form})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL_DIR")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--prompt", metavar="TEXT", default="The capital of France is")
    what.add_argument("--ids", metavar="1,2,3", help="token ids, for a checkpoint without a tokenizer")
    parser.add_argument("--source", metavar="BF16_DIR", help="compare with what llm-compressor makes of this checkpoint")
    args = parser.parse_args()
    oracle.setup()
    with open(os.path.join(args.model, "config.json"), encoding="utf-8") as file:
        quantisation = json.load(file)["quantization_config"]
    tokenizer = None if args.ids else AutoTokenizer.from_pretrained(args.model)
    ids = [int(i) for i in args.ids.split(",")] if args.ids else tokenizer(args.prompt).input_ids

    model = loaded(args.model)
    expected = oracle.logits_of(fp8.reference_model(args.model), ids)
    ragged = ragged_layers(quantisation, model)
    if ragged:
        print(f"loads; compressed-tensors cannot run {len(ragged)} layers such as {ragged[0]}: rows not divided by their group")
    else:
        logits = oracle.logits_of(model, ids)
        difference = float((logits - expected).abs().max() / (expected.max() - expected.min()))
        if not difference < 1e-4:
            sys.exit(f"{args.model}: transformers' logits differ from the formula by {difference:.1e} of their range")
        print(f"loads and runs; logits differ from the formula by {difference:.1e} of their range")
    if not torch.isfinite(expected).all():
        sys.exit(f"{args.model}: logits are not finite")
    best = int(expected[-1].argmax())
    print("next token:", best, repr(tokenizer.decode([best])) if tokenizer else "")
    if args.source:
        compare_weights(args.model, args.source, form_of(quantisation))


if __name__ == "__main__":
    main()
