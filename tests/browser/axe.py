"""What axe-core, which comes with a package of PyPI, objects to on a page."""

from __future__ import annotations

import functools
from importlib.resources import files

from playwright.sync_api import Page

_GRAVE = ("serious", "critical")
_RUN = """async () => {
    const found = await axe.run(document, {resultTypes: ["violations"]});
    return found.violations.map(each => ({
        id: each.id, impact: each.impact, where: each.nodes.slice(0, 3).map(node => [
            node.target.join(" "), node.any.concat(node.all).map(check => check.message).join("; ").slice(0, 200)]),
    }));
}"""


@functools.cache
def _script() -> str:
    return files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


def grave_faults(page: Page) -> list[str]:
    """Whatever keeps people who use a screen reader, a keyboard or large print from using a page."""
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(_script())  # as the debugger does it, which the page's own policy does not forbid
    found = page.evaluate(_RUN)
    return [f"{each['impact']} {each['id']}: {each['where']}" for each in found if each["impact"] in _GRAVE]
