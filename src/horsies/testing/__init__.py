"""What you need in your own tests: tasks that run at once or by hand, and sends to look at.

The pytest plugin offers it as fixtures (docs/how-to/test-your-tasks.md).
"""

from horsies.testing.brokers import inline, recorded
from horsies.testing.crashes import crash
from horsies.testing.sends import Sends, Sent
from horsies.testing.worker import Clock, ManualWorker, manual

__all__ = ["Clock", "ManualWorker", "Sends", "Sent", "crash", "inline", "manual", "recorded"]
