"""What `horsies top` changes, always after a question; and what changes under its eyes."""

import getpass

import pytest

from horsies.tui.dialogs import Confirm
from horsies.tui.tasks import Tasks
from support.database import at
from support.eventually import eventually_async
from support.proxy import proxied
from support.scenes import WORKER, Shop, task_id
from support.terminal import press, search, settle, text_of, top_of, until, viewer


def audit(shop: Shop) -> list[tuple[str, str]]:
    rows = shop.db.execute("select action, done_by, target from horsies_audit order by id")
    assert all(row["done_by"].startswith(f"{getpass.getuser()}@") for row in rows)
    return [(row["action"], row["target"]) for row in rows]


@pytest.mark.seed("S93")
async def test_a_failed_task_is_enqueued_again_only_after_yes(own_shop: Shop) -> None:
    failed = own_shop.ids["failed"]
    async with viewer(own_shop.url) as pilot:
        await press(pilot, "3")
        await search(pilot, "0028")
        top = await press(pilot, "e")
        is_asked, question = isinstance(top.screen, Confirm), text_of(pilot)
        await press(pilot, "n")
        after_no = own_shop.db.status(failed)
        await press(pilot, "e", "enter")  # No is chosen until one chooses
        after_enter = own_shop.db.status(failed)
        await press(pilot, "e", "y")
        await eventually_async(lambda: _is(own_shop, failed, "PENDING"))
        await press(pilot, "g", "y")  # it has not ended any more
        told = [note.message for note in pilot.app._notifications]

    assert is_asked
    assert told[0] == "enqueued again"
    assert told[1].startswith(f"there is no ended task {failed} to run again")
    assert "Enqueue charge_card again? The same task runs once more.\n" in _plain(question)
    assert (after_no, after_enter) == ("FAILED", "FAILED")
    assert audit(own_shop) == [("requeue", f"tasks {failed}")]


async def test_all_listed_tasks_are_enqueued_again(own_shop: Shop) -> None:
    async with viewer(own_shop.url) as pilot:
        await press(pilot, "3")
        await search(pilot, "task:charge_card")
        await press(pilot, "E")
        question = text_of(pilot)
        await pilot.press("right", "enter")
        await eventually_async(lambda: _is(own_shop, task_id(10), "PENDING"))

    assert "Enqueue 4 failed or cancelled tasks again?" in question
    assert own_shop.db.statuses().get("FAILED") is None
    assert own_shop.db.status(task_id(46)) == "CANCELLED"


async def test_tasks_are_run_again_and_cancelled_from_their_page(own_shop: Shop) -> None:
    running = own_shop.ids["running"]
    async with viewer(own_shop.url) as pilot:
        await press(pilot, "3")
        await search(pilot, "0028")
        await press(pilot, "enter", "g", "y")
        await eventually_async(lambda: _has(_rerun_status(own_shop) == "PENDING"))
        await press(pilot, "escape")
        await search(pilot, "0029")
        await press(pilot, "k", "y")
        await eventually_async(lambda: _is(own_shop, own_shop.ids["waiting"], "CANCELLED"))
        await search(pilot, "002d")
        await press(pilot, "k")
        question = text_of(pilot)
        await press(pilot, "y")
        await eventually_async(lambda: _has(own_shop.db.task(running)["cancel_requested_at"]))

    assert "Its worker is asked to end it." in question
    assert [action for action, _ in audit(own_shop)] == ["rerun", "cancel", "cancel"]


async def test_a_workflow_is_paused_resumed_and_cancelled(own_shop: Shop) -> None:
    flow = own_shop.ids["flow"]
    async with viewer(own_shop.url) as pilot:
        await press(pilot, "4")
        await search(pilot, "nightly")
        await press(pilot, "s", "y")
        await eventually_async(lambda: _has(_flow_status(own_shop) == "PAUSED"))
        await settle(pilot)
        await press(pilot, "s", "y")
        await eventually_async(lambda: _has(_flow_status(own_shop) == "RUNNING"))
        await settle(pilot)
        await press(pilot, "enter", "k", "y")
        await eventually_async(lambda: _has(_flow_status(own_shop) == "CANCELLED"))

    assert audit(own_shop) == [(act, f"workflow {flow}") for act in ("pause", "resume", "cancel")]


async def test_a_queue_is_paused_and_resumed_and_a_worker_drained(own_shop: Shop) -> None:
    async with viewer(own_shop.url) as pilot:
        await press(pilot, "down", "s", "y")
        await until(pilot, lambda seen: "mail paused" in seen)
        await press(pilot, "s")
        question = text_of(pilot)
        await press(pilot, "y")
        await until(pilot, lambda seen: "mail paused" not in seen)
        await press(pilot, "2", "d", "y", "5")
        await until(pilot, lambda seen: f"drain   worker {WORKER}" in seen)

    assert "Resume queue mail?" in question
    acts = [("pause", "queue mail"), ("resume", "queue mail"), ("drain", f"worker {WORKER}")]
    assert audit(own_shop) == acts


async def test_new_rows_leave_cursor_and_scroll_where_they_are(own_shop: Shop) -> None:
    async with viewer(own_shop.url, size=(100, 24)) as pilot:
        top = await press(pilot, "3")
        await pilot.press(*["down"] * 30)
        table = top.view.table
        chosen, scroll = table.chosen, table.scroll_y
        for number in range(60, 65):
            own_shop.db.insert(id=task_id(number), enqueued_at=at(-1))
        await eventually_async(lambda: _lists(top.view, task_id(64)))
        await press(pilot, "r")

        assert table.chosen == chosen
        assert scroll > 0
        assert table.cursor_row == 35


async def test_a_lost_database_is_shown_retried_and_found_again(own_shop: Shop) -> None:
    with proxied(own_shop.url) as (proxy, url):
        async with viewer(url) as pilot:
            top, before = top_of(pilot), text_of(pilot)
            proxy.refuses = True
            proxy.hang_up()
            await eventually_async(lambda: _has(top.trouble))
            await press(pilot, "r")
            during = text_of(pilot)
            proxy.refuses = False
            await eventually_async(lambda: _has(top.trouble is None))
            await press(pilot, "r")
            after = text_of(pilot)

    assert "✘ away" in during
    assert "No answer from the database, trying again:" in during
    assert "Completed      37" in before
    assert "Completed      37" in during  # the last picture stays
    assert "✘ away" not in after
    assert "No answer" not in after


async def _is(shop: Shop, wanted_id: str, status: str) -> bool:
    return shop.db.status(wanted_id) == status


async def _lists(view: object, wanted_id: str) -> bool:
    assert isinstance(view, Tasks)
    return wanted_id in view.listed


async def _has(value: object) -> bool:
    return bool(value)


def _rerun_status(shop: Shop) -> object:
    rows = shop.db.execute(
        "select status from horsies_tasks where rerun_of = %s", shop.ids["failed"]
    )
    return rows[0]["status"] if rows else None


def _flow_status(shop: Shop) -> object:
    return shop.db.value("select status from horsies_workflows where id = %s", shop.ids["flow"])


def _plain(text: str) -> str:
    """Without the frame of a dialog."""
    return "".join(f"{line.strip(' │')}\n" for line in text.splitlines())
