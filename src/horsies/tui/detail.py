"""The screens of one task and one workflow: told for people, and as JSON to copy."""

from abc import abstractmethod
from typing import ClassVar, TypeVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer

from horsies.app import Horsies
from horsies.drawing.json_text import to_json
from horsies.operations.detail import without_secrets
from horsies.result import Err
from horsies.tui.reading import value
from horsies.tui.stories import result_text, task_story, workflow_story
from horsies.tui.task_actions import TaskActions
from horsies.tui.texts import Said
from horsies.tui.themes import state_text
from horsies.tui.view import Act, Told, change
from horsies.tui.workflow_actions import WorkflowActions

T = TypeVar("T")


class Detail(Screen[None]):
    """A page about one thing: the story to the left, all of it as JSON to the right or below."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close", "Close"),
        Binding("y", "copy", "Copy JSON"),
    ]

    def __init__(self, app: Horsies, thing_id: str) -> None:
        super().__init__(classes="detail")
        self.horsies = app
        self.operations = app.operations
        self.thing_id = thing_id
        self.json = ""
        self._head = Said(id="head")
        self._told = Said(id="told")
        self._whole = Said(id="whole")
        self._story = VerticalScroll(self._told, id="story")

    def compose(self) -> ComposeResult:
        yield self._head
        yield self._story
        with VerticalScroll(id="json"):
            yield self._whole
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self._story.focus()

    @abstractmethod
    async def read(self) -> None:
        """Read and draw it anew; raises `ReadError`."""

    def draw(self, head: Text, told: Text, whole: object) -> None:
        self._head.say(head)
        self._told.say(told)
        text = to_json(whole)
        if text != self.json:
            self.json = text
            self._whole.say(Text(text))

    def state(self, status: str) -> Text:
        return state_text(status, is_dark=self.app.current_theme.dark)

    def change(self, question: str, act: Act[T], told: Told[T]) -> None:
        self.run_worker(change(self.app, question, act, told), name="action")

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self.json)
        self.notify("copied as JSON")

    def action_close(self) -> None:
        self.dismiss()


class TaskScreen(Detail):
    """One task: why it stands where it stands, timeline, attempts, output, the whole row."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("e", "requeue", "Enqueue"),
        Binding("g", "rerun", "Run again"),
        Binding("k", "cancel", "Cancel"),
    ]

    def __init__(self, app: Horsies, task_id: str) -> None:
        super().__init__(app, task_id)
        self._actions = TaskActions(app.operations, self.change)
        self._task_name, self._status = "task", ""

    async def read(self) -> None:
        task = value(await self.operations.task_async(self.thing_id))
        if task is None:
            self.draw(Text("This task was deleted."), Text(), None)
            return
        explained = value(await self.operations.why_async(self.thing_id))
        task = without_secrets(task, self.horsies.definition(task.info.task_name))
        info = task.info
        self._task_name, self._status = info.task_name, info.status.value
        head = Text.assemble((info.task_name, "bold"), f"  {info.task_id}  ")
        head.append_text(self.state(info.status.value))
        self.draw(head, task_story(task, explained), task)

    def action_requeue(self) -> None:
        self._actions.requeue(self.thing_id, self._task_name)

    def action_rerun(self) -> None:
        self._actions.rerun(self.thing_id, self._task_name)

    def action_cancel(self) -> None:
        self._actions.cancel(self.thing_id, self._task_name, self._status)


class WorkflowScreen(Detail):
    """One workflow: its graph with the state of each node, results, and all as JSON."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "steer", "Pause/resume"),
        Binding("k", "cancel", "Cancel"),
    ]

    def __init__(self, app: Horsies, workflow_id: str) -> None:
        super().__init__(app, workflow_id)
        self._actions = WorkflowActions(app.operations, self.change)
        self._workflow_name, self._status = "workflow", ""

    async def read(self) -> None:
        overview = value(await self.operations.workflow_async(self.thing_id, deep=True))
        if overview is None:
            self.draw(Text("This workflow was deleted."), Text(), None)
            return
        found = await self.horsies.workflow_handle(self.thing_id).results_async()
        results = {} if isinstance(found, Err) else found.ok_value
        workflow = overview.workflow
        self._workflow_name, self._status = workflow.name, workflow.status
        head = Text.assemble((workflow.name, "bold"), f"  {workflow.id}  ")
        head.append_text(self.state(workflow.status))
        width = max(self._story.size.width - 2, 40)
        told = {node: result_text(result) for node, result in results.items()}
        whole = {"overview": overview, "results": told}
        self.draw(head, workflow_story(overview, told, width), whole)

    def action_steer(self) -> None:
        self._actions.steer(self.thing_id, self._workflow_name, self._status)

    def action_cancel(self) -> None:
        self._actions.cancel(self.thing_id, self._workflow_name)
