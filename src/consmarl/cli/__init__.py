"""The command line: parse the arguments, then call one function."""

import io
import os
import sys
from collections.abc import Sequence

from consmarl.cli.commands import COMMANDS
from consmarl.cli.help import HELP, HELP_ALL, print_command, print_commands, print_run_command
from consmarl.cli.parsing import parse
from consmarl.errors import UsageError, nearest
from consmarl.plugins import load_installed, load_plugins, taken_out

# Commands that compile programs. A sweep's workers set up the cache of compiled programs themselves.
COMPILING = ("train", "resume", "evaluate", "watch", "view", "export")


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    for stream in (sys.stdout, sys.stderr):  # escape characters that the terminal cannot encode instead of failing
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        return _run(arguments)
    except UsageError as error:
        return _refused(str(error))
    except BrokenPipeError:  # the reader of our output, such as `head`, closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # e.g. a name too long, or a folder without read permission: show the system's message
        where = f"{error.filename}: " if error.filename is not None else ""
        return _refused(f"{where}{error.strerror or error}.")
    except MemoryError as error:
        return _refused(f"there is not enough memory for this ({str(error).rstrip('.') or 'Python ran out'}).")
    except RuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):  # JAX's code for running out of memory
            raise
        return _refused(f"there is not enough memory for this ({str(error).splitlines()[0].rstrip('.')}).")
    except KeyboardInterrupt as stopped:
        print(f"consmarl: {str(stopped) or 'stopped.'}", file=sys.stderr, flush=True)
        sys.stdout.flush()
        # compiled code may still be running in threads, and a normal interpreter shutdown can crash on it
        os._exit(130)


def _refused(sentence: str) -> int:
    print(f"consmarl: {sentence}", file=sys.stderr)
    return 2


def _run(words: Sequence[str]) -> int:
    arguments, plugins = taken_out(words)
    if not arguments or arguments[0] in HELP:
        print_commands(COMMANDS)
        return 0 if arguments else 2
    name, *options = arguments
    if name == "--version":
        from consmarl.version import __version__

        print(f"consmarl {__version__}")
        return 0
    if name == "help":
        if not options:
            print_commands(COMMANDS)
            return 0
        name, *rest = options
        options = [HELP_ALL if word == "--all" else word for word in rest] + ["--help"]
    if name not in COMMANDS:
        raise UsageError(f"there is no command {name!r}: {nearest(name, COMMANDS)}")
    load_installed()
    load_plugins(plugins)
    if {*HELP, HELP_ALL} & set(options):
        _help(name, options)
        return 0
    command = parse(name, COMMANDS[name].kind(options), options)
    if name in COMPILING:
        from consmarl.experiments.compiled import tell_if_not_kept

        tell_if_not_kept()
    result = command.run()
    return 0 if result is None else int(result)


def _help(name: str, options: Sequence[str]) -> None:
    """Print the help of a command; if it configures a run, for the run that the other options describe."""
    others = [word for word in options if word not in (*HELP, HELP_ALL)]
    command = COMMANDS[name].kind([])
    if isinstance(command, type):
        print_command(name, command)
        return
    shows_all = HELP_ALL in options
    try:
        asked = parse(name, COMMANDS[name].kind(others), others)
        print_run_command(name, type(asked), asked.settings, shows_all=shows_all)
    except UsageError as error:  # the other options may be invalid, but help is shown anyway
        print_run_command(name, type(command), command.settings, shows_all=shows_all)
        print(f"consmarl: {error}", file=sys.stderr)
