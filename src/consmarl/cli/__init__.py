"""The command line: parse, call one function."""

import os
import sys

from consmarl.cli.commands import COMMANDS
from consmarl.cli.parsing import parse, print_help
from consmarl.errors import UsageError, nearest

COMPILING = ("train", "resume", "evaluate", "watch", "view", "export")  # a sweep's workers see to it themselves


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        if not arguments or arguments[0] in ("-h", "--help"):
            print_help(COMMANDS)
            return 0 if arguments else 2
        name, *options = arguments
        if name == "--version":
            from consmarl import __version__

            print(f"consmarl {__version__}")
            return 0
        if name not in COMMANDS:
            raise UsageError(f"there is no command {name!r}: {nearest(name, COMMANDS)}")
        command = parse(name, COMMANDS[name].kind(options), options)
        if name in COMPILING:
            from consmarl.experiments.compiled import tell_if_not_kept

            tell_if_not_kept()
        result = command.run()
        return 0 if result is None else int(result)
    except UsageError as error:
        print(f"consmarl: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever read our output, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt as stopped:
        print(f"consmarl: {str(stopped) or 'stopped.'}", file=sys.stderr, flush=True)
        sys.stdout.flush()
        # compiled code may still be running in threads, which an orderly end of the interpreter can crash on
        os._exit(130)
