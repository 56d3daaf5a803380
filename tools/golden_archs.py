#!/usr/bin/env python3
"""Tiny random models of every registered architecture, and the logits that transformers computes for them in float32.

    golden_archs.py [--only NAME-PREFIX]

Writes testing/data/archs/NAME/ (a checkpoint: config.json, generation_config.json, model.safetensors) and
testing/data/archs/NAME.json:

    architecture   the name in config.json
    checks         what this model is there to prove
    ids            T token ids, one sequence, positions 0 to T-1
    shape          [T, V]
    logits         base64 of little-endian float32 [T, V], computed by transformers, eager attention, in float32
    range          largest minus smallest logit
    noise          largest difference when transformers computes the same in float64 (its softmax, norms and rope stay float32)
    sensitivity    per check: largest difference of a logit when that feature is left out, over the range. The script
                   refuses a model in which it is below 0.01: such a golden could not tell a right engine from a wrong one

config.json is either as transformers 5 saves it (rope_parameters, dtype) or in the older published form (rope_theta and
rope_scaling at top level, torch_dtype); the rope dictionary of the older form says "type" or "rope_type".
"""

import argparse
import copy
import dataclasses
import os
import shutil

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText

import oracle_common as oracle

OUT = os.path.join(oracle.DATA, "archs")
TOKENS = 40
MODEL_TYPES = {
    "LlamaForCausalLM": "llama",
    "MistralForCausalLM": "mistral",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
    "Phi3ForCausalLM": "phi3",
    "Olmo2ForCausalLM": "olmo2",
    "Glm4ForCausalLM": "glm4",
}
# Models of images and text: the checkpoint holds both, the golden is of text alone.
WRAPPERS = {
    "LlavaForConditionalGeneration": ("llava", {"model_type": "clip_vision_model", "projection_dim": 8}),
    "Mistral3ForConditionalGeneration": ("mistral3", {"model_type": "pixtral"}),
    "Qwen2_5_VLForConditionalGeneration": ("qwen2_5_vl", {
        "depth": 1, "num_heads": 2, "out_hidden_size": 48, "fullatt_block_indexes": [0], "in_channels": 3, "window_size": 28}),
}
VISION = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 8, "patch_size": 4}
BASE = {
    "vocab_size": 64,
    "hidden_size": 48,
    "intermediate_size": 72,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-5,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "tie_word_embeddings": False,
}


@dataclasses.dataclass
class Case:
    """One model. `without` maps a check to config values that leave it out, or to a parameter-name part to neutralise."""

    name: str
    architecture: str
    config: dict = dataclasses.field(default_factory=dict)
    rope: dict = dataclasses.field(default_factory=dict)  # rope_parameters without rope_theta
    theta: float = 10000.0
    old: bool = False  # the older published form of config.json
    type_key: str = "rope_type"
    dtype: torch.dtype = torch.bfloat16
    shard: str = ""  # max_shard_size
    drop: tuple = ()  # keys left out of config.json, for their defaults
    wrapper: str = ""  # the architecture around the text model
    without: dict = dataclasses.field(default_factory=dict)


LLAMA, MISTRAL, QWEN2, QWEN3, PHI3, OLMO2, GLM4 = MODEL_TYPES
LLAVA, MISTRAL3, QWEN25_VL = WRAPPERS
ONE_LAYER = {"num_hidden_layers": 1}
PLAIN = {"rope": {"rope_type": "default"}}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}
LINEAR = {"rope_type": "linear", "factor": 4.0}
# 32 rotations never happen within 16 positions: beta_fast and beta_slow small enough that the ramp is inside the head.
YARN = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 16}
DYNAMIC = {"rope_type": "dynamic", "factor": 4.0}
# One factor per pair of a head of 16 elements.
LONGROPE = {"rope_type": "longrope", "short_factor": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7],
            "long_factor": [1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0]}
NO_PAD = {"pad_token_id": None}
YARN_BETAS = {**YARN, "beta_fast": 4.0, "beta_slow": 0.25}

CASES = [
    Case("llama-plain", LLAMA, old=True, without={"grouped heads": "k_proj", "theta": {"theta": 500.0}}),
    Case("llama-tied", LLAMA, {"tie_word_embeddings": True}),
    Case("llama-mha", LLAMA, {"num_key_value_heads": 3}, old=True, drop=("num_key_value_heads", "attention_bias", "mlp_bias")),
    Case("llama-f32-eps", LLAMA, {**ONE_LAYER, "rms_norm_eps": 0.1}, dtype=torch.float32,
         without={"epsilon": {"config": {"rms_norm_eps": 1e-5}}}),
    Case("llama-f16-theta", LLAMA, {"num_attention_heads": 4, "num_key_value_heads": 2}, theta=500.0, dtype=torch.float16,
         old=True, without={"theta": {"theta": 10000.0}}),
    Case("llama-sharded", LLAMA, shard="40KB", without={"grouped heads": "k_proj"}),
    Case("llama-rope-llama3", LLAMA, ONE_LAYER, rope=LLAMA3, old=True, without={"rope": PLAIN, "smooth part": {
        "rope": {**LLAMA3, "low_freq_factor": 3.9, "high_freq_factor": 4.0}}}),
    Case("llama-rope-llama3-tied", LLAMA, {"tie_word_embeddings": True}, theta=500000.0,
         rope={**LLAMA3, "factor": 32.0, "original_max_position_embeddings": 16}, without={"rope": PLAIN}),
    Case("llama-rope-linear", LLAMA, ONE_LAYER, rope=LINEAR, old=True, type_key="type", without={"rope": PLAIN}),
    Case("llama-rope-linear-tied", LLAMA, {"tie_word_embeddings": True}, rope={**LINEAR, "factor": 2.5},
         without={"rope": PLAIN}),
    Case("llama-rope-yarn", LLAMA, ONE_LAYER, rope=YARN, old=True, without={"rope": PLAIN, "attention factor": {
        "rope": {**YARN, "attention_factor": 1.0}}}),
    Case("llama-rope-yarn-betas", LLAMA, ONE_LAYER, rope=YARN_BETAS, without={"betas": {"rope": YARN}}),
    Case("llama-rope-yarn-exact", LLAMA, ONE_LAYER, rope={**YARN_BETAS, "truncate": False}, without={
        "truncate": {"rope": YARN_BETAS}}),
    Case("llama-rope-yarn-factor", LLAMA, ONE_LAYER, rope={**YARN, "attention_factor": 1.5}, old=True, without={
        "attention factor": {"rope": YARN}}),
    Case("llama-rope-yarn-mscale", LLAMA, ONE_LAYER, rope={**YARN, "factor": 32.0, "mscale": 1.5, "mscale_all_dim": 0.5}, old=True,
         without={"mscale": {"rope": {**YARN, "factor": 32.0}}}),
    Case("llama-rope-yarn-bare", LLAMA, {**ONE_LAYER, "max_position_embeddings": 48}, rope={"rope_type": "yarn", "factor": 4.0},
         old=True, type_key="type", without={"rope": PLAIN}),
    Case("llama-attention-bias", LLAMA, {"attention_bias": True}, old=True,
         without={"q bias": "q_proj.bias", "v bias": "v_proj.bias", "o bias": "o_proj.bias"}),
    Case("llama-mlp-bias", LLAMA, {"mlp_bias": True},
         without={"gate bias": "gate_proj.bias", "up bias": "up_proj.bias", "down bias": "down_proj.bias"}),
    Case("llama-head-dim-10", LLAMA, {"head_dim": 10, "num_attention_heads": 4, "num_key_value_heads": 2}, old=True),
    Case("llama-head-dim-22", LLAMA, {"head_dim": 22, "num_attention_heads": 6, "num_key_value_heads": 2,
                                      "tie_word_embeddings": True}),
    Case("mistral-window", MISTRAL, {"sliding_window": 8}, old=True,
         without={"window": {"config": {"sliding_window": None}}, "window is not one more": {"config": {"sliding_window": 9}},
                  "window is not one less": {"config": {"sliding_window": 7}}}),
    Case("mistral-full", MISTRAL, {"sliding_window": None, "head_dim": 24}, old=True,
         without={"no window": {"config": {"sliding_window": 8}}}),
    Case("mistral-window-v5", MISTRAL, {"sliding_window": 13, "num_attention_heads": 4, "num_key_value_heads": 2},
         theta=1000000.0, without={"window": {"config": {"sliding_window": None}}}),
    Case("qwen2-window-off", QWEN2, {"use_sliding_window": False, "sliding_window": 8, "max_window_layers": 0}, old=True,
         theta=1000000.0, without={"q bias": "q_proj.bias", "k bias": "k_proj.bias", "v bias": "v_proj.bias",
                                   "no window": {"config": {"use_sliding_window": True, "sliding_window": 8}}}),
    Case("qwen2-tied", QWEN2, {"tie_word_embeddings": True}, without={"v bias": "v_proj.bias"}),
    Case("qwen2-window", QWEN2, {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1,
                                 "num_hidden_layers": 3}, old=True,
         without={"window": {"config": {"use_sliding_window": False}},
                  "first layers are full": {"config": {"max_window_layers": 0}},
                  "later layers are not full": {"config": {"max_window_layers": 2}}}),
    Case("qwen2-window-v5", QWEN2, {"use_sliding_window": True, "sliding_window": 8, "num_hidden_layers": 2,
                                    "layer_types": ["sliding_attention", "full_attention"]},
         without={"layer types": {"config": {"layer_types": ["full_attention", "sliding_attention"]}}}),
    Case("qwen2-rope-yarn", QWEN2, ONE_LAYER, rope=YARN, old=True, type_key="type", without={"rope": PLAIN}),
    Case("qwen3-tied", QWEN3, {"head_dim": 24, "tie_word_embeddings": True, "rms_norm_eps": 1e-6}, old=True,
         theta=1000000.0, without={"q norm": "q_norm", "k norm": "k_norm"}),
    Case("qwen3-bias", QWEN3, {"head_dim": 16, "attention_bias": True}, without={
        "q norm": "q_norm", "o bias": "o_proj.bias"}),
    Case("qwen3-window", QWEN3, {"head_dim": 16, "use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1},
         old=True, without={"window": {"config": {"use_sliding_window": False}}}),
    Case("llama-rope-dynamic", LLAMA, {**ONE_LAYER, "max_position_embeddings": 16}, rope=DYNAMIC, old=True,
         without={"rope": PLAIN, "length": {"config": {"max_position_embeddings": 32}}}),
    Case("llama-rope-dynamic-short", LLAMA, {**ONE_LAYER, "max_position_embeddings": 64}, rope=DYNAMIC, old=True, type_key="type",
         without={"no growth": {"config": {"max_position_embeddings": 16}}}),
    Case("phi3-plain", PHI3, NO_PAD, old=True, without={"grouped heads": "qkv_proj"}),
    Case("phi3-longrope-short", PHI3, {**NO_PAD, "max_position_embeddings": 256, "original_max_position_embeddings": 64}, old=True,
         rope={**LONGROPE, "original_max_position_embeddings": 64}, type_key="type", without={
             "short factors": {"rope": {**LONGROPE, "original_max_position_embeddings": 64, "short_factor": [1.0] * 8}},
             "attention factor": {"rope": {**LONGROPE, "original_max_position_embeddings": 64, "attention_factor": 1.0}}}),
    Case("phi3-longrope-long", PHI3, {**NO_PAD, "max_position_embeddings": 256, "original_max_position_embeddings": 32},
         rope={**LONGROPE, "original_max_position_embeddings": 32}, without={
             "long factors": {"rope": {**LONGROPE, "original_max_position_embeddings": 32, "long_factor": [1.0] * 8}}}),
    Case("phi3-partial", PHI3, {**NO_PAD, "tie_word_embeddings": True, "num_attention_heads": 2, "num_key_value_heads": 1},
         rope={"rope_type": "default", "partial_rotary_factor": 0.75},
         without={"partial rotation": {"rope": {"rope_type": "default", "partial_rotary_factor": 1.0}}}),
    Case("phi3-window", PHI3, {**NO_PAD, "sliding_window": 8}, without={"window": {"config": {"sliding_window": None}}}),
    Case("olmo2-plain", OLMO2, {**NO_PAD, "num_attention_heads": 4, "num_key_value_heads": 2}, without={
        "q norm": "q_norm", "k norm": "k_norm", "norm after attention": "post_attention_layernorm",
        "norm after mlp": "post_feedforward_layernorm"}),
    Case("olmo2-tied", OLMO2, {**NO_PAD, **ONE_LAYER, "tie_word_embeddings": True}, theta=500000.0, old=True,
         without={"k norm": "k_norm"}),
    Case("glm4-plain", GLM4, {**NO_PAD, "head_dim": 16}, rope={"rope_type": "default", "partial_rotary_factor": 0.5}, without={
        "norm after attention": "post_self_attn_layernorm", "norm after mlp": "post_mlp_layernorm", "q bias": "q_proj.bias",
        "partial rotation": {"rope": {"rope_type": "default", "partial_rotary_factor": 1.0}}}),
    Case("glm4-no-bias", GLM4, {**NO_PAD, **ONE_LAYER, "head_dim": 24, "attention_bias": False},
         rope={"rope_type": "default", "partial_rotary_factor": 0.5}),
    Case("llava-llama", LLAMA, {**ONE_LAYER}, wrapper=LLAVA),
    Case("mistral3-window", MISTRAL, {**ONE_LAYER, "sliding_window": 8, "head_dim": 16}, wrapper=MISTRAL3),
    Case("qwen25-vl", QWEN2, {"model_type": "qwen2_5_vl_text"}, wrapper=QWEN25_VL,
         rope={"rope_type": "default", "mrope_section": [2, 3, 3]}),
    Case("qwen3-rope-yarn", QWEN3, {**ONE_LAYER, "head_dim": 16}, rope=YARN, old=True, without={"rope": PLAIN}),
]


def build_config(case, config=None, rope=None, theta=None):
    """The transformers configuration of a case, with some of it replaced."""
    values = {**BASE, **case.config, **(config or {})}
    parameters = {"rope_type": "default", **(case.rope if rope is None else rope)}
    parameters["rope_theta"] = case.theta if theta is None else theta
    if not case.wrapper:
        return AutoConfig.for_model(MODEL_TYPES[case.architecture], **copy.deepcopy(values), rope_parameters=parameters)
    model_type, vision = WRAPPERS[case.wrapper]
    text = {"model_type": MODEL_TYPES[case.architecture], **copy.deepcopy(values), "rope_parameters": parameters}
    return AutoConfig.for_model(model_type, text_config=text, vision_config={**VISION, **vision},
                                tie_word_embeddings=values["tie_word_embeddings"])


def model_class(case):
    """The transformers class that builds and loads the model of a case."""
    return AutoModelForImageTextToText if case.wrapper else AutoModelForCausalLM


def to_old_form(case):
    """A function that turns a saved config.json into the form published before transformers 5."""

    def edit(config):
        config.pop("rope_parameters", None)
        for key in ("layer_types", *case.drop, *(() if "head_dim" in case.config else ("head_dim",))):
            config.pop(key, None)
        config["torch_dtype"] = config.pop("dtype")
        config["transformers_version"] = "4.51.3"
        config["rope_theta"] = case.theta
        scaling = dict(case.rope)
        if case.type_key == "type":
            scaling["type"] = scaling.pop("rope_type")
        config["rope_scaling"] = scaling or None
        config.update({key: case.config[key] for key in ("sliding_window", "max_window_layers") if key in case.config})
        return config

    return edit


def load(case, folder, dtype):
    """The checkpoint as transformers reads it, computing in `dtype`."""
    model, report = model_class(case).from_pretrained(
        folder, dtype=dtype, attn_implementation="eager", output_loading_info=True)
    faults = [name for key in ("missing_keys", "unexpected_keys", "mismatched_keys") for name in report[key]]
    if faults:
        raise SystemExit(f"{folder}: transformers did not take the checkpoint as it is: {faults}")
    return model.eval()


def altered_logits(case, model, change, ids):
    """Logits of the model with one feature left out."""
    state = {name: value.clone() for name, value in model.state_dict().items()}
    if isinstance(change, str):
        for name, value in state.items():
            if change in name:
                if "norm" in name:
                    value.fill_(1.0)
                elif change in ("k_proj", "qkv_proj"):
                    value.copy_(value.flip(0))
                else:
                    value.zero_()
        change = {}
    config = build_config(case, **change)
    config._attn_implementation = "eager"
    other = model_class(case).from_config(config, dtype=torch.float32).eval()
    other.load_state_dict(state)
    return oracle.logits_of(other, ids)


def make(case):
    """Write the checkpoint and the golden of one case."""
    folder = os.path.join(OUT, case.name)
    shutil.rmtree(folder, ignore_errors=True)
    model = model_class(case).from_config(build_config(case), dtype=torch.float32)
    oracle.randomize(model, "archs", case.name)
    model.to(case.dtype).save_pretrained(folder, **({"max_shard_size": case.shard} if case.shard else {}))
    if case.old:
        oracle.edit_json(os.path.join(folder, "config.json"), to_old_form(case))

    ids = oracle.random_ids(BASE["vocab_size"], TOKENS, "archs", case.name)
    model = load(case, folder, torch.float32)
    logits = oracle.logits_of(model, ids)
    spread = (logits.max() - logits.min()).item()
    noise = (oracle.logits_of(load(case, folder, torch.float64), ids) - logits).abs().max().item()
    sensitivity = {}
    for check, change in case.without.items():
        difference = (altered_logits(case, model, change, ids) - logits).abs().max().item() / spread
        if difference < 0.01:
            raise SystemExit(f"{case.name}: leaving out '{check}' changes logits by only {difference:.2e} of their range")
        sensitivity[check] = float(f"{difference:.3g}")
    oracle.write_json(folder + ".json", {
        "architecture": case.wrapper or case.architecture,
        "checks": list(case.without),
        "ids": ids,
        "shape": list(logits.shape),
        "range": float(f"{spread:.6g}"),
        "noise": float(f"{noise:.3g}"),
        "sensitivity": sensitivity,
        "logits": oracle.base64_f32(logits),
    })
    print(f"{case.name}: range {spread:.3g}, noise {noise / spread:.1e} of it, {sensitivity}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAME-PREFIX", default="", help="make the models whose name begins so")
    args = parser.parse_args()
    oracle.setup()
    for case in CASES:
        if case.name.startswith(args.only):
            make(case)


if __name__ == "__main__":
    main()
