#!/usr/bin/env python3
"""What SmolLM2-135M-Instruct says in the FP8 forms with quantised activations, for one and the same rounding of every activation.

    golden_roundings.py MODEL [--work DIR] [--form NAME]...

Arguments as of golden_smollm2.py, whose FP8 checkpoints it uses. That file says why two right engines differ by per cents:
an activation near the middle between two codes rounds up in one and down in the other. All other activations have the same
code in every right engine, as long as those near a middle are decided alike. So this file lists these, with the code that the
reference took. A test gives a listed activation the listed code, and can then compare the whole model closely.

Near is measured, not assumed: RUNS further runs with sums in other orders and inputs moved by two units in the last place
take the codes of the first, and each activation is listed whose distance to the middle is below three times the largest
difference seen in it plus three times the root mean square of those of its row. CHECKS more runs that take the listed codes
only must agree in every code that is not listed.

Writes testing/data/smollm2/roundings.json:
    text, ids    the first tokens of a file of testing/data/text
    prompts      ids of each prompt
    forms        per form:
      text       {"nll", "top": per position [[id, logprob] x 10], best first, "noise": largest difference of those in the checks,
                 "listed": how many activations}
      prompts    per prompt {"tokens", "gaps"}: the greedy continuation, and by how much the best logit exceeded the second
and roundings-FORM.bin: for the text, then for each prompt with its continuation, for each layer, for the inputs of q, o, gate
and down: the number of listed activations, and for each the distance of its index (row * width + column) from the one before
(the first from -1) and its code in e4m3; numbers in LEB128, codes in one byte.
"""

import json
import os

import golden_smollm2 as smollm2
import oracle_common as oracle
import oracle_fp8 as fp8
import torch

FORMS = smollm2.QUANTISED_ACTIVATIONS
TEXT_TOKENS = 96
GREEDY_TOKENS = 16
RUNS, CHECKS = 8, 3
LAYER_INPUTS = {0: "q", 3: "o", 4: "gate", 6: "down"}  # Calls per layer: q k v o gate up down; those between repeat an input.
CALLS_PER_LAYER = 7


def spacing(x):
    """The distance between codes of e4m3 at x."""
    return torch.exp2(torch.floor(torch.log2(x.abs().clamp_min(2.0**-6))) - 3)


def by_rows(x):
    """[1, rows, ...] as [rows, columns]."""
    return x.reshape(x.shape[1], -1)


class Recorder:
    """Rounds as usual and keeps, per call, the quotient and what became of it, over the steps of one sequence."""

    def __init__(self):
        self._steps = [[]]

    def next_step(self):
        self._steps.append([])

    def __call__(self, x):
        code = fp8.round_e4m3(x)
        self._steps[-1].append((by_rows(x), by_rows(code)))
        return code

    def calls(self):
        """[(quotients, rounded)] per call, each [all rows, columns]."""
        return [tuple(torch.cat(parts) for parts in zip(*call)) for call in zip(*self._steps)]


class Follower:
    """Rounds as recorded where `listed` says so, else as usual; keeps the differences of the quotients and counts other roundings."""

    def __init__(self, calls, listed=None):
        self._calls, self._listed, self._next = calls, listed, 0
        self.differences, self.others = [], 0

    def __call__(self, x):
        quotients, recorded = (part.reshape(x.shape) for part in self._calls[self._next])
        if self._listed is None:
            rounded = recorded
        else:
            own = fp8.round_e4m3(x)
            rounded = torch.where(self._listed[self._next].reshape(x.shape), recorded, own)
            self.others += int((rounded != recorded).sum())
        self.differences.append(by_rows((x - quotients).abs()))
        self._next += 1
        return rounded


def disturbed(model, ids, generator, follower):
    """Log-probs [T, V] of the same computation with its sums in another order."""
    fp8.reorder_sums(model, generator)
    hooks = fp8.perturb_inputs(model, smollm2.LAST_PLACES, generator)
    fp8.use_rounder(follower)
    logprobs = smollm2.logprobs_of(model, ids)
    fp8.use_rounder()
    for hook in hooks:
        hook.remove()
    fp8.reorder_sums(model, None)
    return logprobs


def listed_of(model, ids, calls, generator):
    """Per call [rows, columns], whether the rounding of an element is not to be relied on."""
    worst = [torch.zeros_like(quotients) for quotients, _ in calls]
    for _ in range(RUNS):
        follower = Follower(calls)
        disturbed(model, ids, generator, follower)
        worst = [torch.maximum(*pair) for pair in zip(worst, follower.differences)]
    listed = []
    for (quotients, _), difference in zip(calls, worst):
        steps = quotients.abs() / spacing(quotients)
        distance = (steps - torch.floor(steps) - 0.5).abs() * spacing(quotients)
        listed.append(distance < 3 * difference + 3 * difference.pow(2).mean(-1, keepdim=True).sqrt())
    return listed


def leb128(number):
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def encode(calls, listed, config):
    """The bytes of one sequence (see above)."""
    widths = {"q": config.hidden_size, "o": config.hidden_size, "gate": config.hidden_size, "down": config.intermediate_size}
    out = bytearray()
    for index, ((_, rounded), mask) in enumerate(zip(calls, listed)):
        kind = index % CALLS_PER_LAYER
        if kind not in LAYER_INPUTS:
            assert torch.equal(rounded, calls[index - 1][1]), "two layers were given different inputs"
            continue
        width = widths[LAYER_INPUTS[kind]]  # A row of groups ends in padding.
        mask = mask[:, :width].flatten()
        at = mask.nonzero()[:, 0].tolist()
        codes = rounded[:, :width].to(torch.float8_e4m3fn).view(torch.uint8).flatten()[mask].tolist()
        out += leb128(len(at))
        for before, here, code in zip([-1, *at], at, codes):
            out += leb128(here - before)
            out.append(code)
    return bytes(out)


def study(model, ids, calls, generator):
    """(bytes, checks' log-probs, number listed) of a recorded sequence."""
    listed = listed_of(model, ids, calls, generator)
    checks = []
    for _ in range(CHECKS):
        follower = Follower(calls, listed)
        checks.append(disturbed(model, ids, generator, follower))
        if follower.others:
            raise SystemExit(f"{follower.others} roundings differ that are not listed; take more runs")
    count = sum(int(mask.sum()) for index, mask in enumerate(listed) if index % CALLS_PER_LAYER in LAYER_INPUTS)
    return encode(calls, listed, model.config), checks, count


def measure_text(model, ids, generator):
    recorder = Recorder()
    fp8.use_rounder(recorder)
    logprobs = smollm2.logprobs_of(model, ids)
    fp8.use_rounder()
    data, checks, count = study(model, ids, recorder.calls(), generator)
    best = torch.topk(logprobs, smollm2.TOP)
    taken = logprobs[torch.arange(len(ids) - 1), torch.tensor(ids[1:])]
    noise = max(float((check.gather(1, best.indices) - best.values).abs().max()) for check in checks)
    entry = {"nll": round(float(-taken.double().mean()), 6), "noise": float(f"{noise:.2g}"), "listed": count,
             "top": [[[int(i), round(float(v), 4)] for i, v in zip(*row)] for row in zip(best.indices, best.values)]}
    return entry, data


def measure_prompt(model, ids, generator):
    recorder = Recorder()
    fp8.use_rounder(recorder)
    tokens, gaps, cache, step = [], [], None, torch.tensor([ids])
    while True:
        with torch.no_grad():
            out = model(step, past_key_values=cache, use_cache=True)
        best = torch.topk(out.logits[0, -1].float(), 2)
        tokens.append(int(best.indices[0]))
        gaps.append(round(float(best.values[0] - best.values[1]), 4))
        if len(tokens) == GREEDY_TOKENS:
            break
        cache, step = out.past_key_values, best.indices[:1].reshape(1, 1)
        recorder.next_step()
    fp8.use_rounder()
    data, _, count = study(model, ids + tokens[:-1], recorder.calls(), generator)
    return {"tokens": tokens, "gaps": gaps, "listed": count}, data


def main():
    args = smollm2.arguments(__doc__, FORMS)
    oracle.setup()
    folder = os.path.join(oracle.DATA, "smollm2")
    with open(os.path.join(folder, "golden.json"), encoding="utf-8") as file:
        known = json.load(file)
    out = os.path.join(folder, "roundings.json")
    golden = {"text": known["text"], "ids": known["ids"][:TEXT_TOKENS],
              "prompts": [prompt["ids"] for prompt in known["prompts"]], "forms": {}}
    if args.form and os.path.exists(out):
        with open(out, encoding="utf-8") as file:
            golden["forms"] = json.load(file)["forms"]
    work = os.path.abspath(args.work or os.path.dirname(os.path.abspath(args.model)))
    for name in args.form or FORMS:
        model = fp8.reference_model(os.path.join(work, f"llmc-{name}"))
        generator = torch.Generator().manual_seed(3)
        text, data = measure_text(model, golden["ids"], generator)
        golden["forms"][name] = {"text": text, "prompts": []}
        for ids in golden["prompts"]:
            entry, more = measure_prompt(model, ids, generator)
            golden["forms"][name]["prompts"].append(entry)
            data += more
        with open(os.path.join(folder, f"roundings-{name}.bin"), "wb") as file:
            file.write(data)
        oracle.write_json(out, golden)
        print(name, len(data), "bytes,", {key: text[key] for key in ("nll", "noise", "listed")},
              [entry["listed"] for entry in golden["forms"][name]["prompts"]], flush=True)


if __name__ == "__main__":
    main()
