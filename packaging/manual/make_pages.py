#!/usr/bin/env python3
"""Make a program's manual page, and its completion for bash and zsh, from the program's output with --help.

    make_pages.py PROGRAM SECTION OUT [EMULATOR...]

Writes OUT/man/NAME.SECTION, OUT/bash/NAME and OUT/zsh/_NAME. EMULATOR is qemu's user emulation with its options, for a
program of another architecture.
"""

import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

NAMES_WIDTH = 30  # column in which every text begins
PAGES = ("tributary(1)", "tributary-manager(8)", "tributary-aggregator(8)", "tributary-nccl-check(1)")
TIME_LIMIT_S = 20


@dataclass
class Entry:
    """An option, an operand or a command: its form and its description."""

    written: str
    text: str

    def names(self) -> list[str]:
        return [name for name in self.written.split()[0].split(",") if name]

    def choices(self) -> list[str]:
        """Return the words that the option takes, where the brackets at the end of its text list them."""
        listed = re.search(r"\[((?:[a-z0-9_.]+, )*[a-z0-9_.]+) or ([a-z0-9_.]+)(?:; default: [^\]]*)?\]$", self.text)
        return [*listed[1].split(", "), listed[2]] if listed else []


@dataclass
class Help:
    about: list[str] = field(default_factory=list)
    usage: str = ""
    sections: dict[str, list[Entry]] = field(default_factory=dict)
    footer: list[str] = field(default_factory=list)

    def options(self) -> list[Entry]:
        return [entry for entries in self.sections.values() for entry in entries if entry.written.startswith("-")]

    def operand_choices(self) -> list[str]:
        choices = [choice for entry in self.sections.get("Arguments", []) for choice in entry.choices()]
        return choices + self.subcommands()

    def subcommands(self) -> list[str]:
        return [entry.written for entry in self.sections.get("Commands", [])]


def read_entry(line: str) -> Entry:
    """Read the first line of an entry: its text stands beside the names, or on the lines below."""
    beside = line[NAMES_WIDTH - 1 : NAMES_WIDTH] == " "
    return Entry(line[:NAMES_WIDTH].strip(), line[NAMES_WIDTH:].strip()) if beside else Entry(line.strip(), "")


def read_help(text: str) -> Help:
    found = Help()
    entries: list[Entry] | None = None
    for line in text.splitlines():
        if not line.strip():
            continue
        if line.startswith("Usage: "):
            found.usage = line.removeprefix("Usage: ")
        elif line.startswith(" " * NAMES_WIDTH) and entries:
            entries[-1].text = f"{entries[-1].text} {line.strip()}".strip()
        elif line.startswith("  ") and entries is not None:
            entries.append(read_entry(line))
        elif line.endswith(":"):
            entries = found.sections.setdefault(line[:-1], [])
        else:
            (found.footer if found.usage else found.about).append(line)
    if not found.usage or not found.options():
        raise SystemExit(f"make_pages: this is no help text:\n{text}")
    return found


def say(program: Path, *arguments: str) -> str:
    """Run the program under its bare name, because the help text repeats the name of the call."""
    emulator = sys.argv[4:]
    command = [*emulator, "-0", program.name, str(program)] if emulator else [program.name]
    done = subprocess.run([*command, *arguments], executable=None if emulator else program, capture_output=True, text=True, timeout=TIME_LIMIT_S)
    if done.returncode != 0:
        raise SystemExit(f"make_pages: {program} {' '.join(arguments)} failed with {done.returncode}: {done.stderr}")
    return done.stdout


def read_commands(program: Path, words: tuple[str, ...], above: Help) -> dict[str, Help]:
    """Return the help of each command, and of the commands below it, by their words."""
    commands = {}
    for name in above.subcommands():
        help_text = read_help(say(program, *words, name, "--help"))
        commands[" ".join((*words, name))] = help_text
        commands |= read_commands(program, (*words, name), help_text)
    return commands


def roff(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def page_body(help_text: Help, heading: str) -> list[str]:
    lines = []
    for title, entries in help_text.sections.items():
        if title == "Commands":
            continue
        lines.append(f"{heading} {roff(title.upper() if heading == '.SH' else title)}")
        for entry in entries:
            lines += [".TP", f"\\fB{roff(entry.written.replace(',-', ', -'))}\\fR", roff(entry.text)]
    for line in help_text.footer:
        lines += [".PP", roff(line)]
    return lines


def manual(name: str, section: str, version: str, main: Help, commands: dict[str, Help]) -> str:
    lines = [f'.TH {name.upper()} {section} "" "{version}" "Tributary"', ".SH NAME", f"{name} \\- {roff(main.about[0].removeprefix(f'{name.capitalize()}: ').rstrip('.'))}"]
    lines += [".SH SYNOPSIS", f"\\fB{roff(main.usage)}\\fR", ".SH DESCRIPTION", *(roff(line) for line in main.about)]
    lines += page_body(main, ".SH")
    if commands:
        lines.append(".SH COMMANDS")
    for command, help_text in commands.items():
        lines += [f".SS {name} {command}", f"\\fB{roff(help_text.usage)}\\fR", ".PP", *(roff(line) for line in help_text.about)]
        for line in page_body(help_text, ".PP"):
            # A title inside a command stands on its own line.
            lines += [".PP", line.removeprefix(".PP ") + ":"] if line.startswith(".PP ") else [line]
    others = [page for page in PAGES if not page.startswith(f"{name}(")]
    lines += [".SH SEE ALSO", ", ".join("\\fB" + roff(page).replace("(", "\\fR(") for page in others)]
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def option_names(help_text: Help) -> list[str]:
    return [name for entry in help_text.options() for name in entry.names()]


def choice_cases(main: Help, commands: dict[str, Help], indent: str) -> list[str]:
    """Make the lines of a shell's `case "$command $previous"` which list the words after an option."""
    lines = []
    for command, help_text in {"": main, **commands}.items():
        for entry in help_text.options():
            if entry.choices():
                patterns = "|".join(quoted(f"{command} {name}") for name in entry.names())
                lines.append(f"{indent}{patterns}) words={quoted(' '.join(entry.choices()))} ;;")
    return lines


def bash_completion(name: str, main: Help, commands: dict[str, Help]) -> str:
    function = "_" + name.replace("-", "_")
    lines = [f"# Completion of {name} for bash, made from its --help.", f"{function}() {{"]
    lines.append("  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command= words= i")
    if commands:
        lines += ["  for ((i = 1; i < COMP_CWORD; i++)); do", '    case "${command:+$command }${COMP_WORDS[i]}" in']
        lines += [f"      {'|'.join(map(quoted, commands))}) command+=${{command:+ }}${{COMP_WORDS[i]}} ;;"]
        lines += ["    esac", "  done"]
    lines += ['  case "$command $previous" in', *choice_cases(main, commands, "    "), "  esac"]
    lines += ['  if [[ -z $words && $current == -* ]]; then', '    case $command in']
    for command, help_text in {"": main, **commands}.items():
        lines.append(f"      {quoted(command)}) words={quoted(' '.join(option_names(help_text)))} ;;")
    lines += ["    esac", "  elif [[ -z $words ]]; then", "    case $command in"]
    for command, help_text in {"": main, **commands}.items():
        operands = help_text.operand_choices()
        if operands:
            lines.append(f"      {quoted(command)}) words={quoted(' '.join(operands))} ;;")
    lines += ["    esac", "  fi", '  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")', "}"]
    lines.append(f"complete -o default -F {function} {name}")
    return "\n".join(lines) + "\n"


def zsh_described(pairs: list[tuple[str, str]]) -> str:
    return " ".join(quoted(word.replace(":", "\\:") + ":" + text) for word, text in pairs)


def zsh_completion(name: str, main: Help, commands: dict[str, Help]) -> str:
    lines = [f"#compdef {name}", f"# Completion of {name} for zsh, made from its --help.", "local command= word", "local -a words_here described"]
    lines.append("local current=${words[CURRENT]} previous=${words[CURRENT-1]}")
    if commands:
        lines += ["for word in ${words[2,CURRENT-1]}; do", "  case ${command:+$command }$word in"]
        lines += [f"    ({'|'.join(map(quoted, commands))}) command+=${{command:+ }}$word ;;", "  esac", "done"]
    lines.append('case "$command $previous" in')
    lines += [re.sub(r"words='([^']*)'", r"words_here=(\1)", re.sub(r"^(\s*)", r"\1(", case)) for case in choice_cases(main, commands, "  ")]
    lines += ["esac", "if (( ${#words_here} )); then", "  compadd -- $words_here", "  return", "fi", "if [[ $current == -* ]]; then", "  case $command in"]
    for command, help_text in {"": main, **commands}.items():
        pairs = [(option, entry.text) for entry in help_text.options() for option in entry.names()]
        lines.append(f"    ({quoted(command)}) described=({zsh_described(pairs)}) ;;")
    lines += ["  esac", "  _describe -o option described", "  return", "fi", "case $command in"]
    for command, help_text in {"": main, **commands}.items():
        if command == "" and commands:
            pairs = [(entry.written, entry.text) for entry in main.sections["Commands"]]
            lines.append(f"  ('') described=({zsh_described(pairs)}); _describe command described ;;")
        elif help_text.operand_choices():
            lines.append(f"  ({quoted(command)}) compadd -- {' '.join(help_text.operand_choices())} ;;")
    lines += ["  (*) _files ;;", "esac"]
    return "\n".join(lines) + "\n"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def main() -> int:
    program, section, out = Path(sys.argv[1]).resolve(), sys.argv[2], Path(sys.argv[3])
    name = program.name
    words = say(program, "--version").split() if "--version" in say(program, "--help") else []
    version = " ".join(words)
    help_text = read_help(say(program, "--help"))
    commands = read_commands(program, (), help_text)
    write(out / "man" / f"{name}.{section}", manual(name, section, version, help_text, commands))
    write(out / "bash" / name, bash_completion(name, help_text, commands))
    write(out / "zsh" / f"_{name}", zsh_completion(name, help_text, commands))
    return 0


if __name__ == "__main__":
    sys.exit(main())
