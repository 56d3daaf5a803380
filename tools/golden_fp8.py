#!/usr/bin/env python3
"""Tiny FP8 checkpoints of every published kind, and the logits of their formula in float32.

    golden_fp8.py [--only NAME-PREFIX]

Writes testing/data/fp8/NAME/ (a checkpoint) and testing/data/fp8/NAME.json:

    architecture, made_by
    ids, shape, logits   as in golden_archs.py
    range                largest minus smallest logit
    library              largest difference, over the range, when transformers + compressed-tensors run the checkpoint; null
                         where they cannot
    noise                largest difference, over the range, when every sum is made in other orders and every quantised
                         input is moved by 3e-7 of its row's root mean square: ids are chosen so that no activation is near
                         a rounding boundary of e4m3, and right engines can be compared to 1e-4 of the range
    sensitivity          the same when activations stay unquantised, or have another granularity

`compressed-tensors` checkpoints are made by llm-compressor, some then edited (scales in F16 and F32); those of
`quant_method: fp8` are written here in the shape in which they are published, with float32 scales = amax / 448.
"""

import argparse
import json
import os
import shutil
import tempfile

import oracle_common as oracle
import oracle_fp8 as fp8
import torch
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

OUT = os.path.join(oracle.DATA, "fp8")
TOKENS = 16
PERTURBATION = 3e-7
VOCAB = 48
SMALL = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2}
RAGGED = {"hidden_size": 80, "intermediate_size": 112, "num_hidden_layers": 1, "num_attention_heads": 5,
          "num_key_value_heads": 1}
IGNORE = ["lm_head", "re:.*embed_tokens"]


def args_of(strategy, dynamic=False, **more):
    return QuantizationArgs(num_bits=8, type="float", strategy=strategy, symmetric=True, dynamic=dynamic, **more)


def scheme(weights, inputs=None):
    return QuantizationScheme(targets=["Linear"], weights=weights, input_activations=inputs)


def model_free(how):
    """A maker: llm-compressor's path that needs no calibration."""

    def make(source, out, _):
        from llmcompressor import model_free_ptq

        model_free_ptq(source, out, scheme=how, ignore=IGNORE, device="cpu", max_workers=1)

    return make


def static(source, out, ids):
    """A maker: per-tensor weights and static input scales."""
    fp8.compress_static_ids(source, out, ids)


def mixed(source, out, ids):
    """A maker: two groups of layers, and one that is left alone."""
    groups = {
        "attention": QuantizationScheme(targets=["re:.*self_attn.*"], weights=args_of("channel"),
                                        input_activations=args_of("token", dynamic=True)),
        "mlp": QuantizationScheme(targets=["re:.*mlp[.](gate|up)_proj", "model.layers.0.mlp.down_proj"],
                                  weights=args_of("tensor"),
                                  input_activations=args_of("tensor", observer="static_minmax")),
    }
    fp8.compress_static_ids(source, out, ids, groups=groups, ignore=["lm_head", "model.layers.1.mlp.down_proj"])


def other_scale_types(source, out, ids):
    """A maker: weight scales of one layer in F16, of the other in F32."""
    model_free("FP8_DYNAMIC")(source, out, ids)
    tensors = fp8.read_tensors(out)
    for name in tensors:
        if name.endswith("_scale"):
            tensors[name] = tensors[name].to(torch.float16 if ".layers.0." in name else torch.float32)
    save_file(tensors, os.path.join(out, "model.safetensors"), {"format": "pt"})


def published_fp8(activations, block=None, skip_key="modules_to_not_convert", skip=("lm_head",), scale_type=torch.float32,
                  shards=1):
    """A maker: `quant_method: fp8`, per block (weight_scale_inv) or per tensor (weight_scale)."""

    def make(source, out, ids):
        os.makedirs(out)
        shutil.copy(os.path.join(source, "generation_config.json"), out)
        tensors = fp8.read_tensors(source)
        inputs = linear_inputs(source, ids)
        for layer in inputs:
            if layer in skip:
                continue
            w = tensors[layer + ".weight"].float()
            rows, columns = block or w.shape
            padded = torch.nn.functional.pad(w, (0, -w.shape[1] % columns, 0, -w.shape[0] % rows))
            amax = padded.unflatten(1, (-1, columns)).unflatten(0, (-1, rows)).abs().amax((1, 3))
            scale = (amax / fp8.E4M3_MAX).to(scale_type)
            if not block:
                scale = scale.reshape(())
            each = fp8.dequantise(torch.ones_like(w), scale, block)
            codes = torch.clamp(w / each, -fp8.E4M3_MAX, fp8.E4M3_MAX).to(torch.float8_e4m3fn)
            tensors[layer + ".weight"] = codes
            tensors[layer + (".weight_scale_inv" if block else ".weight_scale")] = scale
            if activations == "static":
                tensors[layer + ".input_scale"] = torch.tensor(inputs[layer] / fp8.E4M3_MAX)
        save_shards(tensors, out, shards)
        quantisation = {"activation_scheme": activations, "fmt": "e4m3", "quant_method": "fp8"}
        if block:
            quantisation["weight_block_size"] = list(block)
        if skip_key:
            quantisation[skip_key] = list(skip)
        shutil.copy(os.path.join(source, "config.json"), out)
        oracle.edit_json(os.path.join(out, "config.json"), lambda c: {**c, "quantization_config": quantisation})

    return make


def save_shards(tensors, out, count):
    """One file, or `count` files in which the names take turns, so that a weight and its scale lie apart."""
    if count == 1:
        save_file(tensors, os.path.join(out, "model.safetensors"), {"format": "pt"})
        return
    weight_map = {}
    for i in range(count):
        part = {name: tensors[name] for name in sorted(tensors)[i::count]}
        file = f"model-{i + 1:05}-of-{count:05}.safetensors"
        save_file(part, os.path.join(out, file), {"format": "pt"})
        weight_map.update({name: file for name in part})
    size = sum(x.numel() * x.element_size() for x in tensors.values())
    with open(os.path.join(out, "model.safetensors.index.json"), "w", encoding="utf-8") as file:
        json.dump({"metadata": {"total_size": size}, "weight_map": dict(sorted(weight_map.items()))}, file, indent=2)
        file.write("\n")


def linear_inputs(folder, ids):
    """Linear layer -> largest |input| over the ids, lm_head included."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    found = {}
    for name, layer in model.named_modules():
        if isinstance(layer, torch.nn.Linear):
            layer.register_forward_pre_hook(
                lambda _, args, name=name: found.__setitem__(name, float(args[0].abs().max())))
    oracle.logits_of(model, ids)
    return found


NORMS = [f"model.layers.0.{name}" for name in ("input_layernorm", "post_attention_layernorm", "self_attn.q_norm")]

# Name: (model type, config, maker, whether the library can run it).
CASES = {
    "ct-dynamic": ("llama", SMALL, model_free("FP8_DYNAMIC"), True),
    "ct-dynamic-scale-types": ("llama", SMALL, other_scale_types, False),
    "ct-static": ("llama", SMALL, static, True),
    "ct-weight-only": ("llama", SMALL, model_free(scheme(args_of("channel"))), True),
    "ct-weight-only-tensor": ("llama", {**SMALL, "num_hidden_layers": 1}, model_free(scheme(args_of("tensor"))), True),
    "ct-weight-only-block": ("llama", RAGGED, model_free(scheme(args_of("block", block_structure=[32, 48]))), True),
    "ct-block": ("llama", {**SMALL, "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 1},
                 model_free("FP8_BLOCK"), True),
    "ct-block-ragged": ("llama", {**RAGGED, "hidden_size": 160, "intermediate_size": 136}, model_free("FP8_BLOCK"), False),
    "ct-group": ("llama", {**SMALL, "num_hidden_layers": 1},
                 model_free(scheme(args_of("group", group_size=32), args_of("group", dynamic=True, group_size=32))), True),
    "ct-tensor-token": ("llama", {**SMALL, "num_hidden_layers": 1},
                        model_free(scheme(args_of("tensor"), args_of("token", dynamic=True))), True),
    # A scale over all tokens would make an answer depend on its batch: computed per token.
    "ct-tensor-dynamic": ("llama", {**SMALL, "num_hidden_layers": 1},
                          model_free(scheme(args_of("tensor"), args_of("tensor", dynamic=True))), False),
    "ct-mixed": ("llama", SMALL, mixed, True),
    "ct-qwen2-dynamic": ("qwen2", {**SMALL, "num_hidden_layers": 1}, model_free("FP8_DYNAMIC"), True),
    "fp8-block": ("llama", RAGGED, published_fp8("dynamic", (32, 48)), False),
    "fp8-block-sharded": ("llama", {**SMALL, "num_hidden_layers": 1}, published_fp8("dynamic", (32, 32), shards=3), False),
    "fp8-block-qwen3": ("qwen3", {**SMALL, "hidden_size": 128, "intermediate_size": 160, "num_hidden_layers": 1,
                                  "head_dim": 32, "tie_word_embeddings": True},
                        published_fp8("dynamic", (128, 128), skip=("lm_head", *NORMS), scale_type=torch.bfloat16), False),
    "fp8-static": ("llama", SMALL, published_fp8("static", skip_key="ignored_layers",
                                                 skip=("lm_head", "model.layers.0.mlp.down_proj")), False),
    "fp8-dynamic": ("llama", SMALL, published_fp8("dynamic", skip_key=None), False),
}


def perturb(model, amount):
    """Move what every linear layer is given by `amount` of its row's root mean square, before it is quantised."""
    generator = torch.Generator().manual_seed(3)

    def hook(_, args):
        x = args[0]
        size = x.square().mean(-1, keepdim=True).sqrt()
        return (x + amount * size * torch.randn(x.shape, generator=generator),)

    return [layer.register_forward_pre_hook(hook, prepend=True)
            for layer in model.modules() if isinstance(layer, torch.nn.Linear)]


def noise_of(model, ids, logits):
    """The largest change of a logit in eight perturbed runs."""
    generator = torch.Generator().manual_seed(4)
    hooks = perturb(model, PERTURBATION)
    worst = 0.0
    for _ in range(8):
        fp8.reorder_sums(model, generator)
        worst = max(worst, float((oracle.logits_of(model, ids) - logits).abs().max()))
    fp8.reorder_sums(model, None)
    for hook in hooks:
        hook.remove()
    return worst


def coarser(folder, ids):
    """Logits when dynamic groups are taken over whole rows, and rows in groups of 32."""
    groups = fp8.quantise_groups
    try:
        fp8.quantise_groups = lambda x, size: groups(x, 32 if size == x.shape[-1] else x.shape[-1])
        return oracle.logits_of(fp8.reference_model(folder), ids)
    finally:
        fp8.quantise_groups = groups


def make(name):
    """Write the checkpoint and the golden of one case."""
    model_type, values, maker, in_library = CASES[name]
    folder = os.path.join(OUT, name)
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        source = os.path.join(scratch, "source")
        config = AutoConfig.for_model(model_type, vocab_size=VOCAB, max_position_embeddings=64, rms_norm_eps=1e-5,
                                      bos_token_id=1, eos_token_id=2, **values)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        oracle.randomize(model, "fp8", name)
        model.to(torch.bfloat16).save_pretrained(source)
        maker(source, folder, oracle.random_ids(VOCAB, 48, "fp8", name, "calibration"))
    for file in os.listdir(folder):
        os.chmod(os.path.join(folder, file), 0o644)

    model = fp8.reference_model(folder)
    for attempt in range(1000):
        ids = oracle.random_ids(VOCAB, TOKENS, "fp8", name, attempt)
        logits = oracle.logits_of(model, ids)
        spread = float(logits.max() - logits.min())
        noise = noise_of(model, ids, logits) / spread
        if noise < 2e-5:
            break
    else:
        raise SystemExit(f"{name}: every sequence has an activation near a rounding boundary")

    def difference(other):
        return float(f"{float((other - logits).abs().max()) / spread:.3g}")

    sensitivity = {}
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        quantised = json.load(file)["quantization_config"]
    if "activation_scheme" in quantised or any(g["input_activations"] for g in quantised["config_groups"].values()):
        sensitivity["activations unquantised"] = difference(
            oracle.logits_of(fp8.reference_model(folder, activations=False), ids))
        if "static" not in name:
            sensitivity["other granularity"] = difference(coarser(folder, ids))
    weak = [check for check, value in sensitivity.items() if value < 0.002]
    if weak:
        raise SystemExit(f"{name}: cannot tell a right engine from a wrong one: {sensitivity}")
    library = difference(oracle.logits_of(fp8.library_model(folder), ids)) if in_library else None
    if library is not None and library > 2e-5:
        raise SystemExit(f"{name}: the library differs from the formula by {library}")
    oracle.write_json(folder + ".json", {
        "architecture": type(model).__name__,
        "made_by": "llmcompressor" if name.startswith("ct-") else "golden_fp8.py",
        "ids": ids,
        "shape": list(logits.shape),
        "range": float(f"{spread:.6g}"),
        "library": library,
        "noise": float(f"{noise:.2g}"),
        "sensitivity": sensitivity,
        "logits": oracle.base64_f32(logits),
    })
    print(f"{name}: attempt {attempt}, range {spread:.3g}, noise {noise:.1e}, library {library}, {sensitivity}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAME-PREFIX", default="", help="make the models whose name begins so")
    args = parser.parse_args()
    oracle.setup()
    for name in CASES:
        if name.startswith(args.only):
            make(name)


if __name__ == "__main__":
    main()
