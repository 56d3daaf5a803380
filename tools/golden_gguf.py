#!/usr/bin/env python3
"""Tiny GGUF files and what they stand for, made by the gguf package of llama.cpp.

    golden_gguf.py

Writes seeds of the fuzzer, fuzz/corpus/gguf/*.gguf, and testing/data/gguf/NAME.gguf and NAME.json: the values of config.json that must follow, for each tensor of the
checkpoint the CRC-32 of its bf16 bytes, and texts with their token ids. Quantising and dequantising are the package's; the
order of q and k rows is that of llama.cpp's converter, and transformers' own GGUF reader is asked for the same tensors.
Token ids of the SentencePiece model come from a direct implementation: merge the neighbours of best score, leftmost first.

Needs oracle_requirements.txt and the packages gguf and tokenizers.
"""

import json
import os
import zlib

import gguf
import numpy as np
import tokenizers
import torch
from gguf import GGMLQuantizationType as Q
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

import oracle_common as oracle

OUT = os.path.join(oracle.DATA, "gguf")
HIDDEN, MLP, HEADS, KV_HEADS, HEAD_DIM, LAYERS = 32, 64, 2, 1, 16, 2
CONTEXT = 4096
TEXTS = ["Hello world", "  two  spaces", "it's 12345 o'clock\n\n", "na\u00efve \u00fcber \u4f60\u597d \U0001f600", ""]

# The type of each kind of tensor: every one that octet reads is there.
TYPES = {
    "token_embd": Q.Q8_0,
    "attn_q": Q.Q4_0,
    "attn_k": Q.Q4_1,
    "attn_v": Q.F16,
    "attn_output": Q.F32,
    "ffn_gate": Q.Q8_0,
    "ffn_up": Q.Q4_1,
    "ffn_down": Q.Q4_0,
    "output": Q.BF16,
}
NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def interleave(w, heads):
    """llama.cpp's order of q and k rows: the two rotary halves of each head, element by element."""
    return w.reshape(heads, 2, w.shape[0] // heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def byte_characters():
    """GPT-2's table: the character of each byte."""
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(b) if b in kept else chr(next(others)) for b in range(256)]


def byte_level_vocabulary():
    """Tokens, types and merges: two specials, all bytes, a few words, one user-defined token and padding."""
    space = byte_characters()[0x20]
    merges = [("l", "l"), ("H", "e"), ("He", "ll"), ("Hell", "o"), (space, "w"), ("o", "r"), (space + "w", "or"), ("1", "2"), ("12", "3"), (space, space)]
    tokens = ["<|begin|>", "<|end|>", *byte_characters(), *(a + b for a, b in merges), "<tool>", "[PAD269]", "[PAD270]"]
    types = [3, 3, *[1] * (256 + len(merges)), 4, 5, 5]
    return tokens, types, [" ".join(merge) for merge in merges]


def sentencepiece_vocabulary():
    """Pieces, types and scores as a trained model has them: unknown, specials, bytes, merged pieces, characters."""
    space = "\u2581"
    merged = [space + "H", "el", "lo", space + "w", "or", "ld", space + "Hel", space + "Hello", space + "wor", space + space, "12", "ell", "34", space + "world"]
    characters = [space, *"Heloworldtispacnv12345'k", "\u00ef", "\u00fc"]
    characters = list(dict.fromkeys(characters))
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256)), *merged, *characters]
    types = [2, 3, 3, *[6] * 256, *[1] * (len(merged) + len(characters))]
    scores = [0.0] * 259 + [-float(i) for i in range(len(merged) + len(characters))]
    return tokens, types, scores


def sentencepiece_ids(text, tokens, types, scores):
    """The reference: best score first, leftmost of equals; what no piece covers becomes bytes."""
    if text == "":
        return [1]
    known = {t: i for i, (t, kind) in enumerate(zip(tokens, types)) if kind == 1}
    pieces = list("\u2581" + text.replace(" ", "\u2581"))
    while True:
        best = max(
            ((scores[known[pieces[i] + pieces[i + 1]]], -i) for i in range(len(pieces) - 1) if pieces[i] + pieces[i + 1] in known),
            default=None,
        )
        if best is None:
            break
        i = -best[1]
        pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]
    ids = [1]  # <s>
    for piece in pieces:
        ids += [known[piece]] if piece in known else [3 + b for b in piece.encode()]
    return ids


def byte_level_ids(pre, tokens, types, merges):
    """Ids by the tokenizers package with the pre-tokenizer that the models behind `pre` publish."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    count = len(tokens) - 2  # without padding
    bpe = models.BPE(vocab={t: i for i, t in enumerate(tokens[:count])}, merges=[tuple(m.split(" ")) for m in merges], ignore_merges=pre == "llama-bpe")
    tokenizer = Tokenizer(bpe)
    tail = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    head = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
    raw = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    split = lambda pattern: pre_tokenizers.Split(Regex(pattern), "isolated")
    tokenizer.pre_tokenizer = {
        "smollm": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]),
        "llama-bpe": pre_tokenizers.Sequence([split(head + r"\p{N}{1,3}" + tail), raw]),
        "qwen2": pre_tokenizers.Sequence([split(head + r"\p{N}" + tail), raw]),
    }[pre]
    if pre == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t, kind in zip(tokens, types) if kind == 3])
    tokenizer.add_tokens([AddedToken(t, normalized=False) for t, kind in zip(tokens, types) if kind == 4])
    first = [0] if pre == "llama-bpe" else []
    return [first + tokenizer.encode(text).ids for text in TEXTS]


def llama3_divisors(theta):
    """What the converter of llama.cpp writes for Llama 3.1: factor 8, low 1, high 4, original 8192."""
    out = []
    for frequency in (1.0 / theta ** (np.arange(0, HEAD_DIM, 2, dtype=np.float32) / HEAD_DIM)).astype(np.float32):
        wavelength = 2 * np.pi / frequency
        if wavelength < 8192 / 4:
            out.append(1.0)
        elif wavelength > 8192:
            out.append(8.0)
        else:
            smooth = (8192 / wavelength - 1) / 3
            out.append(1 / ((1 - smooth) / 8 + smooth))
    return np.array(out, dtype=np.float32)


class Case:
    """One file: adds tensors to the writer and remembers what they stand for."""

    def __init__(self, name, arch, **features):
        self.name, self.arch, self.features = name, arch, features
        self.path = os.path.join(OUT, name + ".gguf")
        self.writer = gguf.GGUFWriter(self.path, arch)
        self.random = oracle.rng("gguf", name)
        self.expected = {}

    def add(self, gguf_name, target, shape, heads=0):
        """A tensor of seeded values; `heads` over 0 stores its rows interleaved."""
        kind = gguf_name.split(".")[-2]
        values = self.random.standard_normal(shape, dtype=np.float32) * np.float32(0.05 if len(shape) == 2 else 0.2)
        if "norm" in kind:
            values += 1
        stored = interleave(values, heads) if heads else values
        type_ = TYPES.get(kind, Q.F32) if len(shape) == 2 else Q.F32
        raw = gguf.quants.quantize(stored, type_)
        self.writer.add_tensor(gguf_name, raw, raw_dtype=type_)
        meant = gguf.quants.dequantize(raw, type_).astype(np.float32).reshape(shape)
        if heads:  # put the rows where they were: index of each stored row
            order = interleave(np.arange(shape[0]), heads)
            back = np.empty_like(meant)
            back[order] = meant
            meant = back
        self.expected[target] = meant

    def add_tensors(self, vocab):
        interleaved = self.arch == "llama"
        self.add("token_embd.weight", "model.embed_tokens.weight", (vocab, HIDDEN))
        q, kv = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
        shapes = {
            "attn_norm": (HIDDEN,), "attn_q": (q, HIDDEN), "attn_k": (kv, HIDDEN), "attn_v": (kv, HIDDEN), "attn_output": (HIDDEN, q),
            "ffn_norm": (HIDDEN,), "ffn_gate": (MLP, HIDDEN), "ffn_up": (MLP, HIDDEN), "ffn_down": (HIDDEN, MLP),
        }
        if self.features.get("qk_norm"):
            shapes |= {"attn_q_norm": (HEAD_DIM,), "attn_k_norm": (HEAD_DIM,)}
        biased = self.features.get("biases", ())
        for layer in range(LAYERS):
            for kind, shape in shapes.items():
                heads = {"attn_q": HEADS, "attn_k": KV_HEADS}.get(kind, 0) if interleaved else 0
                names = f"blk.{layer}.{kind}", f"model.layers.{layer}.{NAMES[kind]}"
                self.add(names[0] + ".weight", names[1] + ".weight", shape, heads)
                if kind in biased:
                    self.add(names[0] + ".bias", names[1] + ".bias", shape[:1], heads)
        self.add("output_norm.weight", "model.norm.weight", (HIDDEN,))
        if not self.features.get("tied"):
            self.add("output.weight", "lm_head.weight", (vocab, HIDDEN))

    def finish(self, config, texts):
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()
        self.compare_with_transformers()
        tensors = {}
        for name, values in sorted(self.expected.items()):
            bits = torch.from_numpy(np.ascontiguousarray(values)).to(torch.bfloat16)
            tensors[name] = [list(values.shape), zlib.crc32(oracle.raw_bytes(bits))]
        oracle.write_json(
            os.path.join(OUT, self.name + ".json"),
            {"config": config, "tensors": tensors, "texts": texts},
        )

    def compare_with_transformers(self):
        """Its reader undoes the order of rows by code of its own."""
        from transformers import AutoConfig, AutoModelForCausalLM

        if self.features.get("skip_transformers"):
            return
        loaded = load_gguf_checkpoint(self.path, return_tensors=False)
        config = AutoConfig.for_model(**loaded["config"])
        config.head_dim = HEAD_DIM
        if self.arch == "llama" and self.features.get("biases"):
            config.attention_bias = config.mlp_bias = True
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
        read = load_gguf_checkpoint(self.path, return_tensors=True, model_to_load=model)["tensors"]
        missing = [name for name in self.expected if name not in read]
        assert not missing, missing
        for name, values in self.expected.items():
            assert np.array_equal(np.asarray(read[name], dtype=np.float32), values), (self.name, name)


def add_values(writer, theta=10000.0):
    writer.add_block_count(LAYERS)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(MLP)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(theta)
    writer.add_layer_norm_rms_eps(1e-5)


def base_config(arch, model_type, vocab, **changes):
    return {
        "architectures": [arch], "attention_bias": False, "head_dim": HEAD_DIM, "hidden_act": "silu", "hidden_size": HIDDEN,
        "intermediate_size": MLP, "max_position_embeddings": CONTEXT, "mlp_bias": False, "model_type": model_type,
        "num_attention_heads": HEADS, "num_hidden_layers": LAYERS, "num_key_value_heads": KV_HEADS, "rms_norm_eps": 1e-5,
        "rope_scaling": None, "rope_theta": 10000.0, "tie_word_embeddings": False, "torch_dtype": "bfloat16", "vocab_size": vocab, **changes,
    }


def add_byte_level(writer, pre, bos, eos):
    tokens, types, merges = byte_level_vocabulary()
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(bos)
    writer.add_eos_token_id(eos)
    writer.add_chat_template("{% for m in messages %}<|begin|>{{ m.content }}<|end|>{% endfor %}")
    return tokens, types, merges


def byte_level_case(name, arch, hf, pre, config, theta=10000.0, divisors=None, **features):
    case = Case(name, arch, **features)
    writer = case.writer
    add_values(writer, theta)
    writer.add_key_length(HEAD_DIM)
    writer.add_value_length(HEAD_DIM)
    vocabulary = add_byte_level(writer, pre, 0, 1)
    vocab = len(vocabulary[0])
    case.add_tensors(vocab)
    if divisors is not None:
        writer.add_tensor("rope_freqs.weight", divisors)
    ids = byte_level_ids(pre, *vocabulary)
    expected = base_config(hf, arch, vocab, bos_token_id=0, eos_token_id=1, rope_theta=theta, tie_word_embeddings=bool(features.get("tied")), **config)
    case.finish(expected, list(zip(TEXTS, ids)))


def sentencepiece_case():
    case = Case("llama-sentencepiece", "llama")
    writer = case.writer
    add_values(writer)
    writer.add_rope_dimension_count(HEAD_DIM)
    writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
    writer.add_rope_scaling_factor(2.0)
    tokens, types, scores = sentencepiece_vocabulary()
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    case.add_tensors(len(tokens))
    scaling = {"rope_type": "linear", "factor": 2.0}
    config = base_config("LlamaForCausalLM", "llama", len(tokens), rope_scaling=scaling, bos_token_id=1, eos_token_id=2)
    case.finish(config, [[text, sentencepiece_ids(text, tokens, types, scores)] for text in TEXTS])


def write_seed(arch, tokenizer, biases):
    """A whole model that is as small as the types allow."""
    path = os.path.join(oracle.ROOT, "fuzz", "corpus", "gguf", f"{arch}-{tokenizer}.gguf")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    writer = gguf.GGUFWriter(path, arch)
    writer.add_block_count(1)
    writer.add_context_length(64)
    writer.add_embedding_length(32)
    writer.add_feed_forward_length(32)
    writer.add_head_count(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model(tokenizer)
    writer.add_tokenizer_pre("llama-bpe")
    tokens = ["<unk>", "<s>", "<0x41>", "a", "b", "ab", "\u2581a"]
    writer.add_token_list(tokens)
    writer.add_token_types([2, 3, 6, 1, 1, 1, 5])
    writer.add_token_scores([0.0, 0.0, 0.0, -1.0, -2.0, -3.0, -4.0])
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(1)
    writer.add_chat_template("{{ messages }}")
    kinds = [Q.Q4_0, Q.Q4_1, Q.Q8_0, Q.F16, Q.BF16, Q.F32]
    names = ["token_embd", *(f"blk.0.{kind}" for kind in NAMES if "norm" not in kind)]
    for i, name in enumerate(names):
        rows = len(tokens) if name == "token_embd" else 32
        raw = gguf.quants.quantize(np.zeros((rows, 32), dtype=np.float32), kinds[i % len(kinds)])
        writer.add_tensor(name + ".weight", raw, raw_dtype=kinds[i % len(kinds)])
    vectors = ["output_norm.weight", "blk.0.attn_norm.weight", "blk.0.ffn_norm.weight", *(f"blk.0.{kind}.bias" for kind in biases)]
    for name in vectors:
        writer.add_tensor(name, np.ones(32, dtype=np.float32))
    if arch == "llama":
        writer.add_tensor("rope_freqs.weight", np.ones(16, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    oracle.setup()
    write_seed("llama", "gpt2", ())
    write_seed("llama", "llama", ())
    write_seed("qwen2", "gpt2", ("attn_q", "attn_k", "attn_v"))
    os.makedirs(OUT, exist_ok=True)
    print("tokenizers", tokenizers.__version__)
    byte_level_case("llama-tied", "llama", "LlamaForCausalLM", "smollm", {}, tied=True)
    scaling = {"factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"}
    byte_level_case("llama3", "llama", "LlamaForCausalLM", "llama-bpe", {"rope_scaling": scaling}, theta=500000.0, divisors=llama3_divisors(500000.0))
    biases = ("attn_q", "attn_k", "attn_v")
    byte_level_case("qwen2", "qwen2", "Qwen2ForCausalLM", "qwen2", {}, theta=1000000.0, biases=biases)
    byte_level_case("qwen3", "qwen3", "Qwen3ForCausalLM", "qwen2", {}, theta=1000000.0, qk_norm=True)
    every = (*biases, "attn_output", "ffn_gate", "ffn_up", "ffn_down")
    byte_level_case("llama-biases", "llama", "LlamaForCausalLM", "smollm", {"attention_bias": True, "mlp_bias": True}, biases=every, skip_transformers=True)
    sentencepiece_case()


if __name__ == "__main__":
    main()
