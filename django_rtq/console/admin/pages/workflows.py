"""The pages of workflows: a list, one with its graph, cancel it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from django_rtq.console.acting.verb import Target
from django_rtq.console.admin.pages.page_admin import PageAdmin, place_of
from django_rtq.console.formatting import format_number
from django_rtq.console.reading.members import WorkflowStep
from django_rtq.console.reading.selection import Selection
from django_rtq.console.redaction import redacted
from django_rtq.console.render.html import Table, Viewer, buttons, cell_html, tables
from django_rtq.console.sanitize import clean_text
from django_rtq.console.subjects.jobs import JOB_LISTS, JOBS
from django_rtq.console.subjects.workflows import STATES, STEPS, WORKFLOWS, dead_url
from django_rtq.core.jobs.job import moment
from django_rtq.workflows.handle import StepProgress, Workflow, WorkflowProgress

MOST_DEAD = 10  # jobs that the page of a workflow shows
# Of the picture of its steps.
MOST = 60  # steps that are drawn
WIDTH, HEIGHT, GAP_X, GAP_Y = 170, 58, 50, 14
MARGIN = 4
MAX_NAME = 22
BAR = WIDTH - 16  # the width of the bar in a box


class WorkflowAdmin(PageAdmin):
    """The list of workflows, and a page for each."""

    sheet = WORKFLOWS

    def page(self, request: HttpRequest, name: str) -> HttpResponse:
        """Its steps, as a graph and as a table."""
        progress, viewer = _progress(request, name), self.viewer(request)
        steps = sorted(STEPS.of(progress), key=lambda row: not row.step.dead)
        context = {
            "title": _("Workflow %(name)s") % {"name": clean_text(progress.name, 100)},
            "breadcrumbs": [{"url": self.url("workflow_changelist"), "title": _("Workflows")}],
            "flow": progress,
            "state": cell_html(WORKFLOWS, "state", progress, self.url),
            "jobs_done": cell_html(WORKFLOWS, "jobs_done", progress, self.url),
            "made_at": moment(progress.made_ms),
            "ended_at": moment(progress.ended_ms),
            "graph": graph(progress.steps, lambda step: dead_url(WorkflowStep(progress, step), self.url))
            if progress.steps
            else "",
            "more_steps": max(0, len(progress.steps) - MOST),
            "tables": tables(STEPS, steps, viewer),
            "dead_tables": self._dead_jobs(request, progress, viewer),
            "jobs_url": self.url("job_search", query={"q": str(Selection(workflow=name))}),
            "buttons": buttons(WORKFLOWS, progress, viewer),
        }
        return self.render(request, "workflow.html", context)

    def target(self, request: HttpRequest, name: str) -> Target:
        return super().target(request, name)._replace(title=_progress(request, name).name)

    def _dead_jobs(self, request: HttpRequest, progress: WorkflowProgress, viewer: Viewer) -> Sequence[Table]:
        """A table of the newest dead jobs."""
        lists = [(queue, "dead") for queue in dict.fromkeys(step.queue for step in progress.steps if step.dead)]
        wanted = Selection(workflow=progress.id)
        walk = place_of(request).readers.search(lists, wanted, shown=redacted)
        found = walk.page("", MOST_DEAD).jobs if lists else ()
        return tables(JOBS, found, viewer, label=_("Dead letters"), titles=JOB_LISTS["dead"].titles)


def _progress(request: HttpRequest, name: str) -> WorkflowProgress:
    """Raises WorkflowNotFound."""
    return Workflow(name, backend=place_of(request).readers.place).progress()


# -- the picture of its steps: SVG, a box for each, from left to right, and lines to those that wait for it


def graph(steps: Sequence[StepProgress], url: Callable[[StepProgress], str]) -> SafeString:
    """The picture of the first steps. `url`: where the box of a step with dead jobs leads."""
    shown = steps[:MOST]
    columns = _columns(shown)
    places = {step.number: place for column in columns.values() for step, place in column}
    width = MARGIN * 2 + len(columns) * WIDTH + (len(columns) - 1) * GAP_X
    height = MARGIN * 2 + max(map(len, columns.values())) * (HEIGHT + GAP_Y) - GAP_Y
    edges = [_edge(places[before], places[step.number]) for step in shown for before in step.after if before in places]
    boxes = [_box(step, *places[step.number], url(step) if step.dead else "") for step in shown]
    return format_html(
        '<svg class="rtq-graph" viewBox="0 0 {} {}" width="{}" height="{}" role="group" aria-label="{}">{}</svg>',
        width, height, width, height, _("Steps and what they wait for"),
        SafeString("".join([*edges, *boxes])),  # each of them is safe
    )  # fmt: skip


def _columns(steps: Sequence[StepProgress]) -> Mapping[int, list[tuple[StepProgress, tuple[int, int]]]]:
    """By column, from the left: the steps with their places. A step is to the right of all that it waits for."""
    depth: dict[int, int] = {}
    columns: dict[int, list[tuple[StepProgress, tuple[int, int]]]] = {}
    known = {step.number for step in steps}
    order, left = [], list(steps)
    while left:  # a step waits for earlier ones, and for those that jobs have added
        ready = [step for step in left if not {before for before in step.after if before in known} - depth.keys()]
        for step in ready:
            depth[step.number] = 1 + max((depth[before] for before in step.after if before in depth), default=-1)
        order += ready
        left = [step for step in left if step.number not in depth]
    for step in order:
        column = depth[step.number]
        of_column = columns.setdefault(column, [])
        of_column.append((step, (MARGIN + column * (WIDTH + GAP_X), MARGIN + len(of_column) * (HEIGHT + GAP_Y))))
    return columns


def _edge(start: tuple[int, int], end: tuple[int, int]) -> SafeString:
    x, y, to_x, to_y = start[0] + WIDTH, start[1] + HEIGHT // 2, end[0], end[1] + HEIGHT // 2
    middle = (x + to_x) // 2
    return format_html(
        '<path class="rtq-edge" d="M{} {}C{} {} {} {} {} {}"/>', x, y, middle, y, middle, to_y, to_x, to_y
    )


def _box(step: StepProgress, x: int, y: int, url: str) -> SafeString:
    name = clean_text(step.task, 300).rpartition(".")[2]
    short = name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"
    numbers = _("%(done)s of %(size)s") % {"done": format_number(step.done), "size": format_number(step.size)}
    box = format_html(
        '<g class="rtq-node rtq-node-{}" transform="translate({} {})"><title>{}</title>'
        '<rect class="rtq-box" width="{}" height="{}" rx="6"/><text x="8" y="19">{}</text>'
        '<text class="rtq-small" x="8" y="36">{}</text>{}</g>',
        "bad" if step.dead else step.state, x, y, step_text(step), WIDTH, HEIGHT, short, numbers, _bar(step),
    )  # fmt: skip
    return format_html('<a href="{}">{}</a>', url, box) if url else box


def _bar(step: StepProgress) -> SafeString:
    left, bars = 0.0, []
    for css, number in (("good", step.done), ("bad", step.dead), ("soft", step.gone)):
        width = BAR * number / step.size if step.size else 0.0
        if width:
            bars.append(format_html('<rect class="rtq-bar-{}" x="{}" y="44" width="{}" height="6"/>',
                        css, f"{8 + left:.1f}", f"{width:.1f}"))  # fmt: skip
        left += width
    whole = format_html('<rect class="rtq-bar" x="8" y="44" width="{}" height="6"/>', BAR)
    return SafeString("".join([whole, *bars]))


def step_text(step: StepProgress) -> str:
    """A step in words."""
    text = _("%(task)s: %(state)s. Jobs: %(size)s, done: %(done)s, dead: %(dead)s, failed for good: %(gone)s")
    numbers = {name: format_number(getattr(step, name)) for name in ("size", "done", "dead", "gone")}
    state = STATES[step.state].title if step.state in STATES else clean_text(step.state, 20)
    return text % {"task": clean_text(step.task, 300), "state": state, **numbers}
