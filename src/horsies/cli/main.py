"""The `horsies` command: find subcommands by name and import only the requested one."""

import io
import sys
from importlib import import_module

import click

from horsies.cli.printing import echo
from horsies.errors import HorsiesError

# name -> (module:attribute, summary). The summaries are here so that --help imports no command.
COMMANDS = {
    "worker": ("horsies.cli.worker:command", "Run a worker for an app."),
    "scheduler": ("horsies.cli.scheduler:command", "Send what is scheduled."),
    "schedule": ("horsies.cli.schedule:command", "See and steer schedules."),
    "check": ("horsies.cli.check:command", "Validate an app without starting anything."),
    "migrate": ("horsies.cli.migrate:command", "Create or upgrade the tables and exit."),
    "status": ("horsies.cli.status:command", "Show the whole system at a glance."),
    "tasks": ("horsies.cli.tasks:command", "List tasks that match a filter."),
    "task": ("horsies.cli.task:command", "Show one task in full."),
    "why": ("horsies.cli.why:command", "Explain why a task does not run."),
    "queues": ("horsies.cli.queues:command", "Show backlog, rates and latencies by queue."),
    "workers": ("horsies.cli.workers:command", "Show workers and what each runs."),
    "top": ("horsies.cli.top:command", "Watch and steer the system in a terminal."),
    "tui": ("horsies.cli.top:command", "The same as top."),
    "tail": ("horsies.cli.tail:command", "Follow tasks as they end."),
    "prune": ("horsies.cli.prune:command", "Delete old ended tasks now."),
    "cancel": ("horsies.cli.cancel:command", "Cancel tasks, waiting or running."),
    "requeue": ("horsies.cli.requeue:command", "Put failed tasks back into their queues."),
    "reschedule": ("horsies.cli.change:reschedule", "Let waiting tasks start at another time."),
    "reprioritise": ("horsies.cli.change:reprioritise", "Give waiting tasks another priority."),
    "delete": ("horsies.cli.change:delete", "Delete ended tasks."),
    "pause": ("horsies.cli.steer:pause", "Start nothing of a queue until it is resumed."),
    "resume": ("horsies.cli.steer:resume", "Let a paused queue go on."),
    "limit": ("horsies.cli.steer:limit", "Limit how many tasks of a queue run at once."),
    "drain": ("horsies.cli.steer:drain", "Let a worker finish what it runs and end."),
    "audit": ("horsies.cli.steer:audit", "Show who steered what, and why."),
    "workflow": ("horsies.cli.workflow:command", "See and steer workflows."),
    "web": ("horsies.cli.web:command", "Serve the dashboard for browsers."),
    "dashboard": ("horsies.cli.web:command", "The same as web."),
    "doctor": ("horsies.cli.doctor:command", "Examine the database and name cures."),
    "metrics": ("horsies.cli.metrics:command", "Print the system in numbers for Prometheus."),
    "health": ("horsies.cli.health:command", "Exit with 0 if all is well, for orchestrators."),
    "ping": ("horsies.cli.ping:command", "Check that the database and the workers answer."),
    "demo": ("horsies.cli.demo:command", "Run a few hundred tasks and show what happens."),
    "init": ("horsies.cli.init:command", "Create a small project that runs at once."),
    "completion": ("horsies.cli.completion:command", "Complete commands in your shell."),
    "get-docs": ("horsies.cli.get_docs:command", "Write the documentation as Markdown files."),
    "pg": ("horsies.cli.pg:command", "Use the embedded PostgreSQL of this project."),
}


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name][0].split(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


@click.command(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="`horsies COMMAND --help` explains a command.",
)
@click.version_option(package_name="horsies", message="%(prog)s %(version)s")
@click.pass_context
def horsies(ctx: click.Context) -> None:
    """Typed background tasks on nothing but PostgreSQL."""
    if ctx.invoked_subcommand is None:
        echo(ctx.get_help())
        ctx.exit(1)


def main() -> None:
    sys.exit(run())


def run() -> int:
    """Run the command and return its exit code: 1 for an error, 2 for a malformed command line."""
    try:
        answer: object = horsies.main(prog_name="horsies", standalone_mode=False)
    except HorsiesError as error:
        sys.stderr.write(error.format_rust_style().rstrip("\n") + "\n")
        return 1
    except click.exceptions.NoArgsIsHelpError as error:  # `horsies pg` alone, like `horsies` alone
        error.show()
        return 1
    except click.ClickException as error:
        said = io.StringIO()
        error.show(said)
        echo(said.getvalue(), err=True, nl=False)
        return error.exit_code
    except OSError as error:  # for example an unwritable directory or a full disk
        echo(f"Error: {error}", err=True)
        return 1
    except click.Abort as abort:
        return 0 if isinstance(abort.__cause__, KeyboardInterrupt) else 1
    return answer if isinstance(answer, int) else 0


if __name__ == "__main__":
    main()
