"""The programs that a container starts: launchers taken off, shells' scripts read, in order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from posixpath import basename

from msgspec import Struct

from kubectl_gpuadmit.sizing.startup import shell
from kubectl_gpuadmit.sizing.startup.blanks import is_known
from kubectl_gpuadmit.sizing.startup.container import Started

MOST_NESTED = 6
"""Scripts that start scripts, at most."""


class Program(Struct, frozen=True):
    """One program with its words. ``pointers`` has the place of each in the template, as far as
    they stand there one by one; ``where`` says it in words."""

    words: tuple[str, ...]
    pointers: tuple[str, ...]
    where: str
    conditional: bool = False
    environment: tuple[tuple[str, str], ...] = ()
    """Set by the script for it, on top of the container's."""


_SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "busybox"})
_PLAIN = frozenset({"exec", "nohup", "setsid", "catchsegv", "command", "builtin", "time", "sudo"})
_WITH_DASHES = frozenset({"tini", "dumb-init", "docker-init", "catatonit", "gosu", "su-exec"})
_OPTIONS_WITH_VALUE: dict[str, frozenset[str]] = {
    "timeout": frozenset({"-k", "-s", "--kill-after", "--signal"}),
    "nice": frozenset({"-n", "--adjustment"}),
    "numactl": frozenset({"-m", "-N", "-C", "-i", "--membind", "--cpunodebind", "--physcpubind"}),
    "stdbuf": frozenset({"-i", "-o", "-e"}),
    "taskset": frozenset(),
    "ionice": frozenset({"-c", "-n"}),
}
_POSITIONAL = {"timeout": 1, "taskset": 1}
"""Words between the launcher's options and the program."""


def programs(started: Started) -> list[Program]:
    """Every program that the container's command and arguments start. Where there is no command,
    the image's own entry point gets the arguments: none of that is known here."""
    words = (*started.command, *started.args)
    pointers = (
        *(f"{started.pointer}/command/{i}" for i in range(len(started.command))),
        *(f"{started.pointer}/args/{i}" for i in range(len(started.args))),
    )
    where = "args" if not started.command else "command and args" if started.args else "command"
    variables = {name: v.value for name, v in started.environment.items()}
    return list(_of_words(started, words, pointers, where, variables, (), False, 0))


def _of_words(
    started: Started,
    words: tuple[str, ...],
    pointers: tuple[str, ...],
    where: str,
    variables: dict[str, str],
    own: tuple[tuple[str, str], ...],
    conditional: bool,
    depth: int,
) -> Iterator[Program]:
    words, pointers, more = _without_launchers(words, pointers)
    own = (*own, *more)
    if not words:
        return
    script = _script(started, words)
    if script is None or depth >= MOST_NESTED:
        yield Program(words, pointers, where, conditional, own)
        return
    text, positional, named, at = script
    if not is_known(text):
        yield Program(words, pointers, where, conditional, own)
        return
    if named:
        where, pointers = named, ()
    elif at < len(pointers):
        pointers = (pointers[at],)
    read = shell.read(text, {**variables, **dict(own)}, started.blanks, positional=positional)
    for command in read.commands:
        _note_file(started, command, where)
        yield from _of_words(
            started,
            command.words,
            (pointers[0],) * len(command.words) if pointers else (),
            where,
            read.variables,
            (*_exported(variables, read.variables), *command.environment.items()),
            conditional or command.conditional,
            depth + 1,
        )


def _exported(before: dict[str, str], after: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((k, v) for k, v in after.items() if before.get(k) != v)


def _note_file(started: Started, command: shell.Command, where: str) -> None:
    """``cat <<EOF > file`` and ``echo text > file``: the file's text is known."""
    path = command.output
    if basename(command.words[0]) == "tee" and command.input is not None:
        path = next((w for w in command.words[1:] if not w.startswith("-")), "")
    if not path.startswith("/"):
        return
    program = basename(command.words[0])
    if program in ("cat", "tee") and command.input is not None:
        started.files.write(path, command.input, f"{where} ({path})")
    elif program in ("echo", "printf"):
        words = [w for w in command.words[1:] if w not in ("-e", "-n", "-E")]
        started.files.write(path, " ".join(words), f"{where} ({path})")


def _without_launchers(
    words: tuple[str, ...], pointers: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[str, str], ...]]:
    """The program itself, and what ``env A=B`` before it sets."""
    environment: list[tuple[str, str]] = []
    at = 0
    while at < len(words):
        program = basename(words[at])
        if program in _PLAIN:
            at += 1
            while at < len(words) and re.fullmatch(r"-[A-Za-z]+", words[at]):
                at += 1
        elif program == "env":
            at += 1
            while at < len(words):
                name, equals, value = words[at].partition("=")
                if words[at] in ("-u", "--unset", "-C"):
                    at += 2
                elif words[at] == "--" or words[at].startswith("-"):
                    at += 1
                elif equals and re.fullmatch(r"[A-Za-z_]\w*", name):
                    environment.append((name, value))
                    at += 1
                else:
                    break
        elif program in _WITH_DASHES:
            at += 1
            while at < len(words) and words[at].startswith("-") and words[at] != "--":
                at += 1
            at += at < len(words) and words[at] == "--"
            at += program in ("gosu", "su-exec")  # the user
        elif program in _OPTIONS_WITH_VALUE:
            valued = _OPTIONS_WITH_VALUE[program]
            at += 1
            while at < len(words) and words[at].startswith("-"):
                at += 2 if words[at] in valued else 1
            at += _POSITIONAL.get(program, 0)
        elif program == "uv" and words[at + 1 : at + 2] == ("run",):
            at += 2
            while at < len(words) and words[at].startswith("-"):
                at += 2 if words[at] in ("--with", "--python", "--extra", "--project") else 1
        else:
            break
    return words[at:], pointers[at:], tuple(environment)


def _script(started: Started, words: Sequence[str]) -> tuple[str, tuple[str, ...], str, int] | None:
    """The script that these words run: text, $0 and so on, where it is kept if in a file, else the
    number of the word that it is."""
    program = basename(words[0])
    if program in _SHELLS:
        at = 2 if program == "busybox" else 1
        while at < len(words) and words[at][:1] in "-+" and len(words[at]) > 1:
            if words[at][0] == "-" and not words[at].startswith("--") and "c" in words[at]:
                rest = at + 1
                while rest < len(words) and words[rest] in ("-o", "-e", "-x", "-u", "pipefail"):
                    rest += 1
                if rest >= len(words):
                    return None
                return words[rest], tuple(words[rest + 1 :]), "", rest
            at += 2 if words[at] in ("-o", "+o", "--rcfile") else 1
        if at >= len(words):
            return None
        return _in_file(started, words[at], words[at:])
    if words[0].startswith("/"):
        found = _in_file(started, words[0], words)
        if found is not None and not re.match(r"#!.*python", found[0]):
            return found
    return None


def _in_file(
    started: Started, path: str, words: Sequence[str]
) -> tuple[str, tuple[str, ...], str, int] | None:
    file = started.files.read(path) if path.startswith("/") else None
    return (file.text, tuple(words), file.where, 0) if file is not None else None
