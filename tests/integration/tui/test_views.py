"""The five views of `horsies top`, each with its keys, on a shop with every state."""

import json
import re
from typing import Annotated

import pytest

from horsies import Horsies, Secret, TaskError, TaskResult
from horsies.tui.detail import TaskScreen, WorkflowScreen
from horsies.tui.dialogs import Help
from horsies.tui.tasks import Tasks
from horsies.tui.themes import NAMES
from horsies.tui.workers import WINDOWS, Workers
from horsies.tui.workflows import Workflows
from support.scenes import LOST_WORKER, WORKER, Shop, task_id
from support.terminal import press, search, settle, text_of, top_of, viewer

SMALL, LARGE = (80, 24), (160, 50)


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["small", "large"])
async def test_the_dashboard_shows_the_system_at_a_glance(
    shop: Shop, size: tuple[int, int]
) -> None:
    async with viewer(shop.url, size=size) as pilot:
        seen = text_of(pilot)

    assert "workers 1   slots 2   utilisation 50 %   running 1   due 5   per min 0" in seen
    for line in (
        "Pending         6",
        "Claimed         1",
        "Completed      37",
        "Expired         1",
    ):
        assert line in seen
    assert seen.count("Paused          1") == 1
    assert "▲ stale claims: 1" in seen
    assert "▲ workers lost: 1" in seen
    assert "utilisation  50 %" in seen
    assert "ended per minute  0" in seen
    assert "█" in seen
    assert "mail       3  1 min 30 s" in seen


async def test_workers_show_their_load_now_and_in_the_window_of_the_brackets(shop: Shop) -> None:
    async with viewer(shop.url, size=LARGE) as pilot:
        top = await press(pilot, "2")
        first = text_of(pilot)
        await press(pilot, "down")
        second = text_of(pilot)
        view = top.view
        assert isinstance(view, Workers)
        start = view.window
        await press(pilot, "right_square_bracket")
        longer, third = view.window, text_of(pilot)
        await pilot.press(*["left_square_bracket"] * 5)

        assert (start, longer, view.window) == (WINDOWS[2], WINDOWS[3], WINDOWS[0])
    assert "6 h ago" in third
    assert "host-a  4711  alive" in first
    assert "61 + 88 MB  2 h 1 min" in first
    assert f"host-a:4711  {WORKER}  alive" in first
    assert "runs close_books" in first
    assert f"host-b:815  {LOST_WORKER}  silent" in second
    assert "top 100 %" in second


async def test_states_are_toggled_by_their_keys(shop: Shop) -> None:
    async with viewer(shop.url) as pilot:
        top = await press(pilot, "3")
        view = top.view
        assert isinstance(view, Tasks)
        whole = len(view.listed)
        await press(pilot, "n")
        none = text_of(pilot)
        found, seen = {}, set[str]()
        for key in "pcuofxl":
            await press(pilot, key)
            states = {task.status for task in view.listed.values()}
            found[key], seen = states - seen, states
        await press(pilot, "p")
        without = {task.status for task in view.listed.values()}
        await press(pilot, "a")

        assert len(view.listed) == whole == 51
    assert "No task matches. Press a for all states" in none
    assert without == seen - {"PENDING"}
    assert found == {
        "p": {"PENDING"},
        "c": {"CLAIMED"},
        "u": {"RUNNING"},
        "o": {"COMPLETED"},
        "f": {"FAILED"},
        "x": {"EXPIRED"},
        "l": {"CANCELLED"},
    }


async def test_tasks_are_narrowed_by_worker_and_by_words(shop: Shop) -> None:
    async with viewer(shop.url) as pilot:
        top = await press(pilot, "3")
        await pilot.press("shift+tab", "down", "down", "enter")
        await settle(pilot)
        view = top.view
        assert isinstance(view, Tasks)
        expanded, seen = list(view.listed), text_of(pilot)
        await press(pilot, "escape")
        collapsed = len(view.listed)
        await search(pilot, "task:close_*")
        found, note = list(view.listed), text_of(pilot)
        await pilot.press("slash", *" color:red", "enter")
        refused = text_of(pilot)
        await press(pilot, "escape")

        assert len(view.listed) == collapsed == 51
    assert expanded == [task_id(48)]
    assert "▾ host-b:815" in seen
    assert "1 tasks of worker decafbad" in seen
    assert found == [task_id(45)]
    assert "that match task:close_*" in note
    assert "'color:red' is no filter; allowed are status:" in refused


async def test_a_task_is_told_in_full_and_copied_as_json(shop: Shop) -> None:
    async with viewer(shop.url) as pilot:
        top = await press(pilot, "3")
        await search(pilot, "0028")
        await press(pilot, "enter")
        seen, is_open = text_of(pilot), isinstance(top.screen, TaskScreen)
        await press(pilot, "y")
        copied = json.loads(top.clipboard)
        await press(pilot, "escape")
        is_closed = not isinstance(top.screen, TaskScreen)
        await search(pilot, "0029")
        await press(pilot, "enter")
        waiting = text_of(pilot)

    assert (is_open, is_closed) == (True, True)
    assert "No live worker serves queue mail." in waiting
    assert "→ horsies worker MODULE --queues mail" in waiting
    assert f"charge_card  {task_id(40)}  FAILED" in seen
    assert "11:50:04  attempt 1 failed with CARD_DECLINED after" in seen
    assert "  1  FAILED         4.0 s  CARD_DECLINED" in seen
    assert "Traceback of attempt 1" in seen
    assert "Declined: no funds" in seen
    assert "WARNING shop: order 40: no funds" in seen
    assert copied["row"]["kwargs"] == '{"order": 40}'
    assert copied["info"]["attempts"][0]["error_code"] == "CARD_DECLINED"
    assert copied["logs"][0]["attempt"] == 1


async def test_what_a_task_calls_secret_is_masked(shop: Shop) -> None:
    app = Horsies(shop.url)

    @app.task("charge_card")
    async def charge_card(order: Annotated[int, Secret]) -> TaskResult[None, TaskError]:
        return TaskResult(ok=None)

    async with viewer(app) as pilot:
        await press(pilot, "3")
        await search(pilot, "0028")
        top = await press(pilot, "enter", "y")
        seen, copied = text_of(pilot), json.loads(top.clipboard)

    assert copied["row"]["kwargs"] == '{"order":"•••"}'
    assert '"order": 40' not in seen


async def test_workflows_are_toggled_found_and_drawn_with_their_results(shop: Shop) -> None:
    async with viewer(shop.url, size=SMALL) as pilot:
        top = await press(pilot, "4")
        view = top.view
        assert isinstance(view, Workflows)
        seen, found = text_of(pilot), {}
        await press(pilot, "n")
        states = set[str]()
        for key in "puofhc":
            await press(pilot, key)
            now = {row.status for row in view.listed.values()}
            found[key], states = now - states, now
        await search(pilot, "NIGHTLY")
        sought = [row.name for row in view.listed.values()]
        await press(pilot, "enter", "y")
        drawn, is_open = text_of(pilot), isinstance(top.screen, WorkflowScreen)
        copied = json.loads(top.clipboard)

    assert (sought, is_open) == (["nightly_report"], True)
    assert "├─◌  count   queued in default" in drawn
    assert "○─╯  mail    waits for count, render" in drawn
    assert "load  [1, 2, 3]" in drawn
    assert copied["overview"]["workflow"]["status"] == "RUNNING"
    assert copied["results"] == {"load": "[1, 2, 3]"}
    assert "nightly_report    RUNNING        4  █▎     25 %  2 min 10 s" in seen
    assert found == {
        "p": {"PENDING"},
        "u": {"RUNNING"},
        "o": {"COMPLETED"},
        "f": {"FAILED"},
        "h": {"PAUSED"},
        "c": {"CANCELLED"},
    }


async def test_keys_lead_from_anywhere_to_maintenance_and_to_help(shop: Shop) -> None:
    async with viewer(shop.url) as pilot:
        top = await press(pilot, "3", "enter", "2")
        shown = [top.view.id]
        await press(pilot, "5")
        shown, seen = [*shown, top.view.id], text_of(pilot)
        await press(pilot, "1")
        shown.append(top.view.id)
        await press(pilot, "question_mark")
        is_help, told = isinstance(top.screen, Help), text_of(pilot)
        await pilot.press("escape")

        assert not isinstance(top.screen, Help)
        assert shown == ["workers", "maintenance", "dashboard"]
    assert is_help
    assert "p c u o f        toggle pending, claimed, running, completed, failed" in told
    assert "under 1 h          237  ██████" in seen
    assert "1 of 2 workers of the last day have no snapshot for 30 s" in seen
    assert "decafbad  host-b  815  silent  2 min 2 s ago      1  default, photos" in seen


async def test_eighty_columns_have_room_for_all_keys_and_the_clock(shop: Shop) -> None:
    async with viewer(shop.url, size=SMALL) as pilot:
        for key in "12345":
            await press(pilot, key)
            bar, *_, footer = text_of(pilot).splitlines()

            assert re.search(r"5 Maintenance .*● \d\d:\d\d:\d\d$", bar)
            assert footer.endswith("t Theme q Quit")


async def test_themes_go_round_until_one_quits(shop: Shop) -> None:
    async with viewer(shop.url, is_dark=False) as pilot:
        top = top_of(pilot)
        seen = [top.theme]
        for _ in NAMES[1:]:
            await pilot.press("t")
            seen.append(top.theme)
        await pilot.press("q")

        assert not top.is_running
    assert seen[0] == "horsies-light"
    assert sorted(seen) == sorted(NAMES)
