"""The project of a monitor in Label Studio: found again before it is made, and kept up to date while it is opmon's."""

from __future__ import annotations

import hashlib
import html
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token

from opmon.errors import InputError, NotFoundError
from opmon.labels.studio.configuration import is_ours, labelling_configuration, shown_in
from opmon.types import Guide, Json
from opmon_label_studio.client import Client
from opmon_label_studio.reading import mapping, number, objects, text

_LONGEST_TITLE = 50
_FIELDS = "id,title,label_config,expert_instruction,maximum_annotations,task_number,num_tasks_with_annotations"


@dataclass(frozen=True, slots=True)
class Project:
    """A project as it stands in Label Studio."""

    id: int
    title: str
    configuration: str
    instructions: str
    needs: int
    tasks: int
    answered: int

    @classmethod
    def of(cls, found: Mapping[str, Json]) -> Project:
        """From what the API answers."""
        return cls(
            number(found.get("id")),
            text(found.get("title")),
            text(found.get("label_config")),
            text(found.get("expert_instruction")),
            number(found.get("maximum_annotations") or 1),
            number(found.get("task_number") or 0),
            number(found.get("num_tasks_with_annotations") or 0),
        )

    @property
    def shown(self) -> frozenset[str]:
        """Which keys of a task's data annotators see."""
        return shown_in(self.configuration)


def title_of(monitor: str) -> str:
    """What the project of a monitor is called; Label Studio's titles have at most 50 characters.

    >>> title_of("pets"), len(title_of("a monitor with " + "very " * 20 + "long name"))
    ('opmon: pets', 50)
    """
    title = f"opmon: {monitor}"
    if len(title) <= _LONGEST_TITLE:
        return title
    return f"{title[: _LONGEST_TITLE - 9]}-{hashlib.sha256(monitor.encode()).hexdigest()[:8]}"


def find(client: Client, wanted: int | str) -> Project | None:
    """The project of this number or title, None where there is none; of several with one title, the oldest."""
    if isinstance(wanted, int):
        try:
            return Project.of(mapping(client.get(f"/api/projects/{wanted}/")))
        except NotFoundError:
            return None
    alike = (each for each in _listed(client, title=wanted) if each.get("title") == wanted)
    return min((Project.of(each) for each in alike), key=lambda project: project.id, default=None)


def numbers(client: Client) -> list[int]:
    """The numbers of all projects that the token may see."""
    return [number(each.get("id")) for each in _listed(client)]


def _listed(client: Client, **query: object) -> Iterator[Mapping[str, Json]]:
    page: int | None = 1
    while page is not None:
        found = mapping(client.get("/api/projects/", page=page, page_size=100, include=_FIELDS, **query))
        yield from objects(found.get("results"))
        page = page + 1 if found.get("next") else None


def make(
    client: Client, title: str, monitor: str, guide: Guide, shown: Collection[str], classes: Mapping[str, str]
) -> Project:
    """Make the project for tasks that show these keys."""
    told: dict[str, Json] = {
        "title": title,
        "description": f"Tasks of opmon's monitor {monitor}: opmon puts them here and reads the answers.",
        "sampling": "Sequential sampling",  # the order of the tasks is already random
        "skip_queue": "REQUEUE_FOR_OTHERS",
        "show_skip_button": True,
        "enable_empty_annotation": False,
        "show_collab_predictions": False,
        **_wanted(guide, shown, classes),
    }
    return Project.of(mapping(client.post("/api/projects/", told)))


def kept_up(
    client: Client, project: Project, guide: Guide, shown: Collection[str], classes: Mapping[str, str]
) -> Project:
    """The project with what annotators are to see and be told now; one that somebody configured stays as it is."""
    if not is_ours(project.configuration):
        return project
    wanted = _wanted(guide, project.shown | set(shown) if project.shown else shown, classes)
    have = {
        "label_config": project.configuration,
        "expert_instruction": project.instructions,
        "maximum_annotations": project.needs,
    }
    changed = {name: wanted[name] for name in have if wanted[name] != have[name]}
    if not changed:
        return project
    if "expert_instruction" in changed:
        changed["show_instruction"] = wanted["show_instruction"]
    try:
        return Project.of(mapping(client.patch(f"/api/projects/{project.id}/", changed)))
    except InputError as exc:
        raise InputError(
            f"the project {project.id} {project.title!r} cannot be changed to what is asked now: {exc}. Name another "
            "project in labels.provider.project: the open tasks go there"
        ) from exc


def instructions(guide: Guide, classes: Mapping[str, str]) -> str:
    """The guidelines, and what the classes mean, as HTML; markup in them is shown as text.

    >>> instructions(Guide(guidelines="Look *twice* <b>."), {"cat": "of any age", "dog": ""})
    '<p>Look <em>twice</em> &lt;b&gt;.</p>\\n<p><b>cat</b>: of any age</p>'
    """
    rendered = _rendered(guide.guidelines)
    described = [f"<b>{html.escape(name)}</b>: {html.escape(about)}" for name, about in classes.items() if about]
    return rendered + (f"<p>{'<br/>'.join(described)}</p>" if described else "")


def _rendered(markdown: str) -> str:
    """Markdown as HTML, with the signs of lists as text: Label Studio's style sheet takes its own ones away.

    >>> _rendered("3. one\\n4. two")
    '<ol start="3">\\n<li>3. one</li>\\n<li>4. two</li>\\n</ol>\\n'
    """
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(markdown)
    sign = ""
    for token in tokens:
        if token.type == "list_item_open":
            sign = f"{token.info}{token.markup} " if token.info else "• "
        elif token.type == "inline" and token.children is not None:
            token.children.insert(0, Token("text", "", 0, content=sign))
            sign = ""
    return str(parser.renderer.render(tokens, parser.options, {}))


def _wanted(guide: Guide, shown: Collection[str], classes: Mapping[str, str]) -> dict[str, Json]:
    told = instructions(guide, classes)
    return {
        "label_config": labelling_configuration(shown, guide, classes),
        "expert_instruction": told,
        "show_instruction": bool(told),
        "maximum_annotations": guide.needs,
    }
