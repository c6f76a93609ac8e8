#!/usr/bin/env python3
"""Renders the chart without Helm, for clusters that take plain manifests, and for the tests.

    render.py [--release NAME] [--namespace NAME] [--values FILE]

The chart uses only a part of Helm's templates, and this program refuses the rest. The part has fields of .Values,
.Release and .Chart, texts, `if`, `else` and `end`, and the functions toYaml, quote, trim, indent, nindent and required.
"""

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).resolve().parent / "chart"
ACTION = re.compile(r"(\s*)\{\{(-)?\s*(.*?)\s*(-)?\}\}(\s*)", re.DOTALL)
WORD = re.compile(r'"(?:[^"\\]|\\.)*"|\||\S+')


class TemplateError(Exception):
    pass


def text_of(value: Any) -> str:
    return {True: "true", False: "false", None: ""}.get(value, str(value)) if isinstance(value, bool | None) else str(value)


def to_yaml(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=False, sort_keys=True).removesuffix("...\n").rstrip("\n")


def indent(width: int, value: Any) -> str:
    return "\n".join(" " * width + line for line in text_of(value).split("\n"))


def required(message: str, value: Any) -> Any:
    if value in (None, ""):
        raise TemplateError(message)
    return value


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "toYaml": to_yaml,
    "quote": lambda value: '"' + text_of(value).replace("\\", "\\\\").replace('"', '\\"') + '"',
    "trim": lambda value: text_of(value).strip(),
    "indent": indent,
    "nindent": lambda width, value: "\n" + indent(width, value),
    "required": required,
}


def operand(word: str, scope: dict[str, Any]) -> Any:
    if word.startswith('"'):
        return word[1:-1].replace('\\"', '"')
    if word.isdigit():
        return int(word)
    if not word.startswith("."):
        raise TemplateError(f"'{word}' is no field, text or number")
    value: Any = scope
    for name in word[1:].split("."):
        if not isinstance(value, dict) or name not in value:
            raise TemplateError(f"{word} is not set: {name} is missing")
        value = value[name]
    return value


def evaluate(expression: str, scope: dict[str, Any]) -> Any:
    """Returns the value of a pipeline: each stage gets the value of the stage before it as its last argument."""
    piped: list[Any] = []
    stage: list[str] = []
    for word in [*WORD.findall(expression), "|"]:
        if word != "|":
            stage.append(word)
            continue
        if not stage:
            raise TemplateError(f"'{expression}' has an empty stage")
        if stage[0] in FUNCTIONS:
            piped = [FUNCTIONS[stage[0]](*(operand(word, scope) for word in stage[1:]), *piped)]
        elif len(stage) == 1 and not piped:
            piped = [operand(stage[0], scope)]
        else:
            raise TemplateError(f"there is no function '{stage[0]}' here")
        stage = []
    return piped[0]


def render(template: str, scope: dict[str, Any]) -> str:
    out: list[str] = []
    shown = [True]  # for the text outside of every `if`, and for each `if` around this place
    taken: list[bool] = []
    end = 0

    def put(text: str) -> None:
        if all(shown):
            out.append(text)

    for match in ACTION.finditer(template):
        before, trim_left, action, trim_right, after = match.groups()
        put(template[end:match.start()] + ("" if trim_left else before))
        if action.startswith("if "):
            taken.append(bool(evaluate(action[3:], scope)))
            shown.append(taken[-1])
        elif action == "else" and taken:
            shown[-1] = not taken[-1]
        elif action == "end" and taken:
            taken.pop()
            shown.pop()
        elif all(shown):
            put(text_of(evaluate(action, scope)))
        end = match.end() if trim_right else match.end() - len(after)
    put(template[end:])
    if taken:
        raise TemplateError("an `if` has no `end`")
    return "".join(out)


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Returns `base` with the values of `over`, map by map, as Helm merges them."""
    return base | {name: merged(base[name], value) if isinstance(value, dict) and isinstance(base.get(name), dict) else value
                   for name, value in over.items()}


def render_chart(release: str = "tributary", namespace: str = "tributary", values: dict[str, Any] | None = None) -> str:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    scope = {
        "Values": merged(yaml.safe_load((CHART / "values.yaml").read_text()), values or {}),
        "Release": {"Name": release, "Namespace": namespace},
        "Chart": {"Name": chart["name"], "Version": chart["version"], "AppVersion": chart["appVersion"]},
    }
    parts = []
    for path in sorted((CHART / "templates").glob("*.yaml")):
        try:
            text = render(path.read_text(), scope)
        except TemplateError as error:
            raise TemplateError(f"{path.name}: {error}") from error
        if text.strip():
            parts.append(text.strip("\n") + "\n")
    return "---\n".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", default="tributary")
    parser.add_argument("--namespace", default="tributary")
    parser.add_argument("--values", type=Path, help="a file like chart/values.yaml, whose values replace the chart's values")
    args = parser.parse_args()
    try:
        sys.stdout.write(render_chart(args.release, args.namespace, yaml.safe_load(args.values.read_text()) if args.values else None))
    except TemplateError as error:
        print(f"render.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
