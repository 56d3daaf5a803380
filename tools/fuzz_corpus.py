#!/usr/bin/env python3
"""Writes fuzz/corpus/tokenizer_json and fuzz/corpus/chat_template from testing/data. Run: python3 tools/fuzz_corpus.py

Small files, so that a second of fuzzing tries many: the golden tokenizers keep their first tokens only, and of the golden
snippets of templates every fourth is taken.
"""
import json
import pathlib
import shutil

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "testing" / "data"
TOKENS = 48  # kept of a vocabulary
TEXT = "a <s>Hi</s>\n the quick 12 \u00e9\u4f60 \u2581x[L]"


def smaller(tokenizer):
    """The same tokenizer with fewer tokens, numbered anew."""
    model = tokenizer["model"]
    names = sorted(model["vocab"], key=model["vocab"].get)
    special = {token["content"] for token in tokenizer["added_tokens"]}
    kept = [name for name in names if name in special] + [name for name in names if name not in special][-TOKENS:]
    kept += [name for name in names if len(name) == 1][:TOKENS // 2]
    kept = list(dict.fromkeys(kept))
    model["vocab"] = {name: number for number, name in enumerate(kept)}
    pairs = [merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"]]
    as_text = any(isinstance(merge, str) for merge in model["merges"])
    pairs = [pair for pair in pairs if pair[0] in kept and pair[1] in kept and "".join(pair) in kept]
    model["merges"] = [" ".join(pair) for pair in pairs] if as_text else pairs
    ids = dict(model["vocab"])
    for token in tokenizer["added_tokens"]:
        token["id"] = ids.setdefault(token["content"], len(ids))
    for entry in (tokenizer["post_processor"] or {}).get("special_tokens", {}).values():
        entry["ids"] = [ids[token] for token in entry["tokens"]]
    return tokenizer


def write(folder, name, data):
    (folder / name).write_bytes(data)


def emptied(name):
    folder = ROOT / "fuzz" / "corpus" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def main():
    folder = emptied("tokenizer_json")
    config = json.dumps({"bos_token": "<s>", "eos_token": {"content": "</s>"}})
    for path in sorted((DATA / "tokenizers").glob("*/tokenizer.json")):
        value = json.dumps(smaller(json.loads(path.read_text())), separators=(",", ":"), ensure_ascii=False)
        parts = [value, config if "<s>" in value else "", TEXT]
        write(folder, path.parent.name, b"\0".join(part.encode() for part in parts))
    folder = emptied("chat_template")
    for path in sorted((DATA / "templates").glob("*.jinja")):
        write(folder, path.stem, path.read_bytes())
    snippets = json.loads((DATA / "templates" / "goldens.json").read_text())["snippets"]
    for number, snippet in enumerate(snippets):
        if number % 4 == 0:
            write(folder, f"snippet_{number:03}", snippet["source"].encode())


if __name__ == "__main__":
    main()
