"""Every Python example of the guides and the README runs as printed, against a real worker."""

import configparser
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import psycopg
import pytest
import yaml

from horsies import embedded_postgres
from horsies.cli.main import horsies
from support.cluster import make_directory, remove_directory
from support.command import run_horsies
from support.pages import DOCS, ROOT, shown_in
from support.programs import run_python, wait_for_worker, worker

# The contract also shows what is not built yet; decisions show no programs.
NOT_RUN = (DOCS / "contract", DOCS / "decisions")


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


def written_pages() -> list[Path]:
    return sorted(page for page in DOCS.rglob("*.md") if page.parent not in NOT_RUN)


def guides_with_examples() -> list[Path]:
    pages = written_pages()
    pages.remove(DOCS / "how-to" / "django.md")  # tests/django/test_guide.py runs it
    pages.remove(DOCS / "quickstart.md")  # test_quickstart.py follows it
    return [page for page in pages if blocks(page)]


def write_program(page: Path, directory: Path) -> None:
    """Blocks that open with a file's name make up that file; the others make up script.py."""
    (directory / "pyproject.toml").touch()
    for block in blocks(page):
        name = re.match(r"# (\w+\.py)\n", block)
        with (directory / (name[1] if name else "script.py")).open("a") as file:
            file.write(block + "\n")


@pytest.mark.slow
@pytest.mark.parametrize("page", guides_with_examples(), ids=lambda page: str(page.stem))
def test_guide_examples_run(page: Path, tmp_path: Path, database_url: str) -> None:
    write_program(page, tmp_path)

    with worker(tmp_path, "shop:app", HORSIES_DATABASE_URL=database_url):
        wait_for_worker(database_url)
        finished = run_python(tmp_path, "script.py", HORSIES_DATABASE_URL=database_url)
    name = str(page.relative_to(DOCS))
    for screen in shown_in(name, "shown by the command"):
        shown = show_workflow(screen.split("  ")[0], tmp_path, database_url)
        assert steady(screen) == steady(shown)

    assert finished.returncode == 0, finished.stderr
    for printed in shown_in(name, "printed by the script"):
        assert printed in finished.stdout
    log = steady((tmp_path / "log.txt").read_text())
    for logged in shown_in(name, "logged by the worker"):
        assert [line for line in logged.splitlines() if steady(line) not in log] == []


SHOWN = re.compile(r"^(?:<!-- ([^\n]*) -->\n)?```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BY_GUIDE = ("printed by the script", "logged by the worker", "shown by the command")


def is_produced(page: Path, source: str, kind: str, text: str) -> bool:
    """Whether a test produces what a block shows; a block of commands shows nothing."""
    if kind not in ("text", "console", ""):
        return True  # a program or a file
    if kind == "console":  # test_screens.py
        return page.name == "operate.md"
    if text.startswith("error["):  # test_the_quoted_error_is_what_check_says
        return page.name == "handle-errors.md"
    if kind == "" or page.name == "quickstart.md":  # test_quickstart.py
        return not text.startswith("$ ")
    test = source.rpartition(" ")[2]
    names_page = test.endswith(".py") and page.name in (ROOT / test).read_text()
    return names_page or (source in BY_GUIDE and page in guides_with_examples())


@pytest.mark.parametrize("page", [ROOT / "README.md", *written_pages()], ids=lambda page: page.name)
def test_every_shown_message_is_produced_by_a_test(page: Path) -> None:
    found = SHOWN.findall(page.read_text())

    assert [text for source, kind, text in found if not is_produced(page, source, kind, text)] == []


def show_workflow(name: str, project: Path, url: str) -> str:
    """The screen of the workflow with this name."""
    environment = {"HORSIES_DATABASE_URL": url, "PYTHONIOENCODING": "utf-8", "COLUMNS": "118"}
    found = ("workflow", "list", "shop:app", "--name", name, "--json")
    listed = json.loads(run_horsies(project, *found, **environment).stdout)
    workflow_id = listed["workflows"][0]["id"]
    shown = run_horsies(project, "workflow", "show", "shop:app", workflow_id, **environment)
    return "\n".join(line.rstrip() for line in shown.stdout.splitlines()).strip()


def steady(text: str) -> str:
    """The text without what differs from run to run: ids, times and durations."""
    text = re.sub(r"\b[0-9a-f-]{36}\b|\b[0-9a-f]{8}\b", "ID", text)
    text = re.sub(r"\d\d:\d\d:\d\d", "TIME", text)
    return re.sub(r"\b[\d.e+-]+ m?s\b", "N ms", text)


@pytest.mark.slow
def test_the_tests_of_the_guide_pass(tmp_path: Path) -> None:
    write_program(DOCS / "how-to" / "test-your-tasks.md", tmp_path)

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip

    assert "4 passed" in done.stdout, done.stdout


def commands(page: Path) -> list[list[str]]:
    """The commands of ours in the blocks of a page, as a shell or a list of words has them."""
    blocks_of_page = re.findall(r"^```\w*\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    names = re.compile(r"horsies\W+(?=(?:worker|ping|migrate|check|requeue)\b)")
    return [
        re.findall(r'[^\s",\[\]{}]+', names.split(line)[1])
        for block in blocks_of_page
        for line in block.splitlines()
        if names.search(line)
    ]


@pytest.mark.parametrize(
    "page", ["deploy.md", "run-workers.md"], ids=lambda name: name.removesuffix(".md")
)
def test_commands_of_the_guides_can_be_typed(page: str) -> None:
    found = commands(DOCS / "how-to" / page)

    assert found
    for name, *rest in found:
        command = horsies.get_command(click.Context(horsies), name)
        assert command is not None
        command.make_context(name, rest)


def fenced(page: str, kind: str) -> list[str]:
    text = (DOCS / "how-to" / page).read_text()
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def test_the_deployments_of_the_guide_fit_together() -> None:
    """Supervisors ask what the worker serves, and wait longer than it drains."""
    (unit,), (docker,), (pod,) = (
        fenced("deploy.md", kind) for kind in ("ini", "dockerfile", "yaml")
    )
    service = configparser.ConfigParser()
    service.read_string(unit)
    spec = yaml.safe_load(pod)["spec"]
    (worker,) = spec["containers"]
    probes = [worker[name]["httpGet"] for name in worker if name.endswith("Probe")]
    program, place = re.findall(r"HEALTHCHECK .* -c \"(.*?\'http:\S+?(:\d+/\S+?)\'.*)\"", docker)[0]

    def limit(command: str) -> int:
        return int(re.findall(r"--drain-timeout\W+(\d+)", command)[0])

    assert limit(unit) < int(service["Service"]["TimeoutStopSec"])
    assert limit(pod) < spec["terminationGracePeriodSeconds"]
    assert len(probes) == 3
    served = {f":{probe['port']}{probe['path']}" for probe in probes} | {place}
    assert served == {":9102/health/live", ":9102/health/ready"}
    assert '"--health-port", "9102"' in docker
    assert '"--health-port", "9102"' in pod
    compile(program, "HEALTHCHECK", "exec")


@pytest.mark.parametrize("page", ["capture-output.md", "monitor.md"])
def test_queries_of_the_guides_run(page: str, database_url: str) -> None:
    queries = fenced(page, "sql")

    assert queries
    with psycopg.connect(database_url) as connection:
        for query in queries:
            connection.execute(query.encode())


def option_names(command: click.Command, context: click.Context) -> Iterator[str]:
    """The long names of all options of a command and of those below it."""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from option_names(found, context)
        return
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            yield max([*parameter.opts, *parameter.secondary_opts], key=len)


def test_the_reference_names_every_option() -> None:
    reference = (DOCS / "reference" / "cli.md").read_text()

    named = set(option_names(horsies, click.Context(horsies)))

    assert len(named) > 50
    assert sorted(name for name in named if name not in reference) == []


def test_the_quoted_error_is_what_check_says(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "shop.py").write_text(
        "from horsies import Horsies\n\napp = Horsies()\n\n"
        '@app.task("pay")\ndef pay(cents: int):\n    return cents\n'
    )
    page = (DOCS / "how-to" / "handle-errors.md").read_text()
    (quote,) = re.findall(r"^```\n(error\[HRS-100\].*?)^```$", page, re.DOTALL | re.MULTILINE)

    url = "postgresql://nobody@127.0.0.1:1/nowhere"
    done = run_horsies(tmp_path, "check", "shop:app", HORSIES_DATABASE_URL=url)

    assert done.returncode == 1
    assert quote.rstrip() in done.stderr.replace(f"{tmp_path}/", "")


@pytest.fixture
def project() -> Iterator[Path]:
    """A directory that the user of an embedded server can reach."""
    directory = make_directory()
    yield directory
    embedded_postgres.stop(directory)
    remove_directory(directory)


@pytest.mark.slow
def test_the_readme_example_prints_what_it_says(project: Path) -> None:
    example, _ = blocks(ROOT / "README.md")
    (project / "shop.py").write_text(example)

    with worker(project, "shop.py", HORSIES_EMBEDDED="1"):
        finished = run_python(project, "shop.py")

    assert len(example.splitlines()) <= 20
    assert finished.stdout == "invoice-42.pdf\nNO_SUCH_ORDER\n", finished.stderr


@pytest.mark.slow
def test_the_readme_workflow_prints_what_it_says(project: Path) -> None:
    _, example = blocks(ROOT / "README.md")
    (project / "daily.py").write_text(example)

    with worker(project, "daily.py", HORSIES_EMBEDDED="1"):
        finished = run_python(project, "daily.py")

    assert finished.stdout == "3 orders, 237.0 EUR\n", finished.stderr
