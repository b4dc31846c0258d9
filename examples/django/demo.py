"""`make demo-django`: migrate, start a worker and the server, order something, show its status.

With --once everything ends after the first order; otherwise the server runs until Ctrl-C.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

from horsies import embedded_postgres

HERE = Path(__file__).parent
PORT = int(os.environ.get("PORT", "8000"))


def manage(*words: str) -> list[str]:
    return [sys.executable, str(HERE / "manage.py"), *words]


def order(address: str) -> dict[str, Any]:
    """Order as a browser does, and follow the task's status to its end."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    base = f"http://127.0.0.1:{PORT}"
    page = opener.open(f"{base}/").read().decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert token is not None
    form = {"csrfmiddlewaretoken": token[1], "number": "42", "address": address}
    answer = opener.open(f"{base}/", urllib.parse.urlencode(form).encode())
    while True:
        status: dict[str, Any] = json.load(opener.open(f"{answer.url}?type=json"))
        if status["status"] in ("Completed", "Failed"):
            return status
        time.sleep(0.2)


def wait_for_server() -> None:
    for _ in range(150):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/").read()
        except OSError:
            time.sleep(0.2)
        else:
            return
    sys.exit("the server did not start")


def main() -> None:
    """Run the demo on an embedded server in a directory of its own."""
    directory = Path(tempfile.mkdtemp(prefix="horsies-django-"))
    directory.chmod(0o755)
    server = embedded_postgres.acquire(directory, quiet=True)
    os.environ.update(DATABASE_URL=server.url, DJANGO_SETTINGS_MODULE="settings")
    subprocess.run(manage("migrate", "-v0"), check=True)
    os.environ.update(DJANGO_SUPERUSER_PASSWORD="admin")
    subprocess.run(
        manage("createsuperuser", "--noinput", "--username=admin", "--email=a@example.org"),
        check=True,
        stdout=subprocess.DEVNULL,
    )
    processes = [
        subprocess.Popen(manage("horsies_worker", "--no-reload", "--processes", "2")),
        subprocess.Popen(manage("runserver", "--noreload", str(PORT)), stderr=subprocess.DEVNULL),
    ]
    try:
        wait_for_server()
        print(json.dumps(order("jockey@example.org"), indent=2), flush=True)
        if "--once" in sys.argv:
            return
        print(f"\nopen http://127.0.0.1:{PORT}/ and /admin/ (admin, admin); Ctrl-C ends it")
        processes[1].wait()
    except KeyboardInterrupt:
        pass
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()
        server.release()
        embedded_postgres.stop(directory)


if __name__ == "__main__":
    main()
