"""`core completion`: a script for bash, zsh or fish that completes commands, options and their choices.

The script is whole: it asks nothing of Python while somebody types.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, cast

import attrs

__all__ = ["add", "run"]

_DESCRIPTION = """\
Print a completion script. Load it once, or from the shell's start-up file:

  bash   source <(core completion bash)
  zsh    source <(core completion zsh)
  fish   core completion fish | source"""


def add(subparsers: Any) -> None:
    """Add the command's options."""
    parser = subparsers.add_parser("completion", help="completion for a shell", description=_DESCRIPTION)
    parser.add_argument("shell", choices=tuple(_SCRIPTS), help="which shell")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    print(_SCRIPTS[args.shell](list(_commands())))
    return 0


@attrs.frozen
class _Option:
    names: tuple[str, ...]
    help: str
    choices: tuple[str, ...]
    takes_value: bool
    takes_path: bool


@attrs.frozen
class _Command:
    name: str
    help: str
    options: tuple[_Option, ...]
    words: tuple[str, ...]


def _commands() -> Iterator[_Command]:
    from core.cli import COMMANDS, parser_for

    for name, command in COMMANDS.items():
        parser = parser_for(name)
        for action in parser._actions:  # argparse tells what it knows nowhere else
            if not isinstance(action, argparse._SubParsersAction):  # as above
                continue
            options: list[_Option] = []
            words: list[str] = []
            parsers = cast("argparse._SubParsersAction[argparse.ArgumentParser]", action)  # as above
            for one in parsers.choices[name]._actions:
                choices = tuple(str(choice) for choice in one.choices or ())
                if not one.option_strings:
                    words += choices
                    continue
                options.append(
                    _Option(
                        tuple(one.option_strings),
                        (one.help or "").split(" (")[0].replace("%(default)s", "").strip(),
                        choices,
                        one.nargs != 0,
                        one.metavar in ("FILE", "FOLDER"),
                    )
                )
            yield _Command(name, command.help, tuple(options), tuple(words))


def _bash(commands: list[_Command]) -> str:
    cases: list[str] = []
    for command in commands:
        names = " ".join([name for option in command.options for name in option.names] + list(command.words))
        values = "".join(
            f'            {"|".join(option.names)}) COMPREPLY=($(compgen {_bash_values(option)} -- "$word")); return ;;\n'
            for option in command.options
            if option.takes_value
        )
        inner = f'        case "$before" in\n{values}        esac\n' if values else ""
        cases.append(
            f'    {command.name})\n{inner}        COMPREPLY=($(compgen -W "{names}" -- "$word"))\n'
            '        [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- "$word")) ;;'
        )
    joined = "\n".join(cases)
    return (
        "_core() {\n"
        '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"\n'
        "    COMPREPLY=()\n"
        '    if [ "$COMP_CWORD" -eq 1 ]; then\n'
        f'        COMPREPLY=($(compgen -W "{" ".join(command.name for command in commands)} --help --version" -- "$word"))\n'
        "        return\n"
        "    fi\n"
        '    case "${COMP_WORDS[1]}" in\n'
        f"{joined}\n"
        "    esac\n"
        "}\n"
        "complete -F _core core"
    )


def _bash_values(option: _Option) -> str:
    if option.choices:
        return f'-W "{" ".join(option.choices)}"'
    return "-f" if option.takes_path else '-W ""'


def _zsh(commands: list[_Command]) -> str:
    described = " ".join(_quoted(f"{command.name}:{command.help}") for command in commands)
    cases: list[str] = []
    for command in commands:
        specifications: list[str] = []
        for option in command.options:
            for name in option.names:
                value = ""
                if option.choices:
                    value = f":value:({' '.join(option.choices)})"
                elif option.takes_path:
                    value = ":path:_files"
                elif option.takes_value:
                    value = ":value: "
                specifications.append(_quoted(f"{name}[{_plain(option.help)}]{value}"))
        specifications.append(_quoted(f"*:what:({' '.join(command.words)})" if command.words else "*:path:_files"))
        cases.append(f"        {command.name}) _arguments {' '.join(specifications)} ;;")
    joined = "\n".join(cases)
    return (
        "#compdef core\n"
        "_core() {\n"
        "    if (( CURRENT == 2 )); then\n"
        f"        local -a commands=({described})\n"
        "        _describe command commands\n"
        "        return\n"
        "    fi\n"
        "    local command=${words[2]}\n"
        "    shift words\n"
        "    (( CURRENT-- ))\n"
        '    case "$command" in\n'
        f"{joined}\n"
        "    esac\n"
        "}\n"
        "compdef _core core"
    )


def _fish(commands: list[_Command]) -> str:
    lines = ["complete -c core -f"]
    for command in commands:
        lines.append(f"complete -c core -n __fish_use_subcommand -a {command.name} -d {_quoted(command.help)}")
        condition = _quoted(f"__fish_seen_subcommand_from {command.name}")
        for option in command.options:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            value = ""
            if option.choices:
                value = f" -x -a {_quoted(' '.join(option.choices))}"
            elif option.takes_path:
                value = " -r -F"
            elif option.takes_value:
                value = " -x"
            lines.append(f"complete -c core -n {condition} {names}{value} -d {_quoted(option.help)}")
        if command.words:
            lines.append(f"complete -c core -n {condition} -a {_quoted(' '.join(command.words))}")
    return "\n".join(lines)


def _plain(text: str) -> str:
    return text.replace("[", "(").replace("]", ")").replace(":", ";")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


_SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
