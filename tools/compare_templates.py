#!/usr/bin/env python3
"""Compares Octet's chat templates with Jinja, configured as transformers configures it, on every model folder below DIR that
has a template: the conversations of golden_template_inputs.py, byte for byte. A lone *.jinja file counts as a folder's
chat_template.jinja, without special tokens of its own.

    python3 tools/compare_templates.py DIR [--probe PROGRAM]     needs: pip install jinja2

Where one of the two refuses a conversation the other must refuse it too; of a template's own refusal (raise_exception) the
words are compared. Prints what differs, a line for each file that cannot be read, and a summary line. Exit 0: all equal; 1:
something differs or is unreadable; 2: wrong arguments, or no template there.
"""
import calendar
import pathlib
import shutil
import tempfile

import compare_common
import golden_template_inputs
import golden_templates

TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


def named_templates(path, value):
    try:
        return {str(item["name"]): str(item["template"]) for item in value}
    except (TypeError, KeyError) as e:
        raise compare_common.Unreadable(path, '/chat_template: expected a string or a list of {"name", "template"}') from e


def templates_of(folder):
    """Source by name, from where transformers looks."""
    found = {}
    for path in sorted((folder / "additional_chat_templates").glob("*.jinja")):
        found[path.stem] = compare_common.read_text(path)
    if (folder / "chat_template.jinja").is_file():
        found["default"] = compare_common.read_text(folder / "chat_template.jinja")
    for name in ("tokenizer_config.json", "chat_template.json"):
        value = compare_common.read_json(folder / name).get("chat_template")
        if found or not value:
            continue
        found = {"default": value} if isinstance(value, str) else named_templates(folder / name, value)
    return found


def special_tokens(folder):
    tokens = {}
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        values = compare_common.read_json(folder / name)
        for token in TOKENS:
            text = values.get(token)
            text = text.get("content") if isinstance(text, dict) else text
            if text is not None:
                tokens.setdefault(token, text)
        extra = values.get("additional_special_tokens")
        extra = [item.get("content") if isinstance(item, dict) else item for item in (extra if isinstance(extra, list) else [])]
        if extra:
            tokens.setdefault("additional_special_tokens", extra)
    return tokens


def outcome(answer):
    """What a rendering gave, for comparison: its text, the template's own words, or that it failed."""
    if "output" in answer:
        return answer
    hint = answer.get("hint", "")
    if hint.startswith("raised by"):
        return {"raised": answer["error"]}
    return {"raised": answer["message"]} if answer.get("error") == "raised" else "refused"


def compare_template(folder, name, templates, probe_program, report):
    env = golden_templates.environment()
    tokens = special_tokens(folder)
    probe = compare_common.Probe(probe_program, "template", str(folder), name)
    for conversation in golden_template_inputs.CONVERSATIONS:
        question = {
            "messages": conversation["messages"], "tools": conversation.get("tools"), "documents": conversation.get("documents"),
            "add_generation_prompt": conversation.get("add_generation_prompt", True),
        }
        variables = conversation.get("variables", {})
        # As in transformers, conversations with tools take "tool_use" instead of the default.
        with_tools = name == "default" and question["tools"] is not None and "tool_use" in templates
        theirs = golden_templates.render(env, templates["tool_use" if with_tools else name], {**tokens, **variables, **question})
        answer = probe.ask({**question, "variables": variables, "now": calendar.timegm(golden_templates.NOW.timetuple())})
        if answer is None:
            why = probe.close()[1]
            # Both refuse a template that does not compile.
            report.compare(f"template '{name}': {why}", "refused", "refused" if theirs.get("error") == "syntax" else theirs)
            return
        label = f"template '{name}', conversation '{conversation['name']}'"
        ours, wanted = outcome(answer), outcome(theirs)
        if ours != wanted and ours == "refused":
            label += f" ({answer['error']})"
        report.compare(label, ours, wanted)
    probe.close()


def compare_folder(folder, shown, probe_program, report):
    templates = templates_of(folder)
    report.begin(shown)
    for name in templates:
        compare_template(folder, name, templates, probe_program, report)


def compare_alone(path, probe_program, report):
    with tempfile.TemporaryDirectory() as alone:
        report.total += 1
        with report.looking_at(path):
            compare_common.read_text(path)
            shutil.copy(path, pathlib.Path(alone) / "chat_template.jinja")
            compare_folder(pathlib.Path(alone), path, probe_program, report)


def main():
    args = compare_common.arguments(__doc__)
    folders = sorted({args.folder, *(path for path in args.folder.rglob("*") if path.is_dir())})
    report = compare_common.Report("template folders", len(folders))
    for folder in folders:
        if folder.name == "additional_chat_templates":
            continue
        with report.looking_at(folder):
            if templates_of(folder):
                compare_folder(folder, folder, args.probe, report)
        for path in sorted(folder.glob("*.jinja")):
            if path.name != "chat_template.jinja":
                compare_alone(path, args.probe, report)
    report.end()


if __name__ == "__main__":
    compare_common.run(main)
