#!/usr/bin/env python3
"""What llm-compressor makes of bf16 weights: scales, codes, and what it writes around them.

    golden_quantize.py [--smollm2 MODEL [--work DIR]]

Writes testing/data/quantize/model/, a tiny bf16 Llama whose matrices are ragged against 128x128 and hold a zero row, a zero
block, rows of subnormal and of large values, and

testing/data/quantize/golden.json:
    arithmetic     in words
    scales         base64 pairs of bf16 bits (little-endian u16): amax, scale
    codes          base64 triples: weight (u16 bf16 bits), scale (u16 bf16 bits), code (u8 e4m3fn) as three arrays
    calibration    token ids for fp8-static, one sequence
    forms          per form {"quantization_config", "tensors": name -> {"dtype", "shape", "crc32" of the raw bytes,
                   "scale": base64 of raw bytes for every scale, "head": base64 of the first 32 codes}}
    input_amax     per layer: largest |input| over the calibration ids when the bf16 weights compute in float32

testing/data/quantize/smollm2.json (with --smollm2): the same by crc32 for the checkpoints that golden_smollm2.py made:
    names          of all tensors of fp8-dynamic, fp8-block and fp8-weight-only
    forms          per form the crc32 (hex) of every tensor in the order of `names`
    static         name -> crc32 for fp8-static, without its input scales
    input_scale    layer -> [scale that llm-compressor wrote from a bf16 run, largest |input| / 448 in a float32 run]

crc32 is the one of zlib and PNG (polynomial 0xEDB88320), over the tensor's bytes as they lie in the file.
"""

import argparse
import json
import os
import shutil
import tempfile
import zlib

import oracle_common as oracle
import oracle_fp8 as fp8
import torch
from compressed_tensors.quantization import QuantizationArgs
from compressed_tensors.quantization.lifecycle.forward import quantize
from compressed_tensors.quantization.utils import calculate_qparams
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig

OUT = os.path.join(oracle.DATA, "quantize")
ARITHMETIC = {
    "amax": "largest |w| of the row (channel), of the 128x128 block (edge blocks are smaller), of the matrix (tensor); exact",
    "scale": "bf16(amax / 448): one division in float32, rounded to the nearest bf16, ties to even; where the result is 0 it is "
             "2^-7 (0x3C00)",
    "code": "e4m3fn(clamp(bf16(w / scale), -448, 448)): the quotient is rounded to bf16 first, then to e4m3fn, both to nearest, "
            "ties to even. A quotient of -0 gives 0x80; in fp8-static it gives 0x00 (the tool adds a zero point of 0 to the "
            "bf16 quotient), while a negative quotient that only e4m3fn rounds to zero gives 0x80 in every form",
    "input_scale": "bf16(amax / 448) with amax the largest |x| of the layer's bf16 input over all calibration tokens, the model "
                   "running unquantised in bf16",
    "shapes": "channel [rows, 1]; block [ceil(rows / 128), ceil(columns / 128)]; tensor [1]; input_scale [1]; all BF16",
}
CONFIG = LlamaConfig(
    vocab_size=40, hidden_size=144, intermediate_size=136, num_hidden_layers=1, num_attention_heads=9,
    num_key_value_heads=3, max_position_embeddings=64, rms_norm_eps=1e-5, tie_word_embeddings=True)


def bits(x):
    """The bit patterns of a bf16 or fp8 tensor as base64."""
    return oracle.base64_bytes(oracle.raw_bytes(x))


def crc32(x):
    return f"{zlib.crc32(oracle.raw_bytes(x)):08x}"


def make_model(folder):
    """The tiny bf16 checkpoint."""
    model = AutoModelForCausalLM.from_config(CONFIG, dtype=torch.float32)
    oracle.randomize(model, "quantize")
    layer = model.model.layers[0]
    with torch.no_grad():
        layer.self_attn.q_proj.weight[3] = 0.0
        layer.self_attn.q_proj.weight[5] *= 2.0 ** -126  # bf16 subnormals; the scale becomes 0 and is replaced
        layer.self_attn.q_proj.weight[6] *= 2.0 ** -118  # the scale is subnormal
        layer.self_attn.k_proj.weight[2] = -layer.self_attn.k_proj.weight[2].abs()
        layer.self_attn.o_proj.weight[:128, 128:] = 0.0  # one whole block
        layer.mlp.up_proj.weight[7] = -0.0
        layer.mlp.gate_proj.weight[9, 4] = 1000.0
        layer.mlp.down_proj.weight[11, 130] = 100.0
    shutil.rmtree(folder, ignore_errors=True)
    model.to(torch.bfloat16).save_pretrained(folder)
    os.chmod(os.path.join(folder, "model.safetensors"), 0o644)


def all_bf16(low, high):
    """Every finite bf16 value of bit patterns low..high-1."""
    return torch.arange(low, high, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)


def scale_pairs():
    """amax and scale for bf16 values of every exponent."""
    args = QuantizationArgs(num_bits=8, type="float", strategy="channel", symmetric=True, dynamic=False)
    amax = all_bf16(0, 0x7F80)[torch.from_numpy(oracle.rng("scales").permutation(0x7F80)[:4000].copy())]
    amax = torch.cat([amax, all_bf16(0, 64), all_bf16(0x7F70, 0x7F80)])
    scale, _ = calculate_qparams(-amax, amax, args)
    return {"amax": bits(amax), "scale": bits(scale)}


def code_triples():
    """Weights, scales and codes: random ones, quotients beside every rounding boundary, and the ends of the range."""
    args = QuantizationArgs(num_bits=8, type="float", strategy="tensor", symmetric=True, dynamic=False)
    random = oracle.rng("codes")
    w = torch.from_numpy(random.standard_normal(6000)).to(torch.bfloat16)
    s = torch.from_numpy(2.0 ** random.uniform(-12, 2, 6000)).to(torch.bfloat16)
    steps = torch.arange(0, 127, dtype=torch.uint8).view(torch.float8_e4m3fn).float()
    middles = ((steps[:-1] + steps[1:]) / 2).repeat(8)
    spread = torch.from_numpy(2.0 ** random.uniform(-10, 1, len(middles))).to(torch.bfloat16)
    sign = torch.from_numpy(random.choice([-1.0, 1.0], len(middles)))
    near = (middles * spread.float() * sign * (1 + torch.from_numpy(random.uniform(-4e-3, 4e-3, len(middles))))).to(torch.bfloat16)
    edge_w = torch.tensor([0.0, -0.0, 448.0, 449.0, 464.0, 465.0, -480.0, 3e38, -3e38, 1e-40, 2.0 ** -10, 3 * 2.0 ** -11])
    w = torch.cat([w, near, edge_w.to(torch.bfloat16)])
    s = torch.cat([s, spread, torch.ones(len(edge_w)).to(torch.bfloat16)])
    codes = torch.cat([
        quantize(x=w[i : i + 1].reshape(1, 1), scale=s[i : i + 1], zero_point=None, args=args,
                 dtype=torch.float8_e4m3fn).reshape(1).view(torch.uint8) for i in range(len(w))])
    by_words = torch.clamp((w / s), -448, 448).to(torch.float8_e4m3fn).view(torch.uint8)
    if not torch.equal(codes, by_words):
        raise SystemExit("the words of `arithmetic` do not describe what compressed-tensors computes")
    single = torch.clamp(w.float() / s.float(), -448, 448).to(torch.float8_e4m3fn).view(torch.uint8)
    print(f"one rounding instead of two would change {(single != codes).sum()} of {len(codes)} codes")
    return {"count": len(w), "weight": bits(w), "scale": bits(s), "code": oracle.base64_bytes(codes.numpy().tobytes())}


def check_words(source, made, form):
    """Stop unless `arithmetic` reproduces every code and weight scale of a checkpoint."""
    for name, codes in made.items():
        if codes.dtype != torch.float8_e4m3fn:
            continue
        w = source[name]
        padded = torch.nn.functional.pad(w, (0, -w.shape[1] % 128, 0, -w.shape[0] % 128))
        blocks = padded.unflatten(1, (-1, 128)).unflatten(0, (-1, 128))
        amax = {"fp8-block": blocks.abs().amax((1, 3)), "fp8-static": w.abs().max().reshape(1)}.get(
            form, w.abs().amax(1, keepdim=True))
        scale = (amax.float() / 448).to(torch.bfloat16)
        scale = torch.where(scale == 0, torch.tensor(2.0 ** -7, dtype=torch.bfloat16), scale)
        each = scale
        if form == "fp8-block":
            each = scale.repeat_interleave(128, 0)[: w.shape[0]].repeat_interleave(128, 1)[:, : w.shape[1]]
        quotient = (w.float() / each.float()).to(torch.bfloat16)
        if form == "fp8-static":
            quotient = quotient + 0.0
        expected = torch.clamp(quotient.float(), -448, 448).to(torch.float8_e4m3fn)
        written = made[name.removesuffix(".weight") + ".weight_scale"]
        if oracle.raw_bytes(written) != oracle.raw_bytes(scale) or oracle.raw_bytes(codes) != oracle.raw_bytes(expected):
            raise SystemExit(f"{form} {name}: the words of `arithmetic` do not describe what llm-compressor wrote")


def input_amax(folder, ids):
    """Linear layer -> largest |input| over the ids, computed in float32 from the bf16 checkpoint."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    found = {}
    for name, layer in model.named_modules():
        if isinstance(layer, torch.nn.Linear) and name != "lm_head":
            layer.register_forward_pre_hook(
                lambda _, args, name=name: found.__setitem__(name, float(args[0].abs().max())))
    oracle.logits_of(model, ids)
    return found


def quantisation_config(folder):
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        return json.load(file)["quantization_config"]


def describe(made, source):
    """The `tensors` of one form."""
    entries = {}
    for name, x in sorted(made.items()):
        entry = {"dtype": str(x.dtype).removeprefix("torch."), "shape": list(x.shape), "crc32": crc32(x)}
        if name.endswith("_scale"):
            entry["scale"] = bits(x)
        elif x.dtype == torch.float8_e4m3fn:
            entry["head"] = bits(x.reshape(-1)[:32])
        elif oracle.raw_bytes(x) != oracle.raw_bytes(source[name]):
            raise SystemExit(f"{name} should have been copied as it is")
        entries[name] = entry
    return entries


def tiny_golden():
    folder = os.path.join(OUT, "model")
    make_model(folder)
    source = fp8.read_tensors(folder)
    ids = oracle.random_ids(CONFIG.vocab_size, 48, "quantize")
    forms = {}
    for form in fp8.FORMS:
        with tempfile.TemporaryDirectory() as scratch:
            out = os.path.join(scratch, form)
            if form == "fp8-static":
                fp8.compress_static_ids(folder, out, ids)
            else:
                fp8.compress(folder, out, form, None)
            made = fp8.read_tensors(out)
            check_words(source, made, form)
            forms[form] = {"quantization_config": quantisation_config(out), "tensors": describe(made, source)}
    oracle.write_json(os.path.join(OUT, "golden.json"), {
        "arithmetic": ARITHMETIC,
        "scales": scale_pairs(),
        "codes": code_triples(),
        "calibration": ids,
        "forms": forms,
        "input_amax": input_amax(folder, ids),
    })


def smollm2_golden(model, work):
    source = fp8.read_tensors(model)
    forms, names = {}, None
    for form in ("fp8-dynamic", "fp8-block", "fp8-weight-only"):
        made = fp8.read_tensors(os.path.join(work, "llmc-" + form))
        check_words(source, made, form)
        names = names or sorted(made)
        if sorted(made) != names:
            raise SystemExit(f"{form}: other tensor names than fp8-dynamic")
        forms[form] = [crc32(made[name]) for name in names]
    made = fp8.read_tensors(os.path.join(work, "llmc-fp8-static"))
    check_words(source, made, "fp8-static")
    with open(os.path.join(oracle.DATA, "text", "bread.txt"), encoding="utf-8") as file:
        ids = AutoTokenizer.from_pretrained(model)(file.read()).input_ids
    amax = input_amax(model, ids)
    scales = {name.removesuffix(".input_scale"): float(x) for name, x in made.items() if name.endswith(".input_scale")}
    off = {name: scale / (amax[name] / 448) - 1 for name, scale in scales.items()}
    print("input scales of the bf16 run against float32:", min(off.values()), max(off.values()))
    oracle.write_json(os.path.join(OUT, "smollm2.json"), {
        "arithmetic": ARITHMETIC,
        "names": names,
        "forms": forms,
        "static": {name: crc32(x) for name, x in sorted(made.items()) if not name.endswith(".input_scale")},
        "calibration": "bread.txt",
        "input_scale": {name: [scales[name], float(f"{amax[name] / 448:.6g}")] for name in sorted(scales)},
    })


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smollm2", metavar="MODEL", help="also describe the FP8 forms of this SmolLM2-135M-Instruct")
    parser.add_argument("--work", metavar="DIR", help="where they are (default: beside MODEL)")
    args = parser.parse_args()
    oracle.setup()
    tiny_golden()
    if args.smollm2:
        model = os.path.abspath(args.smollm2)
        smollm2_golden(model, os.path.abspath(args.work or os.path.dirname(model)))


if __name__ == "__main__":
    main()
