"""Translations keep their placeholders, and the pages are in the user's language.

A text without a translation is shown in English: that is a warning here, so that nobody needs a language to add a text.
"""

import re
import warnings
from pathlib import Path

import django
import polib
import pytest
from django.test import override_settings
from django.urls import reverse
from django.utils import translation

from django_rtq.core.tasks import registry
from django_rtq.models import Schedule
from tests.console.admin.catalogs import (
    LANGUAGES,
    PACKAGE,
    catalog,
    key_of,
    marked_texts,
    not_marked,
    placeholders,
    said_by,
    translated,
    translations_of,
    write_marks,
)
from tests.console.admin.conftest import ALL, MAIL, every_page, url_of
from tests.support.jobs import QUEUE, claimed_job, let_lapse
from tests.support.redis_server import UNREACHABLE

pytestmark = pytest.mark.long

LOOKS = [name for name, page in every_page() if page.method != "POST"]
STATES = ["queued", "scheduled", "running", "retrying", "dead", "finished"]
ACTS = {
    "queue_pause": {},
    "queue_resume": {},
    "queue_forget": {"name": "another"},
    "job_bulk_requeue": {"q": f"queue:{QUEUE}", "until_ms": 10**15},
    "job_bulk_discard": {"queue": QUEUE},
    "job_bulk_purge": {"q": f"queue:{QUEUE}", "until_ms": 10**15, "name": "another"},
    "job_bulk_cancel": {"q": f"queue:{QUEUE} state:running", "until_ms": 10**15},
    "job_edit": {"queue": QUEUE, "args": "{}", "kwargs": "["},
    "worker_reclaim": {},
    "worker_quiet": {},
    "worker_wake": {},
    "worker_stop": {},
}

#: Data of jobs, tasks and the server, which is not translated.
DATA = re.compile(
    r"^(testproject|django_rtq)\.|_order|_picture|_report|_catalogue|_carrier|run_bulk_action|cancel_\w+_jobs|_committed_jobs|^(send_email|starmap)$|=|\d-\w+$|^…\w{6}$|^\w{12}80\w{18}$|^15min$"
    r"| UTC$|^UTC$|^(client:)?(bakery|florist|it broke|default|mail|orders|reports|w1|(Redis|Valkey) [\d.]+)$"
    r"|^Redis cannot be reached: "
    r"|^Send the e?mail of an order|^(flows?|0123456789ab)$|^\w{3} \d+$|^[\d.,]+\s([KM]B|bitokoj)$"
)


@pytest.fixture(autouse=True)
def shop_tasks(monkeypatch):
    """Only the tasks of the shop: tasks of other tests are named with English words."""
    known = {
        name: task for name, task in registry.all_tasks().items() if name.startswith(("testproject.", "django_rtq."))
    }
    monkeypatch.setattr(registry, "_tasks", known)


@pytest.fixture
def marking_reader(tmp_path, settings, person):
    """A user who sees every translatable text in brackets."""
    write_marks(tmp_path)
    settings.LOCALE_PATHS = [str(tmp_path)]
    yield person(*ALL, headers={"Accept-Language": "eo"})
    translation.deactivate()


def assert_all_is_marked(answer):
    """Each text of a page that is ours is in brackets, and so is what became of an action."""
    html = answer.content.decode()
    _, _, ours = html.partition('<div class="rtq">')
    said = "".join(re.findall(r'<ul class="messagelist">.*?</ul>', html, re.DOTALL))
    assert {text for text in not_marked(said + ours) if not DATA.search(text)} == set()
    assert answer["Content-Language"] == "eo"


# -- catalogs


class CatalogWarning(UserWarning):
    """A catalog is not complete, or has more than is needed."""


def warn_of(texts, what):
    if texts:
        warnings.warn(f"{what}, see CONTRIBUTING.md: {sorted(texts)}", CatalogWarning, stacklevel=2)


@pytest.mark.filterwarnings("default::tests.console.admin.test_translations.CatalogWarning")
@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_missing_in_a_catalog_or_needless_is_a_warning(language):
    marked = marked_texts()

    warn_of({key.text for key in marked - translated(language)}, f"Not translated in {language}")
    warn_of(
        {key_of(entry).text for entry in catalog(language)} - {key.text for key in marked}, f"Needless in {language}"
    )
    assert len(marked & translated(language)) > 300


def test_there_are_catalogs_of_these_languages_and_no_others():
    assert {path.name for path in (PACKAGE / "locale").iterdir()} == set(LANGUAGES)


@pytest.mark.parametrize("language", LANGUAGES)
def test_translations_keep_the_placeholders(language):
    for entry in catalog(language):
        for text in filter(None, translations_of(entry)):
            assert placeholders(text) == placeholders(entry.msgid_plural or entry.msgid), entry.msgid


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_compiled_catalog_is_that_of_the_source(language):
    written, compiled = (
        {key_of(entry): translations_of(entry) for entry in catalog(language, kind)} for kind in ("po", "mo")
    )

    assert compiled == {key: texts for key, texts in written.items() if key in translated(language)}


@pytest.mark.parametrize("language", LANGUAGES)
def test_words_that_django_has_as_well_are_those_of_django(language):
    """Django merges the catalogs of all apps: our translation of a word would replace Django's on all pages."""
    ours = {entry.msgid: entry.msgstr for entry in catalog(language) if entry.msgstr and not entry.msgctxt}
    folder = Path(django.__file__).parent
    files = [
        *folder.glob(f"conf/locale/{language}/**/django.mo"),
        *folder.glob(f"contrib/*/locale/{language}/**/django.mo"),
    ]
    theirs = {e.msgid: e.msgstr for path in files for e in polib.mofile(str(path)) if not e.msgctxt and e.msgstr}

    assert {text: ours[text] for text in ours.keys() & theirs} == {text: theirs[text] for text in ours.keys() & theirs}
    assert ours.keys() & theirs


# -- pages


@pytest.mark.parametrize("name", LOOKS)
def test_no_page_says_anything_that_was_not_marked(name, jobs, broker, marking_reader):
    broker.sign_on([QUEUE], "w1")

    for query in [{}, *({"state": state} for state in STATES if name == "queue_change")]:
        assert_all_is_marked(marking_reader.get(url_of(name, jobs), query or None, follow=True))


def test_what_was_not_marked_would_be_noticed(jobs, operator):
    for name in ("queue_changelist", "job_change", "deadletter_changelist"):
        assert not_marked(operator.get(url_of(name, jobs), follow=True).content.decode().partition('class="rtq">')[2])


def test_nor_do_jobs_of_any_state_and_empty_lists(jobs, marking_reader):
    for state in ("dead", "retrying", "finished", "scheduled", "queued"):
        page = reverse("admin:django_rtq_job_change", args=[getattr(jobs, state).id])
        assert_all_is_marked(marking_reader.get(page, {"queue": QUEUE}))
    for state in STATES:
        assert_all_is_marked(marking_reader.get(url_of("queue_change"), {"state": state, "q": "client:default"}))


def test_nor_does_what_runs_and_who_runs_it(broker, marking_reader):
    job = claimed_job(broker, "running", worker="w1", client="bakery")
    pages = [reverse("admin:django_rtq_job_changelist"), reverse("admin:django_rtq_worker_changelist")]
    pages += [reverse("admin:django_rtq_job_change", args=[job.id])]
    pages += [reverse("admin:django_rtq_worker_stop", args=["w1"])]

    for _before_and_after_it_was_asked_to_stop in range(2):
        for url in pages:
            assert_all_is_marked(marking_reader.get(url))
        given = {"q": f"queue:{QUEUE} state:running", "id": job.id}
        url = reverse("admin:django_rtq_job_bulk_terminate")
        assert_all_is_marked(marking_reader.get(url, given))
        assert_all_is_marked(marking_reader.post(url, {**given, "until_ms": 10**15}, follow=True))


@pytest.mark.parametrize("name", ACTS)
def test_nor_does_what_became_of_an_action(name, jobs, broker, marking_reader):
    broker.sign_on([QUEUE], "w1")
    let_lapse(broker, "w1")

    for _again in range(2):  # the second time most of them say that somebody was faster
        answer = marking_reader.post(url_of(name, jobs), ACTS[name], follow=True)
        assert answer.status_code in (200, 404)
        assert_all_is_marked(answer)


def test_nor_does_trouble(jobs, marking_reader):
    missing = marking_reader.get(reverse("admin:django_rtq_job_change", args=["nothing"]))
    with override_settings(RTQ={"REDIS": UNREACHABLE}):
        away = marking_reader.get(url_of("queue_changelist"))

    assert (missing.status_code, away.status_code) == (404, 503)
    for answer in (missing, away):
        assert_all_is_marked(answer)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("language", LANGUAGES)
def test_schedules_are_in_the_language_of_the_reader(language, admin_client, broker):
    Schedule(name="nightly", task=MAIL, args=["bakery", 7], cron="0 5 * * *", tz="Europe/Berlin").save()
    often = Schedule(name="often", task=MAIL, args=["bakery", 7], every=300)
    often.save()
    pages = [reverse("admin:django_rtq_schedule_changelist"), reverse("admin:django_rtq_schedule_add")]
    pages += [reverse("admin:django_rtq_schedule_change", args=[often.pk]), reverse("admin:index")]

    said = set()
    for url in pages:
        answer = admin_client.get(url, headers={"Accept-Language": LANGUAGES[language]})
        assert (answer.status_code, answer["Content-Language"]) == (200, translation.to_language(language))
        said |= set(said_by(answer.content.decode()))
    translation.deactivate()

    assert {"0 5 * * * (Europe/Berlin)", {"zh_Hans": "每 5 分钟", "pt_BR": "a cada 5 minutos"}[language]} <= said
    assert said & {entry.msgid for entry in catalog(language) if entry.msgstr not in ("", entry.msgid)} == set()
