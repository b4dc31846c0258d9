"""Every link of every page leads somewhere, down to the heading it names."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
EXAMPLES = ROOT / "examples"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(EXAMPLES.glob("*.md")), *sorted(DOCS.rglob("*.md"))]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def text_of(page: Path) -> str:
    """The page without its code blocks, in which brackets are no links and # is no heading."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def links_of(page: Path) -> list[str]:
    """Links into this repository; others would need a network to be checked."""
    found = re.findall(r"\]\(([^)\s]+)\)", text_of(page))
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def anchors_of(page: Path) -> set[str]:
    """Headings as GitHub names them; a repeated heading would get a number, which we avoid."""
    headings = re.findall(r"^#+ (.+)$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def leads_somewhere(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    return target.exists() and (not anchor or anchor in anchors_of(target))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    assert [link for link in links_of(page) if not leads_somewhere(page, link)] == []


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=name_of)
def test_docs_are_complete_without_the_repository(page: Path) -> None:
    """`horsies get-docs` writes this directory and nothing beside it."""
    targets = [page.parent / link.partition("#")[0] for link in links_of(page)]

    assert [target for target in targets if not target.resolve().is_relative_to(DOCS)] == []


def test_every_page_can_be_reached_from_the_index() -> None:
    reached = {DOCS / "README.md"}
    to_follow = list(reached)
    while to_follow:
        page = to_follow.pop()
        targets = {(page.parent / link.partition("#")[0]).resolve() for link in links_of(page)}
        fresh = {target for target in targets if target.suffix == ".md"} - reached
        reached |= fresh
        to_follow += fresh

    assert [name_of(page) for page in sorted(DOCS.rglob("*.md")) if page not in reached] == []
