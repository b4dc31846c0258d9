"""What `horsies check` asks of schedules: those in code, and those that were added at run time."""

from collections.abc import Iterator

from psycopg.errors import InvalidSchemaName, UndefinedFunction, UndefinedTable

from horsies.codes import ErrorCode
from horsies.database.database import Database
from horsies.errors import ConfigurationError, HorsiesError
from horsies.scheduling.control import MAX_LISTED
from horsies.scheduling.statements import read_schedules
from horsies.scheduling.stored import read_definition
from horsies.scheduling.validate import SchedulingApp, schedule_problems


def problems_in_code(app: SchedulingApp) -> Iterator[HorsiesError]:
    """Yield what keeps the enabled schedules of the app's code from running."""
    config = app.config.schedule
    if config is not None and config.enabled:
        for schedule in config.schedules:
            if schedule.enabled:
                yield from schedule_problems(app, schedule)


def stored_problems(app: SchedulingApp, database: Database) -> Iterator[HorsiesError]:
    """Yield what keeps stored schedules of this app from running, such as a renamed task."""
    config = app.config.schedule
    owner = "default" if config is None else config.owner
    try:
        rows = database.run(read_schedules(owner, None, MAX_LISTED))
    except (InvalidSchemaName, UndefinedFunction, UndefinedTable):
        return  # not migrated yet: nothing is stored
    in_code = set[str]() if config is None else {schedule.name for schedule in config.schedules}
    for row in rows:
        if row.definition is None or row.name in in_code or row.paused_at is not None:
            continue
        cure = (
            "it was added at run time: bring back what it names, or pause, remove or add it anew "
            f"with\n`horsies schedule ... {row.name}`"
        )
        try:
            found = list(schedule_problems(app, read_definition(row.name, row.definition)))
        except ValueError as error:
            text = f"schedule {row.name!r}: {error}"
            found = [ConfigurationError(text, ErrorCode.CONFIG_INVALID_SCHEDULE)]
        yield from (problem.with_help(cure) for problem in found)
