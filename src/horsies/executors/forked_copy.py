"""End the copies of our processes that user code makes with os.fork.

A copy has our sockets and our call stack. Once it leaves user code it would go on as a second
worker or child: claim tasks, take frames, answer calls that are not its own.
"""

import asyncio
import os
import selectors
import weakref


def end_forked_copy(own_pid: int, *, is_ok: bool = True) -> None:
    """End this process, without exit hooks, unless it is the process `own_pid` itself."""
    if os.getpid() != own_pid:
        os._exit(0 if is_ok else 1)


def end_forked_copies_of(loop: asyncio.AbstractEventLoop) -> None:
    """End every later copy of this process as soon as it comes back to `loop`.

    A process of `multiprocessing` or `subprocess` never does, so it goes on.
    """
    loop_reference = weakref.ref(loop)

    def prepare_copy() -> None:
        loop = loop_reference()
        if isinstance(loop, asyncio.SelectorEventLoop):
            # asyncio has no public way to run something before all that is due already, nor to
            # part with the epoll instance, through which the copy would change our registrations.
            ready, selector = "_ready", "_selector"
            getattr(loop, ready).appendleft(asyncio.Handle(os._exit, (1,), loop))
            setattr(loop, selector, selectors.DefaultSelector())

    os.register_at_fork(after_in_child=prepare_copy)
