#!/usr/bin/env python3
"""What SmolLM2-135M-Instruct says in bf16 and in each FP8 form, computed in float32.

    golden_smollm2.py MODEL [--work DIR] [--form NAME]...

MODEL is the folder that get_smollm2.py makes. The FP8 checkpoints are made by llm-compressor as DIR/llmc-FORM (kept; made
only when missing). Writes testing/data/smollm2/golden.json:

    versions, formulas
    text, ids      a file of testing/data/text and its token ids, one sequence, positions 0 to T-1
    positions      where top-10 lists are given: logits after ids[0..p], that is, of token p+1
    long_ids       of LONG_TEXTS one after the other
    prompts        {"text" or "messages" and "rendered", "ids"}
    forms          per form:
      checkpoint   the folder name below DIR, or the bf16 model
      activations  false: the same checkpoint read weight-only
      nll          mean over tokens 1..T-1 of -log p
      logprobs     log p of ids[1], ids[2], ...
      top          per position [[id, logprob] x 10], best first
      greedy       per prompt {"tokens", "gaps", "least_gaps"}: 32 tokens without stopping; gap = best minus second logit;
                   least_gap = the smallest margin of that token over all others among the runs
      library      largest difference of a log-prob in `top` when transformers + compressed-tensors run the checkpoint
                   themselves; null where they cannot
      runs         the same computed again with the products of every linear layer added in other orders and its input moved
                   by about two units in its last place, all as right as the first: {"nll": one per run, "nll_noise", "top_noise": largest differences from the first, and with
                   quantised activations "top_mean", "top_std": per position, over the first and these}
      long         where activations are quantised: the NLL of long_ids in runs as above; so long a text that their mean
                   says what the form loses
      first_layers where activations are quantised: per number of layers kept (embedding, layers, final norm, head)
                   {"nll", "top", "nll_noise", "top_noise"}: noise being the largest difference among nine such runs, of the
                   NLL and per position

Activation quantisation is a step function. A sum in another order moves an activation over a rounding boundary of e4m3 now
and then (in the first layer of this model, whose embeddings lie on an 8-bit grid, some hundred activations of the text are
exact ties), that token then differs by about 0.3 % in the next layer, there some per cent of its codes move, and after a few
layers two right engines have independent rounding errors. So with quantised activations the whole model can be compared
within `runs` alone, and only its first layers closely, where noise is small; weight-only forms can be compared closely
throughout. With --form the other forms of the file stay as they are.
"""

import argparse
import json
import os

import compressed_tensors
import llmcompressor
import oracle_common as oracle
import oracle_fp8 as fp8
import torch
import transformers
from transformers import AutoTokenizer

TEXT = "water.txt"
CALIBRATION = "bread.txt"
LONG_TEXTS = ("water.txt", "bread.txt", "clock.txt", "bridge.txt", "garden.txt")
LONG_RUNS = 3
GREEDY_TOKENS = 32
TOP = 10
RUNS = {True: 8, False: 2}  # With and without quantised activations.
PROMPTS = (
    {"messages": [{"role": "user", "content": "What is the capital of France?"}]},
    {"text": "The three primary colors are"},
    {"text": "Once upon a time, in a small village near the sea,"},
    {"text": "def fibonacci(n):\n"},
)
# Form -> (llm-compressor form or None, whether activations are quantised where the checkpoint says so).
FORMS = {
    "bf16": (None, True),
    "fp8-dynamic": ("fp8-dynamic", True),
    "fp8-block": ("fp8-block", True),
    "fp8-block-w8a16": ("fp8-block", False),
    "fp8-static": ("fp8-static", True),
    "fp8-static-w8a16": ("fp8-static", False),
    "fp8-weight-only": ("fp8-weight-only", True),
}
# The library refuses a row that its group size does not divide (576 by 128), and has no weight-only reading.
NOT_IN_LIBRARY = ("fp8-block", "fp8-block-w8a16", "fp8-static-w8a16")
QUANTISED_ACTIVATIONS = ("fp8-dynamic", "fp8-block", "fp8-static")
FIRST_LAYERS = (1, 2)
LAST_PLACES = 2e-7  # Relative: the norm before and the division by the scale may be off by a unit or two as well.


def read_text(name):
    with open(os.path.join(oracle.DATA, "text", name), encoding="utf-8") as file:
        return file.read()


def logprobs_of(model, ids):
    """Log-probabilities of every position, [T, V], float32 or wider."""
    return torch.log_softmax(oracle.logits_of(model, ids), -1)


def greedy(model, ids):
    """The greedy continuation and, per token, how far the best logit is above the second."""
    tokens, gaps, cache, step = [], [], None, torch.tensor([ids])
    for _ in range(GREEDY_TOKENS):
        with torch.no_grad():
            out = model(step, past_key_values=cache, use_cache=True)
        best = torch.topk(out.logits[0, -1], 2)
        tokens.append(int(best.indices[0]))
        gaps.append(round(float(best.values[0] - best.values[1]), 4))
        cache, step = out.past_key_values, best.indices[:1].reshape(1, 1)
    return {"tokens": tokens, "gaps": gaps}


def rounded(values, digits=5):
    return [round(float(x), digits) for x in values]


class Listing:
    """What a set of runs says at the chosen positions: NLL and top-10 of the first, and how far the others are from it."""

    def __init__(self, model, ids, positions, runs):
        self._ids, self._positions = ids, torch.tensor(positions)
        logprobs = logprobs_of(model, ids)
        self.taken = self._taken(logprobs)
        best = torch.topk(logprobs[self._positions], TOP)
        self._indices = best.indices
        self.values = [best.values]
        self.nll = [float(-self.taken.double().mean())]
        generator = torch.Generator().manual_seed(1)
        for _ in range(runs):
            fp8.reorder_sums(model, generator)
            hooks = fp8.perturb_inputs(model, LAST_PLACES, generator)
            logprobs = logprobs_of(model, ids)
            for hook in hooks:
                hook.remove()
            self.values.append(self.listed(logprobs))
            self.nll.append(float(-self._taken(logprobs).double().mean()))
        fp8.reorder_sums(model, None)

    def _taken(self, logprobs):
        return logprobs[torch.arange(len(self._ids) - 1), torch.tensor(self._ids[1:])]

    def listed(self, logprobs):
        """The log-probs of the listed tokens, [positions, TOP], in another computation."""
        return logprobs[self._positions].gather(1, self._indices)

    def top(self):
        """[[id, logprob] x TOP] per position."""
        return [[[int(i), round(float(v), 5)] for i, v in zip(*row)] for row in zip(self._indices, self.values[0])]

    def nll_noise(self):
        """The largest difference of the NLL from the first run."""
        return float(f"{max(abs(x - self.nll[0]) for x in self.nll):.2g}")

    def top_noise(self):
        """Per position, the largest difference of a listed log-prob from the first run."""
        worst = (torch.stack(self.values) - self.values[0]).abs().amax((0, 2))
        return [float(f"{float(x):.2g}") for x in worst]


def add_least_gaps(model, prompts, continuations, runs):
    """Give every greedy continuation its `least_gaps`."""
    generator = torch.Generator().manual_seed(2)
    for prompt, item in zip(prompts, continuations):
        least = torch.full((GREEDY_TOKENS,), float("inf"))
        for run in range(runs + 1):
            fp8.reorder_sums(model, generator if run else None)
            hooks = fp8.perturb_inputs(model, LAST_PLACES if run else 0.0, generator)
            logits = oracle.logits_of(model, prompt["ids"] + item["tokens"])[len(prompt["ids"]) - 1 : -1].clone()
            for hook in hooks:
                hook.remove()
            tokens = torch.tensor(item["tokens"]).reshape(-1, 1)
            chosen = logits.gather(1, tokens)[:, 0]
            logits.scatter_(1, tokens, float("-inf"))
            least = torch.minimum(least, chosen - logits.amax(1))
        item["least_gaps"] = rounded(least, 4)
    fp8.reorder_sums(model, None)


def measure_first_layers(model, ids, positions):
    """The `first_layers` of one form; leaves the model cut."""
    found = {}
    for count in reversed(FIRST_LAYERS):
        model.model.layers = model.model.layers[:count]
        model.config.num_hidden_layers = count
        cut = Listing(model, ids, positions, RUNS[True])
        found[str(count)] = {
            "nll": round(cut.nll[0], 6), "top": cut.top(), "nll_noise": cut.nll_noise(), "top_noise": cut.top_noise()}
    return found


def measure_long(model, ids):
    """The `long` of one form."""
    return rounded(Listing(model, ids, [0], LONG_RUNS).nll, 6)


def measure(name, folder, activations, ids, positions, prompts, long_ids):
    """One entry of `forms`."""
    model = fp8.reference_model(folder, activations=activations)
    quantised = name in QUANTISED_ACTIVATIONS
    listing = Listing(model, ids, positions, RUNS[quantised])
    library = None
    if name not in NOT_IN_LIBRARY:
        listed = listing.listed(logprobs_of(fp8.library_model(folder), ids))
        library = float(f"{float((listed - listing.values[0]).abs().max()):.2g}")
    values = torch.stack(listing.values)
    entry = {
        "checkpoint": os.path.basename(folder),
        "activations": activations,
        "nll": round(listing.nll[0], 6),
        "logprobs": rounded(listing.taken, 4),
        "top": listing.top(),
        "greedy": [greedy(model, prompt["ids"]) for prompt in prompts],
        "library": library,
        "runs": {"nll": rounded(listing.nll[1:], 6), "nll_noise": listing.nll_noise(), "top_noise": max(listing.top_noise())},
    }
    add_least_gaps(model, prompts, entry["greedy"], RUNS[quantised])
    if quantised:
        entry["runs"]["top_mean"] = [rounded(row, 4) for row in values.mean(0)]
        entry["runs"]["top_std"] = [rounded(row, 4) for row in values.std(0)]
        entry["long"] = measure_long(model, long_ids)
        entry["first_layers"] = measure_first_layers(model, ids, positions)
    return entry


def report(name, entry, tokenizer):
    """What a person wants to see of one form."""
    runs = {key: entry["runs"][key] for key in ("nll", "nll_noise", "top_noise")}
    print(name, "nll", entry["nll"], "library", entry["library"], "runs", runs, flush=True)
    for count, cut in entry.get("first_layers", {}).items():
        print(f"    first {count}:", {key: cut[key] for key in ("nll", "nll_noise", "top_noise")}, flush=True)
    for item in entry["greedy"]:
        firm = next((i for i, gap in enumerate(item["least_gaps"]) if gap < 0.05), GREEDY_TOKENS)
        print(f"    {firm} tokens firm:", repr(tokenizer.decode(item["tokens"])), flush=True)


def arguments(description, forms):
    """The command line of a script that measures some of `forms`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--work", metavar="DIR", help="where the FP8 checkpoints are (default: beside MODEL)")
    parser.add_argument("--form", metavar="NAME", action="append", choices=forms, help="measure this form (may be repeated)")
    return parser.parse_args()


def main():
    args = arguments(__doc__, FORMS)
    oracle.setup()
    out = os.path.join(oracle.DATA, "smollm2", "golden.json")
    source = os.path.abspath(args.model)
    work = os.path.abspath(args.work or os.path.dirname(source))
    tokenizer = AutoTokenizer.from_pretrained(source)
    ids = tokenizer(read_text(TEXT)).input_ids
    long_ids = tokenizer("".join(map(read_text, LONG_TEXTS))).input_ids
    positions = list(range(11, len(ids), len(ids) // 24))[:24]
    prompts = []
    for prompt in PROMPTS:
        text = prompt.get("text")
        if text is None:
            text = tokenizer.apply_chat_template(prompt["messages"], tokenize=False, add_generation_prompt=True)
            prompt = {**prompt, "rendered": text}
        prompts.append({**prompt, "ids": tokenizer(text).input_ids})
    golden = {
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__,
                     "compressed-tensors": compressed_tensors.__version__, "llmcompressor": llmcompressor.__version__},
        "formulas": fp8.FORMULAS,
        "text": TEXT,
        "calibration": CALIBRATION,
        "long_ids": long_ids,
        "ids": ids,
        "positions": positions,
        "prompts": prompts,
        "forms": {},
    }
    if args.form and os.path.exists(out):
        with open(out, encoding="utf-8") as file:
            golden["forms"] = json.load(file)["forms"]
    for name in args.form or FORMS:
        form, activations = FORMS[name]
        folder = os.path.join(work, f"llmc-{form}") if form else source
        if not os.path.exists(folder):
            fp8.compress(source, folder, form, read_text(CALIBRATION))
        golden["forms"][name] = measure(name, folder, activations, ids, positions, prompts, long_ids)
        oracle.write_json(out, golden)
        report(name, golden["forms"][name], tokenizer)


if __name__ == "__main__":
    main()
