"""Hooks and reports that must not type-check: exactly the lines marked `# refused` are errors."""

from horsies import CurrentTask, FailedEvent, Horsies, SucceededEvent, current_task

app = Horsies()


def on_failed(event: FailedEvent) -> None:
    print(event.error)


def without_task(call_next: object) -> None: ...


app.on("faild")  # refused
app.on("succeeded")(on_failed)  # refused
app.middleware(without_task)  # refused
current_task().progress("half")  # refused
current_task().progress(1, 2, 3)  # refused
current_task().queue = "mail"  # refused


def read(event: SucceededEvent, task: CurrentTask) -> None:
    print(event.error)  # refused
    print(task.queue_name)  # refused
