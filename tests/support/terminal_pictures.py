"""Pictures of `horsies top` for the documentation: `python -m support.terminal_pictures DIRECTORY`.

They show the shop of `plant_stable` on a fixed clock, on a throwaway server.
"""

import asyncio
import os
import re
import sys
import time
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from support import cluster
from support.database import NOW, connect
from support.scenes import plant_stable
from support.terminal import press, viewer

# Textual would have readers of our documentation fetch a font from elsewhere.
_FONT = re.compile(r"\s*@font-face \{[^}]*\}")
# file name -> (is_dark, size, keys)
PICTURES: dict[str, tuple[bool, tuple[int, int], list[str]]] = {
    "top-dashboard.svg": (True, (120, 32), []),
    "top-workers.svg": (False, (120, 32), ["2"]),
}


def take_all(directory: Path, pictures: dict[str, tuple[bool, tuple[int, int], list[str]]]) -> None:
    """Write every picture."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    cluster.start_run()
    try:
        with (
            cluster.run_server() as server,
            server.temporary_database(template=cluster.migrated_template(server)) as url,
        ):
            stop_clock(server.url, url)
            db = connect(url)
            plant_stable(db)
            db.connection.close()
            for name, (is_dark, size, keys) in pictures.items():
                picture = asyncio.run(take(url, size, keys, is_dark=is_dark))
                (directory / name).write_text(picture)
    finally:
        cluster.end_run()


def stop_clock(server_url: str, database_url: str) -> None:
    """Let all sessions of a database see the tests' "now"."""
    name = conninfo_to_dict(database_url)["dbname"]
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"alter database \"{name}\" set horsies.now = '{NOW.isoformat()}'")


async def take(url: str, size: tuple[int, int], keys: list[str], *, is_dark: bool) -> str:
    """What a terminal of this size shows after these keys, as SVG."""
    async with viewer(url, size=size, is_dark=is_dark) as pilot:
        await press(pilot, *keys)
        picture = pilot.app.export_screenshot(title="horsies top")
    return _FONT.sub("", picture)


if __name__ == "__main__":
    take_all(Path(sys.argv[1]), PICTURES)
