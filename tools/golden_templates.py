#!/usr/bin/env python3
"""Renders the chat templates of testing/data/templates by Jinja, configured as transformers does, and writes
what comes out to testing/data/templates/goldens.json: the tests of src/text compare with it byte for byte.

Needs jinja2 (3.1). Run: python3 tools/golden_templates.py [--check]
"""
import argparse
import datetime
import json
import pathlib
import sys

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

from golden_template_inputs import CONVERSATIONS, VARIABLES
from golden_template_snippets import ERRORS, SNIPPETS

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "testing" / "data" / "templates"
NOW = datetime.datetime(2024, 7, 6, 14, 5, 9)  # the clock of the tests


class Generation(jinja2.ext.Extension):
    """{% generation %}: renders as its body, which is a function of its own."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_body")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


class Raised(Exception):
    """raise_exception of a template."""


def environment():
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])

    def raise_exception(message):
        raise Raised(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(
            x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def render(env, source, variables):
    """The golden fields of one rendering: "output", or "error" and what kind it is."""
    try:
        return {"output": env.from_string(source).render(**variables)}
    except Raised as e:
        return {"error": "raised", "message": str(e)}
    except jinja2.UndefinedError as e:
        return {"error": "undefined", "message": str(e)}
    except jinja2.TemplateSyntaxError as e:
        return {"error": "syntax", "message": str(e)}
    except Exception as e:  # Python's own errors, whose words differ between versions
        return {"error": "other", "message": f"{type(e).__name__}: {e}"}


def goldens():
    env = environment()
    snippets = [{"source": source, **render(env, source, VARIABLES)} for source in SNIPPETS + ERRORS]
    surprises = [s for s in snippets if ("error" in s) != (s["source"] in ERRORS)]
    if surprises:
        raise SystemExit("not what the lists say:\n" + "\n".join(map(str, surprises)))
    chats = []
    for conversation in CONVERSATIONS:
        for path in sorted(FOLDER.glob("*_style.jinja")):
            variables = {
                **conversation.get("special_tokens", {}),
                **conversation.get("variables", {}),
                "messages": conversation["messages"],
                "tools": conversation.get("tools"),
                "documents": conversation.get("documents"),
                "add_generation_prompt": conversation.get("add_generation_prompt", True),
            }
            chats.append({
                "template": path.name,
                "conversation": conversation["name"],
                **render(env, path.read_text(encoding="utf-8"), variables)
            })
    return {"variables": VARIABLES, "snippets": snippets, "conversations": CONVERSATIONS, "chats": chats}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the file instead of writing it")
    arguments = parser.parse_args()
    text = json.dumps(goldens(), ensure_ascii=False, indent=1) + "\n"
    path = FOLDER / "goldens.json"
    if arguments.check:
        sys.exit(path.read_text(encoding="utf-8") != text)
    path.write_text(text, encoding="utf-8")
    print(f"{path}: {len(text.encode())} bytes, Jinja {jinja2.__version__}")


if __name__ == "__main__":
    main()
