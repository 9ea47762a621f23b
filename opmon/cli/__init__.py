"""The command line: parse, call, print. Every command is imported when it is asked for, so ``--help`` is quick.

Exit codes:

== ==================================================================================================
0  done
1  a fault in opmon itself; the traceback is shown, please report it
2  wrong usage, configuration or input: nothing was changed
3  something could not be done this time (MLflow, the database, a model or a source); nothing is lost, run again
4  another process is working on the monitor
== ==================================================================================================
"""

from __future__ import annotations

import importlib
import io
import logging
import os
import sys
import traceback
from typing import NoReturn

import click

from opmon import disk
from opmon.ceiling import ceiling
from opmon.errors import InputError, LeaseHeld, NotFoundError, OpmonError, PluginError
from opmon.logs.formats import Plain
from opmon.private import keep_private
from opmon.redaction import hide_environment, redacted
from opmon.wording import did_you_mean, nearest

COMMANDS = {
    "init": ("opmon.cli.init:init", "Write a commented opmon.yaml to begin with."),
    "plan": ("opmon.cli.plan:plan", "How many labels an interval needs, and which sampler draws them."),
    "check": ("opmon.cli.check:check", "Tell whether everything opmon needs is there and answers."),
    "explain": ("opmon.cli.explain:explain", "What a rule promises, what a sampler does, and its parameters."),
    "layers": ("opmon.cli.layers:layers", "List the layers of a model whose activations can be traced."),
    "reference": ("opmon.cli.reference:reference", "Fit what dsa, lsa and autoencoders need, on training data."),
    "compile": ("opmon.cli.compile:compile_", "Write the model with its variables computed in the same graph."),
    "run": ("opmon.cli.run:run", "Move every monitor as far as it can go, once."),
    "serve": ("opmon.cli.serve:serve", "Run every monitor on its schedule until told to stop."),
    "ingest": ("opmon.cli.ingest:ingest", "Take what model servers send, in a process of its own."),
    "status": ("opmon.cli.status:status", "How accurate is each model, and what waits for whom."),
    "report": ("opmon.cli.report:report", "One file on a monitor's last weeks, for a mail or a ticket."),
    "rounds": ("opmon.cli.rounds:rounds", "Give up a round that cannot go on, or have one labelled first."),
    "inputs": ("opmon.cli.inputs:inputs", "What of the log cannot be read, and give it back."),
    "labels": ("opmon.cli.labels:labels", "Hand tasks to annotators and take their labels back."),
    "annotators": ("opmon.cli.annotators:annotators", "Who may use the pages and the API."),
    "audit": ("opmon.cli.audit:audit", "Who signed in, was refused, changed answers, took events on."),
    "db": ("opmon.cli.db:db", "Bring the database up to date, check it, back it up, restore it."),
    "prune": ("opmon.cli.prune:prune", "Erase what annotators saw, when it was kept long enough."),
    "robustness": ("opmon.cli.robustness:robustness", "How right the model stays under combined perturbations."),
    "events": ("opmon.cli.events:events", "What rules raised, and whether it was delivered."),
    "compare": ("opmon.cli.compare:compare", "Is another version of the model better, on the same inputs?"),
    "demo": ("opmon.cli.demo:demo", "See it work: a model, a drifting stream, an alarm, a retraining."),
}

_FOR_OTHERS = frozenset({"init", "compile", "demo"})
"""Commands whose files may be meant for others; those of all others hold inputs, labels and names."""

DONE, FAULT, WRONG, LATER, HELD = range(5)

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class LazyGroup(click.Group):
    """A group that imports a command when it is run, not when it is listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in COMMANDS:
            hint = did_you_mean(nearest(name, COMMANDS))
            ctx.fail(f"there is no command {name!r}; there are: {', '.join(COMMANDS)}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in COMMANDS.items()])


def _version(ctx: click.Context, parameter: click.Parameter, asked: bool) -> None:
    if asked:
        from opmon import __version__

        click.echo(f"opmon {__version__}")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings=CONTEXT, no_args_is_help=True)
@click.option("--version", is_flag=True, callback=_version, expose_value=False, is_eager=True, help="Show the version.")
@click.option("-v", "--verbose", count=True, help="Tell what is done (-v) and how (-vv).")
@click.option("-q", "--quiet", is_flag=True, help="Tell only errors.")
@click.pass_context
def group(ctx: click.Context, verbose: int, quiet: bool) -> None:
    """How accurate is the model in production today, how sure are we, and when must we retrain?

    Begin with "opmon demo", or with "opmon init" and "opmon check" for a model of your own.

    \b
    Exit codes: 0 done, 1 a fault in opmon, 2 wrong usage or configuration,
    3 not possible this time (run again), 4 another process is at work.
    """
    level = logging.ERROR if quiet else (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)]
    if ctx.invoked_subcommand not in _FOR_OTHERS:
        keep_private()
    hide_environment(os.environ)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    for handler in logging.getLogger().handlers:
        if type(handler) is logging.StreamHandler and handler.stream is sys.stderr:
            handler.setFormatter(Plain())
    logging.getLogger("opmon").setLevel(level)
    if verbose < 2:
        logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)  # whoever asks tells of it when it gives up


def main(arguments: list[str] | None = None) -> None:
    """The entry point: errors become one or two lines and an exit code."""
    _show_any_sign()
    try:
        with ceiling.held():
            result: object = group.main(args=arguments, prog_name="opmon", standalone_mode=False)
    except click.ClickException as exc:
        exc.show()
        _end(exc.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped; run the same command again to go on", err=True)
        _end(130)
    except OpmonError as exc:
        click.echo(f"opmon: {redacted(str(exc))}", err=True)
        _end(exit_code(exc))
    except OSError as exc:
        full = disk.trouble(exc)
        if full is None:
            click.echo(redacted(traceback.format_exc()), err=True, nl=False)
            _end(FAULT)
        click.echo(f"opmon: {full}", err=True)
        _end(LATER)
    except Exception:  # noqa: BLE001 - a fault of opmon's own, whose traceback may hold an address
        click.echo(redacted(traceback.format_exc()), err=True, nl=False)
        _end(FAULT)
    _end(result if isinstance(result, int) else DONE)


def _show_any_sign() -> None:
    """Where a terminal lacks a sign, such as the mark before a check, it shows a ?, and nothing ends for it."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _end(code: int) -> NoReturn:
    """End the process; at once if a call was given up and still hangs: the interpreter would wait for its threads."""
    calls = sys.modules.get("opmon.registry._calls")  # not imported: nobody called
    others = sys.modules.get("opmon.waiting")
    if (calls is not None and calls.left_behind()) or (others is not None and others.hanging()):
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def exit_code(exc: OpmonError) -> int:
    """The exit code for an error."""
    if isinstance(exc, LeaseHeld):
        return HELD
    return WRONG if isinstance(exc, InputError | NotFoundError | PluginError) else LATER
