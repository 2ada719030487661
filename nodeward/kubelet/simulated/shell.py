"""The commands a simulated container can run: a handful, on what its volumes and variables are.

`SimRuntime` calls `run` for `kubectl exec`, `kubectl cp` (which runs `tar`), exec hooks and exec probes. Any command
that is not known says what it would have run, and ends well: a simulated image has no programs.

| command | what it does |
|---|---|
| `cat`, `ls`, `env`, `printenv`, `echo`, `pwd`, `hostname`, `true`, `false`, `sleep`, `test`, `exit` | as everywhere |
| `grep TEXT FILE`, `nproc`, `taskset -p 1`, `taskset -cp 1` | a plain text; the CPUs the container may use |
| `tar cf - PATH`, `tar xf - -C PATH` | what `kubectl cp` runs, in both directions |
| `sh -c SCRIPT` | simple commands with `;`, `&&` and `||` |
"""

from __future__ import annotations

import io
import posixpath
import shlex
import tarfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import WorldError
from nodeward.kubelet.expansion import expand_with
from nodeward.kubelet.simulated.container_view import ContainerView
from nodeward.machinery.clock import Clock

_SEPARATORS: Final = (";", "&&", "||", "\n")
_SHELLS: Final = ("sh", "bash", "ash", "/bin/sh", "/bin/bash")


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended, and what it wrote."""

    code: int = 0
    output: bytes = b""
    errors: bytes = b""


@dataclass(frozen=True, slots=True)
class _Call:
    view: ContainerView
    args: tuple[str, ...]
    stdin: bytes
    clock: Clock
    #: when the command must be over (monotonic); 0: it may take its time
    end_ns: int


_Command: TypeAlias = Callable[[_Call], Awaitable[CommandResult]]


def is_known(command: Sequence[str]) -> bool:
    """Whether a simulated container can run the command."""
    name, *args = command or ("",)
    return posixpath.basename(name) in _COMMANDS or (name in _SHELLS and args[:1] == ["-c"])


def reads_stdin(command: Sequence[str]) -> bool:
    """Whether a command waits for its standard input before it does anything."""
    name, *args = command or ("",)
    if name == "cat":
        return not args or "-" in args
    return name == "tar" and any("x" in each for each in args[:1])


async def run(
    view: ContainerView, command: Sequence[str], stdin: bytes, clock: Clock, end_ns: int = 0
) -> CommandResult:
    """Run one command to its end. Raises TimeoutError at `end_ns`."""
    name, *args = command or ("",)
    if name in _SHELLS and args[:1] == ["-c"] and len(args) > 1:
        return await _script(view, args[1], stdin, clock, end_ns)
    known = _COMMANDS.get(posixpath.basename(name))
    if known is None:
        return CommandResult(0, f"simulated: {' '.join(command)}\n".encode())
    return await known(_Call(view, tuple(args), stdin, clock, end_ns))


async def _script(view: ContainerView, script: str, stdin: bytes, clock: Clock, end_ns: int) -> CommandResult:
    """Simple commands one after the other; variables are put in, nothing else is expanded."""
    lexer = shlex.shlex(script.replace("\n", ";"), posix=True, punctuation_chars=";&|")
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError as error:
        return CommandResult(2, b"", f"sh: syntax error: {error}\n".encode())
    result = CommandResult()
    command: list[str] = []
    before = ";"
    output, errors = b"", b""
    for word in (*words, ";"):
        if word not in _SEPARATORS:
            command.append(_with_variables(word, view))
            continue
        is_due = before in (";", "\n") or (before == "&&") == (result.code == 0)
        if command and is_due:
            result = await run(view, command, stdin, clock, end_ns)
            output, errors = output + result.output, errors + result.errors
            if command[0] == "exit":
                break
        command, before = [], word
    return CommandResult(result.code, output, errors)


def _with_variables(word: str, view: ContainerView) -> str:
    if "$" not in word:
        return word
    plain = word.replace("${", "$(").replace("}", ")") if "${" in word else word
    if plain.startswith("$") and plain[1:].isidentifier():
        return view.env.get(plain[1:], "")
    return expand_with(plain, lambda name: view.env.get(name, ""))


# -- one command each


async def _cat(call: _Call) -> CommandResult:
    output, errors = b"", b""
    for path in call.args or ("-",):
        try:
            output += call.stdin if path == "-" else await call.view.read(path)
        except OSError as error:
            errors += _failed("cat", path, error)
    return CommandResult(1 if errors else 0, output, errors)


async def _ls(call: _Call) -> CommandResult:
    flags = "".join(each[1:] for each in call.args if each.startswith("-"))
    paths = [each for each in call.args if not each.startswith("-")] or ["/"]
    output, errors = b"", b""
    for path in paths:
        try:
            names = await call.view.names(path)
        except OSError as error:
            errors += _failed("ls", path, error)
            continue
        if len(paths) > 1 and names is not None:
            output += f"{path}:\n".encode()
        shown = [path] if names is None else [n for n in names if "a" in flags or not n.startswith(".")]
        output += "".join(f"{name}\n" for name in shown).encode()
    return CommandResult(2 if errors else 0, output, errors)


async def _env(call: _Call) -> CommandResult:
    lines = "".join(f"{name}={value}\n" for name, value in call.view.env.items())
    return CommandResult(0, lines.encode("utf-8", "surrogateescape"))


async def _printenv(call: _Call) -> CommandResult:
    if not call.args:
        return await _env(call)
    found = [call.view.env[name] for name in call.args if name in call.view.env]
    text = "".join(f"{value}\n" for value in found)
    is_missing = len(found) < len(call.args)
    return CommandResult(int(is_missing), text.encode("utf-8", "surrogateescape"))


async def _echo(call: _Call) -> CommandResult:
    args, end = call.args, "\n"
    if args[:1] == ("-n",):
        args, end = args[1:], ""
    return CommandResult(0, (" ".join(args) + end).encode("utf-8", "surrogateescape"))


async def _pwd(call: _Call) -> CommandResult:
    return CommandResult(0, b"/\n")


async def _hostname(call: _Call) -> CommandResult:
    spec = call.view.pod.spec
    return CommandResult(0, f"{spec.hostname or call.view.pod.metadata.name}\n".encode())


async def _grep(call: _Call) -> CommandResult:
    """Lines that hold a text; no patterns."""
    args = [each for each in call.args if not each.startswith("-")]
    if len(args) < 2 or len(args) != len(call.args):
        return CommandResult(2, b"", b"grep: a simulated container knows only grep TEXT FILE...\n")
    output, errors = b"", b""
    for path in args[1:]:
        try:
            lines = (await call.view.read(path)).splitlines(keepends=True)
        except OSError as error:
            errors += _failed("grep", path, error)
            continue
        output += b"".join(line for line in lines if args[0].encode() in line)
    return CommandResult(2 if errors else int(not output), output, errors)


async def _nproc(call: _Call) -> CommandResult:
    return CommandResult(0, f"{len(call.view.cpus)}\n".encode())


async def _taskset(call: _Call) -> CommandResult:
    """The CPUs of the container's first process; nobody can be moved."""
    cpus = call.view.cpus
    match call.args:
        case ("-p", "1"):
            # Without the commas that /proc has.
            return CommandResult(0, f"pid 1's current affinity mask: {cpus.bits:x}\n".encode())
        case ("-cp" | "-pc", "1") | ("-c", "-p", "1") | ("-p", "-c", "1"):
            return CommandResult(0, f"pid 1's current affinity list: {cpus}\n".encode())
    return CommandResult(1, b"", b"taskset: a simulated container knows only taskset -p 1 and -cp 1\n")


async def _true(call: _Call) -> CommandResult:
    return CommandResult()


async def _false(call: _Call) -> CommandResult:
    return CommandResult(1)


async def _exit(call: _Call) -> CommandResult:
    code = call.args[0] if call.args else "0"
    return CommandResult(int(code) & 255 if code.isdecimal() else 2)


async def _sleep(call: _Call) -> CommandResult:
    try:
        seconds = sum(map(float, call.args))
    except ValueError:
        text = f"sleep: invalid time interval '{' '.join(call.args)}'\n"
        return CommandResult(1, b"", text.encode())
    left = (call.end_ns - call.clock.monotonic_ns()) / SECOND_NS if call.end_ns else seconds
    await call.clock.sleep(min(seconds, max(left, 0.0)))
    if left < seconds:
        raise TimeoutError
    return CommandResult()


async def _test(call: _Call) -> CommandResult:
    match [each for each in call.args if each != "]"]:
        case ["-d", path]:
            return CommandResult(int(not await call.view.is_directory(path)))
        case ["-e", path]:
            return CommandResult(int(not await _exists(call.view, path)))
        case ["-f", path]:
            is_file = await _exists(call.view, path) and not await call.view.is_directory(path)
            return CommandResult(int(not is_file))
        case ["-n", text] | [text]:
            return CommandResult(int(not text))
        case ["-z", text]:
            return CommandResult(int(bool(text)))
        case [left, "=", right]:
            return CommandResult(int(left != right))
    return CommandResult(2, b"", b"test: not supported by a simulated container\n")


async def _exists(view: ContainerView, path: str) -> bool:
    try:
        await view.names(path)
    except FileNotFoundError:
        return False
    return True


async def _tar(call: _Call) -> CommandResult:
    """`tar cf - PATH...` and `tar xf - -C PATH`, with whatever other letters in the first word."""
    mode, *rest = call.args or ("",)
    directory = "/"
    if "-C" in rest:
        at = rest.index("-C")
        directory = rest[at + 1] if at + 1 < len(rest) else "/"
        del rest[at : at + 2]
    paths = [each for each in rest if not each.startswith("-")]
    if "x" in mode:
        return await _unpack(call, directory)
    if "c" in mode:
        return await _pack(call, directory, paths)
    return CommandResult(2, b"", b"tar: not supported by a simulated container\n")


async def _pack(call: _Call, directory: str, paths: list[str]) -> CommandResult:
    errors = b""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path in paths:
            try:
                files = await call.view.tree(posixpath.join(directory, path))
            except OSError as error:
                errors += _failed("tar", path, error)
                continue
            if "" not in files:
                head = tarfile.TarInfo(path.lstrip("/") or ".")
                head.type, head.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(head)
            for name, data in sorted(files.items()):
                entry = tarfile.TarInfo(posixpath.join(path, name).strip("/"))
                entry.size, entry.mode = len(data), 0o644
                archive.addfile(entry, io.BytesIO(data))
    return CommandResult(2 if errors else 0, packed.getvalue(), errors)


async def _unpack(call: _Call, directory: str) -> CommandResult:
    errors = b""
    try:
        with tarfile.open(fileobj=io.BytesIO(call.stdin), mode="r|") as archive:
            for entry in archive:
                file = archive.extractfile(entry) if entry.isfile() else None
                if file is None:
                    continue
                path = posixpath.join(directory, entry.name)
                try:
                    await call.view.write(path, file.read())
                except PermissionError:
                    errors += f"tar: {path}: Cannot open: Read-only file system\n".encode()
                except WorldError as error:
                    errors += f"tar: {path}: {error}\n".encode()
    except tarfile.TarError as error:
        errors += f"tar: {error}\n".encode()
    return CommandResult(2 if errors else 0, b"", errors)


def _failed(command: str, path: str, error: OSError) -> bytes:
    is_directory = isinstance(error, IsADirectoryError)
    why = "Is a directory" if is_directory else "No such file or directory"
    return f"{command}: {path}: {why}\n".encode()


_COMMANDS: Final[dict[str, _Command]] = {
    "cat": _cat,
    "ls": _ls,
    "env": _env,
    "printenv": _printenv,
    "echo": _echo,
    "pwd": _pwd,
    "hostname": _hostname,
    "grep": _grep,
    "nproc": _nproc,
    "taskset": _taskset,
    "true": _true,
    "false": _false,
    "exit": _exit,
    "sleep": _sleep,
    "test": _test,
    "[": _test,
    "tar": _tar,
}
