"""Models without a table do not break commands of a project."""

import io

import pytest
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.core.management import call_command
from django.db import connection

from django_rtq.admin import PAGES
from django_rtq.console import permissions
from django_rtq.console.admin import navigation
from django_rtq.console.admin.action_log import MAX_CHARACTERS, log_action
from django_rtq.models import AdminEntry, Queue
from tests.console.admin.conftest import logged

ENTRIES = [model for model in apps.get_app_config("django_rtq").get_models() if issubclass(model, AdminEntry)]
PERMISSIONS = [value for name, value in vars(permissions).items() if name.isupper()]

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("options", [{}, {"use_base_manager": True}])
def test_the_data_of_the_whole_project_can_be_dumped(options):
    out = io.StringIO()
    call_command("dumpdata", stdout=out, **options)
    assert '"auth.permission"' in out.getvalue()
    assert '"django_rtq.queue"' not in out.getvalue()


@pytest.mark.django_db(transaction=True)
def test_the_database_can_be_flushed():
    call_command("flush", interactive=False, verbosity=0)
    assert Permission.objects.filter(codename="requeue_job").exists()


def test_the_migration_holds_what_the_models_say():
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)


def test_there_are_no_tables():
    assert ENTRIES
    assert not {model._meta.db_table for model in ENTRIES} & set(connection.introspection.table_names())


@pytest.mark.parametrize("model", ENTRIES)
def test_nothing_is_found_and_nothing_asked(model, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert list(model.objects.all()) == []
        assert not model._base_manager.filter(pk="mail").exists()


def test_the_log_of_the_admin_can_name_what_has_no_row(admin_user):
    (entry,) = LogEntry.objects.log_actions(admin_user.pk, [Queue(name="mail")], 2, "Paused.")
    with pytest.raises(Queue.DoesNotExist):
        entry.get_edited_object()
    assert str(entry) == "Changed “mail” — Paused."


def test_long_texts_and_many_ids_are_cut(rf, admin_user):
    request = rf.get("/")
    request.user = admin_user
    log_action(request, Queue(name="mail"), "x" * 5000, [f"{n}" * 100 for n in range(1000, 1100)])
    (entry,) = logged()
    text, *ids = entry.split(" ")
    assert len(text) == MAX_CHARACTERS
    assert (ids[0].rstrip(","), ids[20:]) == (("1000" * 16), ["and", "80", "more"])


@pytest.mark.parametrize("name", PERMISSIONS)
def test_every_permission_that_is_asked_for_exists(name):
    app_label, codename = name.split(".")
    assert Permission.objects.filter(content_type__app_label=app_label, codename=codename).count() == 1


def test_every_permission_of_the_entries_is_asked_for():
    ours = Permission.objects.filter(content_type__model__in=[model._meta.model_name for model in ENTRIES])
    assert {f"django_rtq.{permission.codename}" for permission in ours} == set(PERMISSIONS)


def test_every_page_of_the_menu_is_in_the_navigation():
    assert {model._meta.model_name for model in PAGES} == set(navigation.ENTRIES)
