"""FP8 checkpoints by llm-compressor, and what they compute in float32, written out in a few lines of torch."""

import glob
import json
import math
import os
import re
import shutil
import tempfile

import oracle_common as oracle

import torch
from safetensors import safe_open
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

FORMS = ("fp8-dynamic", "fp8-block", "fp8-static", "fp8-weight-only")
E4M3_MAX = 448.0

FORMULAS = {
    "weight": "w = f32(code) * f32(scale), exact in float32 (4 by 8 significant bits)",
    "round": "q(x, s) = e4m3fn(clamp(x / s, -448, 448)) in float32: a division, not a product with 1/s; nearest, ties to even",
    "token": "per row: s = max(|x|) / 448 in float32, not rounded to any narrower type; 2^-23 where that is 0; x' = q(x, s) * s",
    "group": "as token, per row and run of 128 columns; the last run may be shorter (equal to padding with zeros)",
    "static": "s = f32(input_scale); x' = q(x, s) * s",
    "linear": "y = x' w^T + bias in float32",
}


def compress(source, out, form, calibration_text):
    """Write the FP8 checkpoint `out` of the bf16 checkpoint `source` as llm-compressor makes it.

    `calibration_text` is used by fp8-static alone: all its tokens are one sequence.
    """
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
    from llmcompressor import model_free_ptq

    shutil.rmtree(out, ignore_errors=True)
    if form == "fp8-static":
        compress_static(source, out, calibration_text)
        return
    weight_only = QuantizationScheme(
        targets=["Linear"],
        weights=QuantizationArgs(num_bits=8, type="float", strategy="channel", symmetric=True, dynamic=False))
    scheme = {"fp8-dynamic": "FP8_DYNAMIC", "fp8-block": "FP8_BLOCK", "fp8-weight-only": weight_only}[form]
    model_free_ptq(source, out, scheme=scheme, ignore=["lm_head", "re:.*embed_tokens"], device="cpu", max_workers=1)


def compress_static(source, out, calibration_text):
    """fp8-static: weights per tensor, input scales from the unquantised bf16 model over the calibration text."""
    tokenizer = AutoTokenizer.from_pretrained(source)
    compress_static_ids(source, out, tokenizer(calibration_text).input_ids, tokenizer)
    tokenizer.save_pretrained(out)


def compress_static_ids(source, out, ids, tokenizer=None, groups=None, ignore=("lm_head",)):
    """compress_static for token ids, with other config groups if given; the tool wants a tokenizer and does not use it."""
    from datasets import Dataset
    from llmcompressor import oneshot
    from llmcompressor.modifiers.quantization import QuantizationModifier

    if tokenizer is None:
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(WordLevel({"?": 0}, "?")), pad_token="?")
    model = AutoModelForCausalLM.from_pretrained(source, dtype=torch.bfloat16)
    samples = Dataset.from_list([{"input_ids": ids, "attention_mask": [1] * len(ids)}])
    how = {"config_groups": groups} if groups else {"targets": "Linear", "scheme": "FP8"}
    folder = os.getcwd()
    with tempfile.TemporaryDirectory() as scratch:  # oneshot leaves log files where it runs.
        os.chdir(scratch)
        try:
            oneshot(model=model, processor=tokenizer, dataset=samples, num_calibration_samples=1, max_seq_length=len(ids),
                    recipe=QuantizationModifier(ignore=list(ignore), **how))
        finally:
            os.chdir(folder)
    model.save_pretrained(out, save_compressed=True)


def read_tensors(folder):
    """Every tensor of a checkpoint by name."""
    tensors = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.safetensors"))):
        with safe_open(path, "pt") as file:
            tensors.update({name: file.get_tensor(name) for name in file.keys()})
    return tensors


def round_e4m3(x):
    """x within the range of e4m3 to its nearest value, ties to even."""
    return x.to(torch.float8_e4m3fn).to(x.dtype)


_rounder = round_e4m3


def use_rounder(rounder=round_e4m3):
    """Let `rounder` stand for round_e4m3 in every quantised input from now on; without an argument, restore it."""
    global _rounder
    _rounder = rounder


def quantise(x, scale):
    """x rounded to e4m3 multiples of `scale` (FORMULAS: round)."""
    return _rounder(torch.clamp(x / scale, -E4M3_MAX, E4M3_MAX)) * scale


def quantise_groups(x, size):
    """x with one dynamic scale per row and run of `size` columns (FORMULAS: token, group)."""
    columns = x.shape[-1]
    count = math.ceil(columns / size)
    groups = torch.nn.functional.pad(x, (0, count * size - columns)).unflatten(-1, (count, size))
    scale = groups.abs().amax(-1, keepdim=True) / E4M3_MAX
    scale = torch.where(scale == 0, torch.finfo(torch.float32).eps, scale)
    return quantise(groups, scale).flatten(-2)[..., :columns]


def dequantise(codes, scale, block):
    """A weight from its codes: one scale, one per row, or one per block [rows, columns] (FORMULAS: weight)."""
    w, scale = codes.to(torch.float32), scale.to(torch.float32)
    if scale.numel() == 1:
        return w * scale.reshape(())
    if scale.ndim == 1 or scale.shape[-1] == 1 and scale.shape[0] == w.shape[0]:
        return w * scale.reshape(-1, 1)
    rows = scale.repeat_interleave(block[0], 0)[: w.shape[0]]
    return w * rows.repeat_interleave(block[1], 1)[:, : w.shape[1]]


def matches(name, targets):
    """Whether a linear layer is one of `targets`: its class, its name, or `re:` and a regular expression."""
    return any(
        re.match(target[3:], name) if target.startswith("re:") else target in ("Linear", name) for target in targets
    )


def schemes_of(config, names):
    """Layer name -> (weight block or None, activation: None, 'static', or a dynamic group size with 0 for the whole row)."""
    found = {}
    if config["quant_method"] == "fp8":
        block = config.get("weight_block_size")
        # The output head is never quantised by this method, listed or not.
        skipped = ["lm_head", *(config.get("modules_to_not_convert") or config.get("ignored_layers") or [])]
        activation = "static" if config["activation_scheme"] == "static" else block[1] if block else 0
        for name in names:
            if not any(skip == name or skip in name.split(".") or name.startswith(skip + ".") for skip in skipped):
                found[name] = (block, activation)
        return found
    for group in config["config_groups"].values():
        weights, inputs = group["weights"], group.get("input_activations")
        block = weights.get("block_structure") or ([1, weights["group_size"]] if weights["strategy"] == "group" else None)
        activation = None
        if inputs is not None:
            if not inputs["dynamic"]:
                activation = "static"
            else:
                activation = inputs["group_size"] if inputs["strategy"] == "group" else 0
        for name in names:
            if matches(name, group["targets"]) and not matches(name, config["ignore"]):
                found.setdefault(name, (block, activation))
    return found


def reference_model(folder, dtype=torch.float32, activations=True):
    """The checkpoint as a plain transformers model whose linear layers see quantised weights and inputs.

    With activations=False inputs stay as they are (the weight-only reading of the same checkpoint).
    """
    config = AutoConfig.from_pretrained(folder)
    quantisation = getattr(config, "quantization_config", None)
    if quantisation is not None:
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            quantisation = json.load(file)["quantization_config"]
        del config.quantization_config
    config._attn_implementation = "eager"
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    tensors = read_tensors(folder)
    linears = {name: layer for name, layer in model.named_modules() if isinstance(layer, torch.nn.Linear)}
    schemes = schemes_of(quantisation, linears) if quantisation else {}
    state, used = {}, set()
    for name in model.state_dict():
        source = name
        if name not in tensors and name == "lm_head.weight" and config.tie_word_embeddings:
            source = "model.embed_tokens.weight"
        value = tensors[source]
        used.add(source)
        layer = name.removesuffix(".weight")
        if name.endswith(".weight") and layer in schemes:
            scale = next(key for key in (layer + ".weight_scale", layer + ".weight_scale_inv") if key in tensors)
            used.add(scale)
            value = dequantise(value, tensors[scale], schemes[layer][0])
        state[name] = value.to(torch.float32)
    model.load_state_dict(state)
    for layer, (_, activation) in schemes.items():
        if activation == "static":
            used.add(layer + ".input_scale")
        if activations and activation is not None:
            linears[layer].register_forward_pre_hook(input_hook(activation, tensors.get(layer + ".input_scale")))
    unused = sorted(set(tensors) - used)
    if unused:
        raise SystemExit(f"{folder}: tensors that nothing uses: {unused[:4]}")
    return model.to(dtype)


def input_hook(activation, input_scale):
    """A forward pre-hook that quantises the input of a linear layer."""

    def hook(_, args):
        x = args[0]
        if activation == "static":
            return (quantise(x, input_scale.to(x.dtype).reshape(())),)
        return (quantise_groups(x, activation or x.shape[-1]),)

    return hook


def library_model(folder, dtype=torch.float32):
    """The checkpoint as transformers and compressed-tensors run it."""
    return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="eager").eval()


def reorder_sums(model, generator):
    """Make every linear layer add its products in another order: as right as before, and as far off as another engine is.

    Call it again for another order, with generator=None for the plain one.
    """
    for layer in model.modules():
        if isinstance(layer, torch.nn.Linear):
            layer.__dict__.pop("forward", None)
            if generator is not None:
                order = torch.randperm(layer.in_features, generator=generator)
                layer.forward = lambda x, w=layer.weight[:, order], b=layer.bias, o=order: torch.nn.functional.linear(
                    x[..., o], w, b)


def perturb_inputs(model, relative, generator):
    """Move every element that a linear layer is given by `relative` (one standard deviation), before it is quantised.

    Returns the hooks, to be removed.
    """

    def hook(_, args):
        return (args[0] * (1 + relative * torch.randn(args[0].shape, generator=generator)),)

    if not relative:
        return []
    layers = [layer for layer in model.modules() if isinstance(layer, torch.nn.Linear)]
    return [layer.register_forward_pre_hook(hook, prepend=True) for layer in layers]
