#!/usr/bin/env python3
"""Compares Octet's tokenizer with Hugging Face tokenizers on every model folder below DIR that has a tokenizer.json:
ids of many texts with and without the post-processor's tokens, and the texts of ids, special tokens kept and skipped.

    python3 tools/compare_tokenizers.py DIR [--probe PROGRAM]     needs: pip install tokenizers

Prints what differs, a line for each file that cannot be read, and a summary line. Exit 0: all equal; 1: something differs or is
unreadable; 2: wrong arguments, or no tokenizer there.
Where tokenizer_config.json sets add_bos_token or add_eos_token, which Octet follows and `tokenizers` does not read, ids are
compared without them. Runs of byte tokens that are not UTF-8 are compared by maximal ill-formed parts (docs/FORMATS.md).
"""
import random

import tokenizers

import compare_common
import golden_tokenizers


def load(path):
    compare_common.read_json(path)  # says more about a broken file
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as e:  # a panic of the library is no Exception
        raise compare_common.Unreadable(path, f"tokenizers: {e}") from e
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def texts_for(tokenizer):
    """The golden texts, and some around the tokenizer's own added tokens."""
    added = sorted({token.content for token in tokenizer.get_added_tokens_decoder().values()})
    rng = random.Random(5)
    chosen = rng.sample(added, min(len(added), 20))
    around = [f"{left}{token}{right}" for token in chosen for left, right in (("", ""), ("a", "b"), ("x ", " y"), ("\n", "\n\n"))]
    return golden_tokenizers.texts() + around + ["".join(rng.choice(chosen + ["a", " ", "\n"]) for _ in range(8))
                                                 for _ in range(20 if chosen else 0)]


def compare_folder(folder, probe_program, report):
    reference = load(folder / "tokenizer.json")
    config = compare_common.read_json(folder / "tokenizer_config.json")
    special = (True, False) if config.get("add_bos_token") is None and config.get("add_eos_token") is None else (False,)
    probe = compare_common.Probe(probe_program, "tokenizer", str(folder))
    for text in texts_for(reference):
        for add in special:
            answer = probe.ask({"text": text, "special": add})
            if answer is None:
                report.refused(probe.close()[1])
                return
            ids = reference.encode(text, add_special_tokens=add).ids
            report.compare(f"ids of {compare_common.shown(text)}", answer.get("ids", answer), ids)
            for skip in (False, True):
                answer = probe.ask({"ids": ids, "skip_special": skip})
                expected = golden_tokenizers.decode(reference, ids, skip)
                report.compare(f"text of {compare_common.shown(ids)}", answer.get("text", answer), expected)
    status, errors = probe.close()
    if status != 0:
        report.refused(errors)


def main():
    args = compare_common.arguments(__doc__)
    paths = sorted(args.folder.rglob("tokenizer.json"))
    report = compare_common.Report("tokenizers", len(paths))
    for path in paths:
        with report.looking_at(path.parent):
            report.begin(path.parent)
            compare_folder(path.parent, args.probe, report)
    report.end()


if __name__ == "__main__":
    compare_common.run(main)
