"""What a worker holds at any moment, for the parts that must look at all of it."""

from dataclasses import dataclass

from horsies.worker.buffer import Buffer
from horsies.worker.completer import Completer
from horsies.worker.dispatcher import Dispatcher


@dataclass(frozen=True, slots=True)
class Holdings:
    """Claims that wait for a slot, tasks in executors, outcomes that wait for their write."""

    buffer: Buffer
    dispatcher: Dispatcher
    completer: Completer

    def task_ids(self) -> list[str]:
        return [*self.dispatcher.running, *self.completer.held_ids(), *self.buffer.tasks]
