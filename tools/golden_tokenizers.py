#!/usr/bin/env python3
"""Write the golden files of the tokenizer tests: small tokenizers of every kind, and what the reference makes of texts.

Usage: golden_tokenizers.py [OUTDIR]        (default: testing/data/tokenizers; needs: pip install tokenizers)

For each kind, OUTDIR/KIND/tokenizer.json is a BPE tokenizer, byte-level or plain (SentencePiece style), trained here on
the sentences below, and OUTDIR/KIND/golden.json holds for every text of OUTDIR/texts.json

    ids       the ids of Hugging Face tokenizers
    plain     those without the post-processor's tokens, where they differ
    decoded   the text of `plain`, where it is not the input
    skipped   the text of `ids` without special tokens, where it is not the input

and `streams`, arbitrary id lists, whose bytes are seldom UTF-8, with both texts. Where a run of byte tokens of a plain
tokenizer is not UTF-8, `tokenizers` gives one U+FFFD for every byte of it, of good characters too; here each maximal
ill-formed part gives one, as in byte-level tokenizers and as a stream can.
"""
import collections
import itertools
import json
import pathlib
import random
import re
import sys

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LLAMA3 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
TEKKEN = (rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*|\p{{N}}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
            r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
# Constructs that the pattern rewriting must carry over: \w \S \d \h \b, possessive and repeated repeats, {,n}, look-behind,
# anchors, escapes, a script, a negated property.
SYNTAX = (r"(?i:todo|fixme)\b|0x\h{1,4}+|(?<=\$)\d{,3}|[\w]?\p{Han}++|^\s*#[^\n]*$|[^\S\n]{2}|\B\p{^L}?\x2d+"
          r"|[\u00e0-\u00ff\t\v-]+|\S{2}?|(?>\d+)\.?+|\W|\s+")

SENTENCES = """
The quick brown fox jumps over the lazy dog, and then it's off: they're gone, we've lost, I'll wait, he'd know, I'm sure.
In 1969 a computer had 4096 words of memory; by 2024 a telephone has 12,000,000,000 bytes (about 3.5 million times more).
def add(first, second):\n    return first + second\n\nclass Node:\n\tdef __init__(self, value=None):\n\t\tself.value = value
for (int i = 0; i < 10; ++i) { printf("%d\\n", values[i]); } // prints ten values
Le garçon a mangé une crème brûlée à l'hôtel; l'été dernier, où étais-tu? Ça m'a plu, naïvement.
Die Straße ist größer als üblich, doch überall hört man Geräusche: äußerst schöne Töne für Ältere.
Съешь же ещё этих мягких французских булок, да выпей чаю. Привет, как дела?
你好，世界！今天天气很好，我们去公园散步吧。三百六十五天。
こんにちは世界。今日は良い天気ですね。カタカナとひらがな。
안녕하세요 세계, 오늘은 날씨가 좋습니다.
مرحبا بالعالم، كيف حالك اليوم؟ ١٢٣٤٥
नमस्ते दुनिया, आप कैसे हैं? १२३
Smile 😀 😀 and wave 👋🏽, family 👨‍👩‍👧‍👦, flags 🇫🇷🇩🇪, hearts ❤️❤️.
"Quoted," she said -- 'twice' -- and (parenthesised) [bracketed] {braced} <angled> text... e-mail: a.b@c.example
    indented by four\n        indented by eight\n\n\nthree line breaks   and three spaces
""".strip().split("\n")
SENTENCES = [line.replace("\\n", "\n").replace("\\t", "\t") for line in SENTENCES] * 3

SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def texts():
    """The inputs: hand-made traps, then seeded random mixtures of their ingredients."""
    traps = [
        "", " ", "  ", "\n", "\t", "\r\n", "a", " a", "a ", "  a", "a  b", "a\nb", "a\n\nb", "a \n b", "\n\n\n", " \n \n ",
        "Hello, world!", "The quick brown fox", "we've WE'VE We'Ve I'M they'RE don'T 'S 's", "it's it\u2019s \u017f'\u017f",
        "   leading", "trailing   ", "tabs\t\tand\tspaces  ", "line\r\nline\r\rline", "1 12 123 1234 12345 1234567",
        "3.14159 -2,000.50 1e10 0xFF", "\u0663\u0664\u0665 \u096b\u096c \u2167 \u00bd \u00b2 \u2460 \u3007 \u4e09",
        "no\u00a0break\u00a0\u00a0space", "thin\u2009and\u3000wide\u2028line\u2029par\u0085nel\u180emvs\u200bzw",
        "\u00fc u\u0308 \u1e69 s\u0323\u0307 s\u0307\u0323 \uac01 \u1100\u1161\u11a8 \u212b \ufb01 \u0958", "caf\u00e9 cafe\u0301 CAF\u00c9",
        "\U0001F600\U0001F44B\U0001F3FD\U0001F468\u200d\U0001F469\u200d\U0001F467\u200d\U0001F466 \u2764\ufe0f \U0001F1EB\U0001F1F7",
        "\u4f60\u597d\uff0c\u4e16\u754c\uff01\u3053\u3093\u306b\u3061\u306f \uc548\ub155", "\u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd \u0928\u092e\u0938\u094d\u0924\u0947 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
        "\u00e0 la carte - d\u00e9j\u00e0-vu \u2014 3\u00d74=12 \U0001F600!", "\x00\x01\x1f\x7f\x80 control \x1b[0m", "\ufeffbom \ufffd \U0010FFFF \ue000",
        "<|endoftext|>", "a<|endoftext|>b", "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", "<|im_start|> x", "<|im_start",
        "<|im_start|><|im_start|>", " <|im_end|> ", "<|IM_END|>", "<|endoftext|><|endoftext",
        "A[L]B", "A  [L]  B", " [L] [L]", "\u00a0[L]", "A[R]B", "A [R] \n B", "[R]  [L]", "[R] [R]", "[L][R][LR] x [LR] [LR]y", "\u3000[LR]\u3000",
        "word", "a word b", "wordy", "sword", "word\u00e9", "\u00e9word", "word_", "word-", "\u0915word", "word\u0301", "word 1word word1", "(word)",
        "word\u200dx", "\u203fword", "norm\u00e4l norma\u0308l NORM", "two words twowords two  words", "<t1><t1>a<t1> b<t1>\u00e9<t1>", "ab abc abcd abcde abd",
        "snake_case camelCase PascalCase SCREAMING kebab-case XMLHttpRequest iPhone \u01c5ungla",
        "http://example.org/a/b?c=d&e=f#g", "def f(x):\n    return x ** 2  # square\n", "// TODO: fixme Todone 0xBEEF1 $1234 $5 #x\n  # comment\n",
        "{\"key\": [1, 2.5, null], \"k\u00e9\": \"v\"}", "....----!!!!????", "'''\"\"\"```", "a,b;c:d.e", "--- a -- b - c", "x\u00b7y\u00b7\u00b7z", "12ab34cd", "\u0660a\u0661",
        "a" * 90, "ab" * 40, "\u00e9" * 30, " " * 70 + "x", "\n" * 40, "pneumono" * 15, "9" * 50, "\U0001F600" * 10, "'s" * 20, "-" * 40,
        "\u4e00\u4e8c\u4e09" * 8, "theandingoftheandingof" * 8, "= " * 20, "\u2581x \u2581\u2581",
        "<s>Hi</s>", "a <s> b", " <s>  </s> c", "<unk>", "<0x0A>", "x<0x0A>y", "a\n\n\nb", "one\ntwo\n\nthree", "<s>", "<s> ", "\u2581", " \u2581 a", "a\u2581",
        "\uff21\uff22 \ufb01ne \u2460 \u212b\u00b5", "z\u0416\u4f60z \u0416\u0416", "the  quick   brown    fox", "<user>\nHi<end>\n<bot>  yes", "<user> <user>x",
    ]
    pieces = ["a", "the", "Z", "word", "\u00e9", "e\u0301", "\u00df", "\u0416", "\u4f60", "\u3042", "\uac00", "\u0627", "\u0915\u094d", "\U0001F600", "\u200d", " ", " ", "  ", "\n",
              "\r\n", "\t", "\u00a0", "\u3000", "1", "23", "\u0663", "\u00bd", "'", "'s", "'LL", "\u2019t", ".", ",", "!?", "-", "_", "(", "]", "\"", "\\", "/", "#", "$", "=", "<|im_end|>",
              "[L]", "[R]", "<t1>", "\x00", "\u0301", "\u01c5", "\u02b0", "\u2028", "\u180e"]
    rng = random.Random(20240607)
    return traps + ["".join(rng.choice(pieces) for _ in range(rng.randrange(2, 24))) for _ in range(48)]


def byte_level(use_regex=True, add_prefix_space=False):
    return pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space, use_regex=use_regex)


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(pattern, behavior=behavior, invert=invert)


def sequence(*stages):
    return pre_tokenizers.Sequence(list(stages))


def bos_template(tokenizer, single):
    ids = [(token, tokenizer.token_to_id(token)) for token in SPECIALS]
    return processors.TemplateProcessing(single=single, pair=single + " $B", special_tokens=ids)


def train(pre, normalizer=None, merges=140, alphabet=None, **model):
    """A tokenizer with the given pre-tokenizer; `alphabet` None gives all 256 bytes."""
    tokenizer = Tokenizer(models.BPE(**model))
    tokenizer.pre_tokenizer = pre
    tokenizer.decoder = decoders.ByteLevel()
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    letters = sorted(pre_tokenizers.ByteLevel.alphabet()) if alphabet is None else alphabet
    trainer = trainers.BpeTrainer(vocab_size=len(SPECIALS) + len(letters) + merges, special_tokens=SPECIALS,
                                  initial_alphabet=letters, show_progress=False, limit_alphabet=len(letters))
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return tokenizer


def kinds():
    yield "gpt2", train(byte_level())
    llama3 = train(sequence(split(Regex(LLAMA3)), byte_level(False)), ignore_merges=True)
    llama3.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), bos_template(llama3, "<|endoftext|> $A")])
    yield "llama3", llama3
    yield "qwen2", train(sequence(split(Regex(QWEN2)), byte_level(False)), normalizers.NFC())
    yield "smollm2", train(sequence(pre_tokenizers.Digits(individual_digits=True), byte_level()))
    tekken = train(sequence(split(Regex(TEKKEN)), byte_level(False)))
    tekken.post_processor = bos_template(tekken, "<|im_start|> $A <|im_end|>")
    yield "tekken", tekken
    cjk = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
    yield "deepseek", train(sequence(split(Regex(r"\p{N}{1,3}")), split(Regex(cjk)), split(Regex(DEEPSEEK)), byte_level(False)))
    yield "syntax", train(sequence(split(Regex(SYNTAX)), byte_level(False)))
    yield "added", added()
    yield "behaviors", train(sequence(
        split(" ", "merged_with_previous"), split("-", "merged_with_next"), split("\u00b7", "removed"),
        split(Regex(r"[a-z]+"), "contiguous", invert=True), split(Regex(r"[.,;:!?]"), "contiguous"),
        split(Regex("o|"), "isolated"), pre_tokenizers.Digits(individual_digits=False), byte_level(False, True)),
        normalizers.Sequence([normalizers.NFC()]))
    letters = sorted(set(pre_tokenizers.ByteLevel.alphabet()) - set("xyzXYZ\u00c3\u0140\u010a"))
    yield "unknown_fused", train(byte_level(), alphabet=letters, unk_token="<|endoftext|>", fuse_unk=True)
    yield "unknown_single", train(byte_level(), alphabet=letters, unk_token="<|endoftext|>", fuse_unk=False)
    yield "unknown_dropped", train(byte_level(), alphabet=letters)
    yield from plain_kinds()


SPACE = "\u2581"
PLAIN_SPECIALS = ["<unk>", "<s>", "</s>"]
REPLACE_SPACE = normalizers.Replace(" ", SPACE)
LLAMA = normalizers.Sequence([normalizers.Prepend(SPACE), REPLACE_SPACE])


def metaspace(scheme, split=True):
    return pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme=scheme, split=split)


def chain(*stages):
    """A decoder that begins by writing spaces again."""
    return decoders.Sequence([decoders.Replace(SPACE, " "), *stages])


STRIPPED = (decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0))


def train_plain(scheme="always", letters=110, merges=130, byte_tokens=range(256), **model):
    """A tokenizer whose tokens are written as they are, trained on words that begin with a mark for the space before them."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = metaspace(scheme)
    counts = collections.Counter("".join(SENTENCES).replace(" ", SPACE))
    alphabet = sorted(counts, key=lambda letter: (-counts[letter], letter))[:letters]
    trainer = trainers.BpeTrainer(vocab_size=len(PLAIN_SPECIALS) + letters + merges, special_tokens=PLAIN_SPECIALS,
                                  show_progress=False, limit_alphabet=letters, initial_alphabet=alphabet)
    tokenizer.train_from_iterator(SENTENCES, trainer)
    value = json.loads(tokenizer.to_str())
    tokens = sorted(value["model"]["vocab"], key=value["model"]["vocab"].get)
    tokens[3:3] = [f"<0x{byte:02X}>" for byte in byte_tokens]
    value["model"].update(vocab={token: number for number, token in enumerate(tokens)}, **model)
    result = Tokenizer.from_str(json.dumps(value))
    result.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", result.token_to_id("<s>"))])
    return result


def plain(pre, normalizer, decoder, **options):
    tokenizer = train_plain(**options)
    # None is no value that a setter takes.
    value = json.loads(tokenizer.to_str())
    value["pre_tokenizer"] = pre and json.loads(pre.__getstate__())
    value["normalizer"] = normalizer and json.loads(normalizer.__getstate__())
    value["decoder"] = json.loads(decoder.__getstate__())
    return Tokenizer.from_str(json.dumps(value))


def plain_kinds():
    yield "llama2", plain(None, LLAMA, chain(*STRIPPED), byte_fallback=True, fuse_unk=True)
    yield "mistral", plain(metaspace("first", False), None, chain(*STRIPPED), byte_fallback=True, fuse_unk=True)
    phi3 = plain(None, LLAMA, chain(*STRIPPED), byte_fallback=True, fuse_unk=True)
    phi3.add_special_tokens([AddedToken("<user>", rstrip=True, normalized=False), AddedToken("<bot>", rstrip=True, normalized=False),
                             AddedToken("<end>", rstrip=True, normalized=False)])
    phi3.add_tokens([AddedToken("word", normalized=True), AddedToken("<t1>", normalized=True, lstrip=True), AddedToken("ab", normalized=False)])
    yield "phi3", phi3
    yield "gemma", plain(split(" ", "merged_with_previous"), REPLACE_SPACE, chain(*STRIPPED[:2]), byte_fallback=True, fuse_unk=True)
    yield "metaspace_always", plain(metaspace("always"), None, decoders.Metaspace(SPACE, "always"), byte_tokens=())
    yield "metaspace_never", plain(metaspace("never"), normalizers.NFKC(), decoders.Metaspace(SPACE, "never"), byte_tokens=(), fuse_unk=True)
    yield "metaspace_first", plain(
        sequence(split(Regex(r"\d"), "isolated"), metaspace("first"), pre_tokenizers.Digits(individual_digits=True)),
        normalizers.Sequence([normalizers.NFD(), normalizers.Replace(Regex(r"[\r\t]+"), "  ")]),
        decoders.Sequence([decoders.Metaspace(SPACE, "first"), decoders.ByteFallback(), decoders.Fuse()]), byte_fallback=True)
    # Some byte tokens only: other characters are unknown, and byte tokens overtake them.
    yield "some_bytes", plain(None, normalizers.Sequence([REPLACE_SPACE, normalizers.NFKD()]),
                              chain(decoders.Strip("a", 2, 0), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip("b", 1, 0), decoders.Strip(" ", 3, 0)),
                              byte_tokens=[0x0A, 0x3C, *range(0xD0, 0xD2), *range(0x80, 0xA0)], byte_fallback=True, ignore_merges=True)


def added():
    """Added tokens with every flag, in front of a pre-tokenizer that adds a space."""
    tokenizer = train(byte_level(True, True), normalizers.NFC())
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    tokenizer.add_tokens([
        AddedToken("[L]", lstrip=True, normalized=False), AddedToken("[R]", rstrip=True, normalized=False),
        AddedToken("[LR]", lstrip=True, rstrip=True, special=True, normalized=False),
        AddedToken("word", single_word=True, normalized=False), AddedToken("<t1>", single_word=True, lstrip=True, normalized=True),
        AddedToken("norma\u0308l", normalized=True), AddedToken("two words", normalized=True), AddedToken("  ", normalized=False),
        AddedToken("ab", normalized=False), AddedToken("abcd", normalized=False), AddedToken("bc", normalized=False),
        AddedToken("\u00b7", normalized=True, special=True), AddedToken("= =", rstrip=True, single_word=True, normalized=True)])
    return tokenizer


def write(path, value):
    path.write_text(json.dumps(value, ensure_ascii=True, separators=(",", ":")) + "\n")


def byte_of(token):
    """The byte that <0xNN> stands for, or None."""
    return int(token[3:5], 16) if re.fullmatch(r"<0x[0-9A-Fa-f]{2}>", token) else None


def decode(tokenizer, ids, skip):
    """The reference's text; runs of byte tokens that are not UTF-8 are decoded by maximal ill-formed parts."""
    text = tokenizer.decode(ids, skip_special_tokens=skip)
    if "ByteFallback" not in str(json.loads(tokenizer.to_str())["decoder"]):
        return text
    special = {token.content for token in tokenizer.get_added_tokens_decoder().values() if token.special}
    tokens = [token for token in map(tokenizer.id_to_token, ids) if token is not None and not (skip and token in special)]
    joined = []
    for is_byte, run in itertools.groupby(tokens, lambda token: byte_of(token) is not None):
        run = list(run)
        data = bytes(map(byte_of, run)) if is_byte else b""
        lossy = data.decode("utf-8", "replace")
        joined += [lossy] if "\ufffd" in lossy else run
    return text if joined == tokens else tokenizer.decoder.decode(joined)


def golden(tokenizer, inputs):
    rng = random.Random(7)
    cases = []
    for text in inputs:
        case = {"ids": tokenizer.encode(text).ids}
        plain_ids = tokenizer.encode(text, add_special_tokens=False).ids
        if plain_ids != case["ids"]:
            case["plain"] = plain_ids
        for key, ids, skip in (("decoded", plain_ids, False), ("skipped", case["ids"], True)):
            decoded = decode(tokenizer, ids, skip)
            if decoded != text:
                case[key] = decoded
        cases.append(case)
    streams = []
    for _ in range(30):
        ids = [rng.randrange(tokenizer.get_vocab_size() + 2) for _ in range(rng.randrange(1, 16))]
        streams.append({"ids": ids, "decoded": decode(tokenizer, ids, False), "skipped": decode(tokenizer, ids, True)})
    return {"cases": cases, "streams": streams}


def main():
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent / "testing/data/tokenizers")
    out.mkdir(parents=True, exist_ok=True)
    inputs = texts()
    write(out / "texts.json", inputs)
    for number, (name, tokenizer) in enumerate(kinds()):
        (out / name).mkdir(exist_ok=True)
        value = json.loads(tokenizer.to_str())
        if number % 2 == 0:  # the older form of merges, "left right"
            value["model"]["merges"] = [" ".join(pair) for pair in value["model"]["merges"]]
        write(out / name / "tokenizer.json", value)
        write(out / name / "golden.json", golden(Tokenizer.from_file(str(out / name / "tokenizer.json")), inputs))
        print(f"{name}: {tokenizer.get_vocab_size()} tokens, {len(inputs)} texts")
    write(out / "about.json", {"made_by": "tools/golden_tokenizers.py", "tokenizers": tokenizers.__version__})


if __name__ == "__main__":
    main()
