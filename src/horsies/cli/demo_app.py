"""The app of `horsies demo`: an ordinary app whose queue no other worker serves."""

import asyncio
import hashlib
import os
import time
from datetime import UTC, datetime

from horsies import (
    AppConfig,
    CustomQueueConfig,
    Horsies,
    QueueMode,
    RetryPolicy,
    TaskError,
    TaskResult,
)

QUEUE = "horsies_demo"

app = Horsies(
    AppConfig(
        queue_mode=QueueMode.CUSTOM,
        custom_queues=[CustomQueueConfig(name=QUEUE, max_concurrency=None)],
    )
)


class CardDeclinedError(Exception):
    """The bank said no."""


@app.task("fetch_price", queue_name=QUEUE)
async def fetch_price(item: int) -> TaskResult[int, TaskError]:
    """Wait for another service; one process runs a hundred of these at once."""
    await asyncio.sleep(0.05)
    return TaskResult(ok=1_000 + item)


@app.task("make_thumbnail", queue_name=QUEUE)
def make_thumbnail(image: int) -> TaskResult[str, TaskError]:
    """Compute something in a child process."""
    picture = hashlib.pbkdf2_hmac("sha256", b"pixels", image.to_bytes(4, "big"), 5_000)
    return TaskResult(ok=picture.hex())


@app.task("write_receipt", queue_name=QUEUE, execution="blocking")
def write_receipt(order: int) -> TaskResult[str, TaskError]:
    """Call blocking code in a thread."""
    time.sleep(0.01)
    return TaskResult(ok=f"receipt-{order}.txt")


@app.task(
    "ask_partner",
    queue_name=QUEUE,
    retry_policy=RetryPolicy.fixed([1, 1, 1], auto_retry_for=["PARTNER_DOWN"], jitter=False),
)
async def ask_partner(order: int, up_at: datetime) -> TaskResult[str, TaskError]:
    """Call a service that is down until `up_at`; return the error as a value."""
    if datetime.now(UTC) < up_at:
        return TaskResult(err=TaskError(error_code="PARTNER_DOWN", message="503 from the partner"))
    return TaskResult(ok=f"order {order} confirmed")


@app.task(
    "charge_card",
    queue_name=QUEUE,
    exception_mapper={CardDeclinedError: "CARD_DECLINED"},
    retry_policy=RetryPolicy.fixed([1, 1], auto_retry_for=["CARD_DECLINED"], jitter=False),
)
def charge_card(order: int, cents: int) -> TaskResult[None, TaskError]:
    """Fail each time with an exception that a mapper turns into an error code."""
    raise CardDeclinedError(f"the bank declined {cents / 100:.2f} for order {order}")


@app.task("crash_child", queue_name=QUEUE)
def crash_child() -> TaskResult[None, TaskError]:
    """End the whole child process, as a segmentation fault would."""
    os._exit(13)


@app.task("send_reminder", queue_name=QUEUE)
async def send_reminder(order: int) -> TaskResult[str, TaskError]:
    """Run later, and only once per unique key."""
    return TaskResult(ok=f"reminded of order {order}")
