"""The tasks of the sample shop."""

import time

from horsies.contrib.django import task


@task(max_retries=2, timeout=60)
def send_receipt(order_number: int, address: str) -> str:
    """Write a receipt; one in ten addresses is wrong."""
    print(f"writing the receipt of order {order_number}")
    time.sleep(0.5)
    if "@" not in address:
        raise ValueError(f"{address!r} is no address")
    return f"receipt {order_number} for {address}"
