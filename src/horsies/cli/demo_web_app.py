"""The app of `horsies demo --web`: a small shop that is busy with tasks of every kind."""

import asyncio
import hashlib
import logging
import os
import random
import time
from datetime import UTC, datetime, timedelta
from datetime import time as clock

from horsies import (
    AppConfig,
    CronSchedule,
    CustomQueueConfig,
    DailySchedule,
    Horsies,
    IntervalSchedule,
    Note,
    QueueMode,
    RetryPolicy,
    ScheduleConfig,
    TaskError,
    TaskResult,
    TaskSchedule,
    WorkflowSpec,
    current_task,
    from_node,
)

_logger = logging.getLogger("shop")
_EXPIRED_CARD = "tok_0002"

app = Horsies(
    AppConfig(
        queue_mode=QueueMode.CUSTOM,
        custom_queues=[
            CustomQueueConfig(name="web", max_concurrency=None, priority=1),
            CustomQueueConfig(name="payments", max_concurrency=None, priority=2),
            CustomQueueConfig(name="mail", max_concurrency=4, priority=5),
            CustomQueueConfig(name="reports", max_concurrency=2, priority=9),
            CustomQueueConfig(name="legacy", max_concurrency=1, priority=50),
        ],
        schedule=ScheduleConfig(
            schedules=[
                TaskSchedule(
                    name="refresh stock",
                    task_name="fetch_price",
                    kwargs={"item": 1},
                    pattern=IntervalSchedule(seconds=20),
                ),
                TaskSchedule(
                    name="daily report",
                    task_name="build_report",
                    kwargs={"day": "today", "pages": 5},
                    pattern=DailySchedule(time=clock(6)),
                    timezone="Europe/Berlin",
                ),
                TaskSchedule(
                    name="newsletter",
                    task_name="send_newsletter",
                    kwargs={"customer": 1, "template": "weekly"},
                    pattern=CronSchedule(expression="30 9 * * mon-fri"),
                ),
            ]
        ),
    )
)


class CardDeclinedError(Exception):
    """The bank said no."""


@app.task("fetch_price", queue_name="web")
async def fetch_price(item: int) -> TaskResult[dict[str, int | str], TaskError]:
    """Wait for another service."""
    await asyncio.sleep(random.uniform(0.02, 0.4))
    return TaskResult(ok={"item": item, "cents": 1_000 + item, "currency": "EUR"})


@app.task("make_thumbnail", queue_name="web")
def make_thumbnail(image: str, width: int = 320) -> TaskResult[str, TaskError]:
    """Compute something in a child process."""
    print(f"reading {image}")
    picture = hashlib.pbkdf2_hmac("sha256", image.encode(), b"pixels", 200 * width)
    print(f"wrote {width} pixels")
    return TaskResult(ok=picture.hex())


@app.task("write_receipt", queue_name="web", execution="blocking")
def write_receipt(order: int, address: str) -> TaskResult[str, TaskError]:
    """Call blocking code in a thread."""
    time.sleep(random.uniform(0.05, 0.3))
    return TaskResult(ok=f"receipt-{order}.pdf for {address}")


@app.task(
    "charge_card",
    queue_name="payments",
    exception_mapper={CardDeclinedError: "CARD_DECLINED"},
    retry_policy=RetryPolicy.fixed([5, 15], auto_retry_for=["CARD_DECLINED"], jitter=False),
)
def charge_card(order: int, cents: int, card_token: str) -> TaskResult[str, TaskError]:
    """Fail with an exception that a mapper turns into an error code."""
    _logger.info("charging %.2f EUR for order %d", cents / 100, order)
    if card_token == _EXPIRED_CARD:
        raise CardDeclinedError(f"the bank declined {cents / 100:.2f} EUR for order {order}")
    return TaskResult(ok=f"payment-{order}")


@app.task(
    "ask_partner",
    queue_name="payments",
    retry_policy=RetryPolicy.fixed([10, 30, 60], auto_retry_for=["PARTNER_DOWN"], jitter=False),
)
async def ask_partner(order: int) -> TaskResult[str, TaskError]:
    """Call a service that is often down; the error is a value."""
    if random.random() < 0.5:
        return TaskResult(err=TaskError(error_code="PARTNER_DOWN", message="503 from the partner"))
    return TaskResult(ok=f"order {order} confirmed")


@app.task("send_newsletter", queue_name="mail")
async def send_newsletter(customer: int, template: str) -> TaskResult[None, TaskError]:
    """Four at a time, by the cap of its queue."""
    await asyncio.sleep(random.uniform(1, 3))
    return TaskResult(ok=None)


@app.task("build_report", queue_name="reports")
async def build_report(day: str, pages: int) -> TaskResult[str, TaskError]:
    """Take long enough to be watched."""
    for page in range(1, pages + 1):
        current_task().progress(page, pages, f"page {page}")
        print(f"page {page} of {pages}")
        await asyncio.sleep(2)
    return TaskResult(ok=f"report-{day}.pdf")


@app.task("parse_import", queue_name="web")
def parse_import(row: int) -> TaskResult[int, TaskError]:
    """Stumble over rows that are malformed."""
    text = "12;horse" if row % 7 else "twelve;horse"
    return TaskResult(ok=int(text.partition(";")[0]) + row)


@app.task("crash_child", queue_name="web")
def crash_child() -> TaskResult[None, TaskError]:
    """End the whole child process, as a segmentation fault would."""
    os._exit(13)


@app.task("sync_old_system", queue_name="legacy")
async def sync_old_system(batch: int) -> TaskResult[int, TaskError]:
    """Wait in a queue that someone has paused."""
    return TaskResult(ok=batch)


@app.task("load_orders", queue_name="web")
async def load_orders(day: str) -> TaskResult[list[int], TaskError]:
    await asyncio.sleep(1)
    return TaskResult(ok=list(range(1, 13)))


@app.task("check_order", queue_name="web")
async def check_order(order: int) -> TaskResult[int, TaskError]:
    await asyncio.sleep(random.uniform(0.3, 2))
    if random.random() < 0.01:
        return TaskResult(err=TaskError(error_code="ORDER_BROKEN", message=f"order {order}"))
    return TaskResult(ok=order)


@app.task("sum_prices", queue_name="web")
async def sum_prices(orders: TaskResult[list[int], TaskError]) -> TaskResult[float, TaskError]:
    await asyncio.sleep(2)
    return TaskResult(ok=9.99 * len(orders.unwrap()))


@app.task("check_stock", queue_name="web")
async def check_stock(orders: TaskResult[list[int], TaskError]) -> TaskResult[int, TaskError]:
    await asyncio.sleep(3)
    return TaskResult(ok=len(orders.unwrap()))


@app.task("file_orders", queue_name="reports")
async def file_orders(
    total: TaskResult[float, TaskError], stock: TaskResult[int, TaskError]
) -> TaskResult[str, TaskError]:
    await asyncio.sleep(1)
    return TaskResult(ok=f"{stock.unwrap()} orders, {total.unwrap():.2f} EUR")


def import_orders() -> WorkflowSpec[str]:
    load = load_orders.node(node_id="load")(day="today")
    checked = check_order.node(node_id="check", each=from_node(load))()
    total = sum_prices.node(node_id="total")(orders=from_node(checked))
    stock = check_stock.node(node_id="stock")(orders=from_node(checked))
    filed = file_orders.node(node_id="file")(total=from_node(total), stock=from_node(stock))
    return app.workflow(
        "import orders",
        [load, checked, total, stock, filed],
        output=filed,
        definition_key="demo.import_orders.v1",
    )


def begin() -> None:
    """What is there before anything runs: a paused queue, and tasks that wait or expire in it."""
    note = Note(by="ann", reason="the old system moves house")
    app.operations.pause_queue("legacy", note=note).unwrap()
    sync_old_system.send_many([(batch,) for batch in range(6)]).unwrap()
    until = datetime.now(UTC) + timedelta(seconds=20)
    sync_old_system.with_options(good_until=until).send_many([(7,), (8,)]).unwrap()
    build_report.schedule(3_600, day="tomorrow", pages=3).unwrap()


def keep_busy(second: int) -> None:
    """What a second of business brings; errors of a stopping database are the caller's."""
    number = random.randrange(1_000, 10_000)
    fetch_price.send_many([(number + item,) for item in range(random.randrange(2, 9))]).unwrap()
    make_thumbnail.with_options(tags=["images"]).send(f"horse-{number}.jpg").unwrap()
    write_receipt.send(number, "jockey@example.org").unwrap()
    card = _EXPIRED_CARD if second % 4 == 1 else "tok_4242"
    charge_card.with_options(tags=["shop"]).send(number, 4_200, card_token=card).unwrap()
    if second % 3 == 0:
        ask_partner.send(number).unwrap()
        parse_import.send(number).unwrap()
    if second % 5 == 0:
        send_newsletter.send_many([(number + n, "spring") for n in range(9)]).unwrap()
    if second % 20 == 0:
        import_orders().start().unwrap()
        build_report.send("today", pages=random.randrange(4, 12)).unwrap()
    if second % 45 == 10:
        crash_child.send().unwrap()
