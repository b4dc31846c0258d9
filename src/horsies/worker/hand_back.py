"""Gives work back that waits in this worker while another might begin it.

Tasks are taken ahead only if they are known to be short; one may turn out long all the same.
"""

from horsies.worker.dispatcher import Dispatcher
from horsies.worker.lanes import HORIZON_S

# Far longer than a short task waits behind others, also on a busy machine.
_LATE_S = 5 * HORIZON_S


class HandBack:
    """Looks at what waits behind busy slots."""

    name = "hand back"
    interval_s = 2 * HORIZON_S

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    async def run_once(self) -> int:
        """Look once; return how many tasks went back unbegun."""
        return self._dispatcher.hand_back_waiting(longer_than_s=_LATE_S)
