"""The how-to pages: their code runs in a project of its own, their settings are understood, their messages exist."""

import re

import polib
import pytest

from django_rtq.core.conf.config import read_config
from tests.markdown import ROOT, blocks, read
from tests.support.nightly import IS_NIGHTLY
from tests.support.projects import SETTINGS, pytest_arguments, run_python, write_project

pytestmark = pytest.mark.long

PAGES = sorted((ROOT / "docs/how-to").glob("*.md"))
TROUBLESHOOTING = ROOT / "docs/troubleshooting.md"
MODELS = """
from django.db import models


class Account(models.Model):
    token = models.TextField()


class Order(models.Model):
    email = models.EmailField()
    is_confirmed = models.BooleanField(default=False)
    is_charged = models.BooleanField(default=False)


class Product(models.Model):
    shop_id = models.IntegerField(default=0)
    tenant = models.TextField()
    name = models.TextField()


class Shop(models.Model):
    indexed_products = models.IntegerField(default=0)


class Upload(models.Model):
    path = models.TextField()
    tenant = models.TextField()
    parts = models.IntegerField(default=0)
    parts_done = models.IntegerField(default=0)
"""
# The tests of each page: what it promises of its code. Pages that are not here have no code but settings.
CHECKS = {
    "which-client": """
from shop.models import Order
from shop.tasks import confirm


def test_clients_take_turns(db, rtq_drain):
    for tenant in ["acme"] * 5 + ["corner"]:
        confirm.delay(Order.objects.create().pk, tenant)
    assert [run.args[1] for run in rtq_drain()][:3] == ["acme", "corner", "acme"]
""",
    "mail-after-commit": """
from django.core import mail

from shop.orders import place_order
from shop.tasks import send_receipt


def test_the_mail_is_sent_after_the_commit(db, rtq_drain, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        place_order("ada@example.com")
        assert rtq_drain() == []
    (run,) = rtq_drain(["mail"])
    assert (run.state, mail.outbox[0].to) == ("succeeded", ["ada@example.com"])


def test_an_order_that_is_gone_is_not_tried_again(db, rtq_drain):
    send_receipt.delay(404)
    (run,) = rtq_drain(["mail"], raise_errors=False)
    assert run.state == "dead"
""",
    "api-limits": """
import io
from urllib.error import HTTPError

import pytest

from shop import tasks


@pytest.mark.parametrize(("code", "states"), [
    (None, ["succeeded"]), (429, ["retrying"]), (400, ["dead"]), (503, ["retrying"]),
])
def test_what_the_api_answers(monkeypatch, rtq_drain, code, states):
    def urlopen(url, timeout):
        if code:
            raise HTTPError(url, code, "", {"Retry-After": "7"}, None)
        return io.BytesIO(b'{"at": 1}')

    monkeypatch.setattr(tasks, "urlopen", urlopen)
    tasks.locate.delay("Main Street", "acme")
    assert [run.state for run in rtq_drain(["geocoder"], raise_errors=False)] == states
    if code == 429:
        assert rtq_drain(["geocoder"], until=6, raise_errors=False) == []
        assert len(rtq_drain(["geocoder"], until=2, raise_errors=False)) == 1
""",
    "import-rows": """
from shop.imports import import_part, start_import
from shop.models import Product, Upload


def test_each_line_is_imported_once(transactional_db, rtq_drain, tmp_path):
    path = tmp_path / "names.txt"
    path.write_text("".join(f"näme {number}\\n" for number in range(2500)))
    upload = Upload.objects.create(path=str(path), tenant="acme")
    start_import(upload)
    assert [run.state for run in rtq_drain()] == ["succeeded"] * 3
    upload.refresh_from_db()
    assert (upload.parts, upload.parts_done, Product.objects.count()) == (3, 3, 2500)
    assert Product.objects.values("name").distinct().count() == 2500


def test_the_import_is_a_client_of_its_own(rtq_captured):
    import_part.delay(1, 0, "acme")
    rtq_captured.assert_enqueued(import_part, client="acme:import")
""",
    "many-jobs-in-one-call": """
import pytest
from django_rtq import BatchFailed, Call, current_job
from shop.models import Product
from shop.prices import set_price
from shop.tasks import index
from shop.views import save


def test_a_batch_is_of_one_client(db, rtq_drain):
    for tenant in ["acme", "corner", "acme"]:
        save(tenant, "chair")
    assert [run.client for run in rtq_drain()] == ["acme", "acme", "corner"]
    assert Product.objects.filter(tenant="acme", name="chair").count() == 2


def test_a_plain_call(db):
    index([Call(["chair"]), Call(["table"])])
    assert Product.objects.count() == 2


def test_each_job_has_its_outcome(rtq_drain):
    for price in (5, -1, 2000):
        set_price.delay(price)
    runs = rtq_drain(raise_errors=False)
    assert [run.state for run in runs] == ["succeeded", "retrying", "retrying"]


def test_each_job_has_its_result(rtq_drain):
    set_price.delay(4)
    set_price.delay(6)
    assert [run.result for run in rtq_drain()] == [8, 12]
""",
    "one-job-for-many-saves": """
import shop.receivers
from shop.models import Product, Shop


def test_many_saves_make_one_job(db, rtq_drain, django_capture_on_commit_callbacks):
    shop = Shop.objects.create()
    with django_capture_on_commit_callbacks(execute=True):
        for number in range(50):
            Product.objects.create(shop_id=shop.pk, name=str(number))
    assert rtq_drain() == []
    assert [run.state for run in rtq_drain(until=10)] == ["succeeded"]
    shop.refresh_from_db()
    assert shop.indexed_products == 50
""",
    "polling-view": """
import pytest
from django.contrib.auth import get_user_model


@pytest.fixture
def user(db):
    return get_user_model().objects.create(username="ada")


def test_the_views_of_rest_framework(user, rtq_drain):
    from rest_framework.test import APIRequestFactory, force_authenticate

    from shop import drf_views

    def ask(view, request, *arguments):
        force_authenticate(request, user)
        return view(request, *arguments)

    requests = APIRequestFactory()
    started = ask(drf_views.start, requests.post("/", {"month": "May"}))
    assert started.status_code == 202
    shown = ask(drf_views.show, requests.get("/"), started.data["id"])
    assert (shown.data["state"], shown.data["result"]) == ("queued", None)
    rtq_drain()
    shown = ask(drf_views.show, requests.get("/"), started.data["id"])
    assert (shown.data["state"], shown.data["result"]["orders"]) == ("succeeded", 12)
    assert ask(drf_views.show, requests.get("/"), "0" * 32).status_code == 404


def test_the_views_of_ninja(user, client, rtq_drain):
    client.force_login(user)
    started = client.post("/api/reports?month=May")
    assert started.status_code == 202, started.content
    assert client.get(f"/api/reports/{started.json()['id']}").json()["state"] == "queued"
    rtq_drain()
    assert client.get(f"/api/reports/{started.json()['id']}").json()["result"]["month"] == "May"
""",
    "import-export": """
import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from shop.models import Product
from shop.tasks import export_products
from shop.uploads import start_import

HEAD = "sku,name\\n"


def test_a_file_is_imported_twice_and_exported(transactional_db, rtq_drain):
    lines = "".join(f"{number},bread {number}\\n" for number in range(700))
    first = start_import(ContentFile(HEAD + lines, name="a.csv"), "acme")
    rtq_drain()
    assert first.result == {"new": 700, "update": 0, "skip": 0}
    again = start_import(ContentFile(HEAD + lines + "700,cake\\n", name="b.csv"), "acme")
    rtq_drain()
    assert again.result == {"new": 1, "update": 0, "skip": 700}
    job = export_products.delay("exports/products.csv", "acme")
    rtq_drain()
    with default_storage.open(job.result) as file:
        assert file.read().count(b"\\n") == 702


def test_a_wrong_row_is_named(transactional_db, rtq_drain):
    job = start_import(ContentFile(HEAD + "1,bread\\n" + "2" * 51 + ",cake\\n", name="c.csv"), "acme")
    (run,) = rtq_drain(raise_errors=False)
    assert run.state == "dead"
    assert str(run.error).startswith("row 2: ")
    assert not Product.objects.exists()
""",
    "django-tenants": """
from asgiref.sync import sync_to_async
from django.db import connection
from django_tenants.utils import schema_context

from django_rtq import task
from shop.tasks import nightly


@task
def where():
    return connection.schema_name


@task
async def awhere():
    return await sync_to_async(lambda: connection.schema_name)()


def test_a_job_runs_in_the_schema_in_which_it_was_enqueued(rtq_drain):
    for schema in ("acme", "corner"):
        with schema_context(schema):
            where.delay()
            awhere.delay()
    assert [run.result for run in rtq_drain()] == ["acme", "corner", "acme", "corner"]
    assert connection.schema_name == "public"


def test_the_schema_is_the_client(rtq_captured):
    with schema_context("acme"):
        nightly.delay()
    rtq_captured.assert_enqueued(nightly, client="acme")
""",
    "wagtail": """
from django_rtq.core.conf.config import get_config
from django_rtq.core.scheduler.registry import declared_schedules
from shop.tasks import publish_scheduled


def test_the_command_is_run(monkeypatch, rtq_drain):
    called = []
    monkeypatch.setattr("shop.tasks.call_command", called.append)
    publish_scheduled.delay()
    rtq_drain()
    assert called == ["publish_scheduled"]


def test_the_jobs_of_wagtail_run(db, rtq_drain, django_capture_on_commit_callbacks):
    from wagtail import models

    with django_capture_on_commit_callbacks(execute=True):
        models.Page.get_first_root_node().add_child(instance=models.Page(title="Bread"))
        assert rtq_drain() == []
    runs = rtq_drain()
    assert {run.state for run in runs} == {"succeeded"}
    assert any("index" in run.task for run in runs), runs


def test_the_schedule_is_declared():
    assert "shop.tasks.publish_scheduled" in {entry.name for entry in declared_schedules(get_config())}
""",
    "rename-a-task": """
from django_rtq.core.tasks.registry import get_task
from shop.tasks import send_invoice


def test_jobs_under_the_old_name_run(rtq_drain):
    assert get_task("shop.tasks.send_bill") is send_invoice
    job = send_invoice.delay(7)
    rtq_drain()
    assert job.result == "invoice of order 7"
""",
    "secrets": """
from shop.models import Account
from shop.tasks import sync


def test_only_the_key_is_passed(db, rtq_drain):
    job = sync.delay(Account.objects.create(token="hidden").pk)
    (run,) = rtq_drain()
    assert (len(run.args), job.result) == (1, 6)
""",
    "test-it": "",  # brings its own tests
    "autoscale": """
import json
import subprocess

from shop import scale


def test_the_age_is_that_of_the_oldest_job(monkeypatch):
    class Done:
        stdout = json.dumps({"queues": [{"oldest_seconds": None}, {"oldest_seconds": 12.5}]})

    monkeypatch.setattr(subprocess, "run", lambda *arguments, **options: Done)
    assert scale.oldest_seconds("default") == 12.5
""",
}


# Installed packages that the code of a page needs. Without them its test is skipped.
NEEDS = {
    "polling-view": ["rest_framework", "ninja"],
    "import-export": ["import_export"],
    "django-tenants": ["django_tenants"],
    "wagtail": ["wagtail"],
}
MORE_SETTINGS = {
    "mail-after-commit": 'MAILERS = {"default": {}}\n',  # Django 6.1 warns without it
    "polling-view": """
INSTALLED_APPS += ["django.contrib.sessions", "rest_framework"]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware", "django.contrib.auth.middleware.AuthenticationMiddleware"
]
ROOT_URLCONF = "shop.urls"
""",
    "import-export": """
import tempfile

INSTALLED_APPS += ["import_export"]
MEDIA_ROOT = tempfile.mkdtemp()
""",
}
MORE_SETTINGS["django-tenants"] = """
# No server is asked: the schema is set in the connection, and the tasks of the test do not query.
DATABASES = {"default": {"ENGINE": "django_tenants.postgresql_backend", "NAME": "nobody"}}
DATABASE_ROUTERS = ["django_tenants.routers.TenantSyncRouter"]
SHARED_APPS = ["django_tenants", "shop", "django_rtq", "django.contrib.contenttypes"]
TENANT_APPS = ["django.contrib.auth"]
INSTALLED_APPS = [*SHARED_APPS, *TENANT_APPS]
TENANT_MODEL, TENANT_DOMAIN_MODEL = "shop.Tenant", "shop.Domain"
RTQ = {"REDIS": "redis://localhost:6379/0", "MIDDLEWARE": ["shop.queue.SchemaMiddleware"]}
"""
MORE_SETTINGS["wagtail"] = """
INSTALLED_APPS += [
    "wagtail.users", "wagtail.images", "wagtail.documents", "wagtail.search", "wagtail.admin", "wagtail",
    "modelcluster", "taggit", "django.contrib.sessions", "django.contrib.messages",
]
TASKS = {"default": {"BACKEND": "django_rtq.backend.RTQBackend"}}
WAGTAILADMIN_BASE_URL = "https://example.com"
WAGTAIL_SITE_NAME = "Bakery"
STATIC_URL = "static/"
"""
MORE_FILES = {
    "django-tenants": {
        "shop/models.py": """
from django.db import models
from django_tenants.models import DomainMixin, TenantMixin


class Tenant(TenantMixin):
    pass


class Domain(DomainMixin):
    pass
"""
    },
    "polling-view": {
        "shop/urls.py": "from django.urls import path\n\nfrom shop.ninja_api import api\n\n"
        'urlpatterns = [path("api/", api.urls)]\n'
    },
    "import-export": {
        "shop/models.py": """
from django.db import models


class Product(models.Model):
    sku = models.CharField(max_length=50, unique=True)
    name = models.TextField()
"""
    },
}


def code_of(page):
    """The files of a page, but for settings."""
    return {name: code for name, code in blocks(page.read_text()) if name != "settings.py"}


@pytest.mark.long
@pytest.mark.parametrize("page", [page for page in PAGES if code_of(page)], ids=lambda page: page.stem)
def test_the_code_of_a_page_works(page, tmp_path):
    files = {
        "shop_settings.py": SETTINGS,
        "shop/models.py": MODELS,
        "shop/tests.py": CHECKS[page.stem],
        **code_of(page),
    }
    for package in NEEDS.get(page.stem, ()):
        pytest.importorskip(package)
    if page.stem == "wagtail" and not IS_NIGHTLY:
        pytest.skip("its migrations take most of a minute: only with RTQ_TEST_NIGHTLY=1")
    files["shop_settings.py"] += MORE_SETTINGS.get(page.stem, "")
    files |= MORE_FILES.get(page.stem, {})
    write_project(tmp_path, files)
    code, output = run_python(tmp_path, *pytest_arguments(), "shop/tests.py")
    assert code == 0, output


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_settings_of_a_page_are_understood(page):
    for name, code in blocks(page.read_text()):
        if name == "settings.py":
            given = {}
            exec(compile(code, page.name, "exec"), given)
            read_config(given["RTQ"], debug=False)


def is_message(quoted):
    """Whether the admin or rtq can say this: a text that is translated, with values."""
    catalog = polib.pofile(str(ROOT / "django_rtq/locale/pt_BR/LC_MESSAGES/django.po"))
    texts = [text for entry in catalog for text in (entry.msgid, entry.msgid_plural) if text]
    patterns = [".+".join(map(re.escape, re.split(r"%\(\w+\)s", text))).replace("%%", "%") for text in texts]
    return any(pattern != ".+" and re.fullmatch(pattern, quoted) for pattern in patterns)


@pytest.mark.parametrize("page", [*PAGES, TROUBLESHOOTING], ids=lambda page: page.stem)
def test_the_messages_of_a_page_are_those_of_the_code(page):
    for quoted in re.findall(r"^ *> (.*)$", page.read_text(), re.M):
        assert is_message(quoted), quoted


def test_a_sentence_that_the_code_never_says_is_noticed():
    assert is_message("It is due in 8 s.")
    assert not is_message("It is due on Monday.")


def test_troubleshooting_quotes_messages_under_each_state():
    page = read("docs/troubleshooting.md")
    for heading in ("queued", "scheduled", "retrying", "dead"):
        assert re.search(rf"^## My job (?:stays|is) {heading}\n(?:(?!^## ).*\n)*?^> ", page, re.M), heading
