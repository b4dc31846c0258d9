"""What `horsies schedule` prints for people."""

import json
from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from rich import box
from rich.table import Table

from horsies.cli.console import make_console
from horsies.cli.printing import echo
from horsies.config.schedules import AnySchedule
from horsies.scheduling.by_hand import Backfill
from horsies.scheduling.control import ScheduleInfo
from horsies.scheduling.statements import ScheduleRun

_SHOWN_SLOTS = 10
_PIPED_WIDTH = 200
_SAID = {"name", "task_name", "definition_key", "pattern", "timezone", "enabled"}


def show_instant(at: datetime, zone: ZoneInfo | None) -> str:
    """An instant on the reader's clock: `Mon 2030-01-07 09:00:00 CET`."""
    return f"{at.astimezone(zone):%a %Y-%m-%d %H:%M:%S %Z}"


def print_list(infos: Sequence[ScheduleInfo], zone: ZoneInfo | None) -> None:
    if not infos:
        echo("no schedules")
        return
    table = _table("name", "runs", "when", "next run", "runs so far")
    for info in infos:
        name = f"{info.name} (added)" if info.is_dynamic else info.name
        when = info.words if info.timezone in ("UTC", "?") else f"{info.words} ({info.timezone})"
        table.add_row(name, info.target, when, next_in_words(info, zone), str(info.run_count))
    _print(table)


def next_in_words(info: ScheduleInfo, zone: ZoneInfo | None) -> str:
    if info.problem:
        return f"problem: {info.problem}"
    if not info.is_enabled:
        return "disabled"
    if info.paused_at is not None:
        return f"paused: {info.pause_reason}" if info.pause_reason else "paused"
    if info.next_run_at is not None:
        return show_instant(info.next_run_at, zone)
    has_end = info.definition is not None and info.definition.end_at is not None
    return "none, it has ended" if has_end else "when a scheduler starts"


def settings_in_words(schedule: AnySchedule) -> str:
    """What a schedule has beyond what and when: `overlap skip, kwargs {"kind": "daily"}`."""
    fields = schedule.model_dump(mode="json", exclude_defaults=True, exclude=_SAID)
    return ", ".join(f"{name} {_as_text(value)}" for name, value in fields.items())


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def print_history(runs: Sequence[ScheduleRun], zone: ZoneInfo | None) -> None:
    if not runs:
        echo("no slots yet")
        return
    table = _table("slot", "became", "task or workflow", "status", "why")
    for run in runs:
        run_id = run.task_id or run.workflow_id or ""
        slot = show_instant(run.slot_at, zone)
        table.add_row(slot, run.outcome, run_id, run.status or "", run.reason or "")
    _print(table)


def print_slots(backfill: Backfill, zone: ZoneInfo | None) -> None:
    """The slots that a backfill would send; of many, the first and the last ones."""
    shown, unknown = backfill.slots, backfill.unknown
    echo(f"{len(shown)} slot(s) to send, {len(backfill.sent_before)} sent before")
    if unknown:
        is_sent = set(unknown) <= set(shown)
        effect = "are sent again" if is_sent else "are skipped, unless you give --again"
        echo(f"{len(unknown)} may have been sent, their history is pruned: they {effect}")
    for slot in shown[:_SHOWN_SLOTS]:
        echo(f"  {show_instant(slot, zone)}")
    if len(shown) > _SHOWN_SLOTS:
        if len(shown) > _SHOWN_SLOTS + 1:
            echo(f"  … {len(shown) - _SHOWN_SLOTS - 1} more …")
        echo(f"  {show_instant(shown[-1], zone)}")


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _print(table: Table) -> None:
    make_console(_PIPED_WIDTH).print(table)
