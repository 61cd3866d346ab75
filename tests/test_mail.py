"""Django's e-mails in the background."""

import re
import sys
from email.message import MIMEPart
from email.mime.image import MIMEImage
from smtplib import SMTPDataError, SMTPRecipientsRefused, SMTPServerDisconnected
from unittest.mock import Mock

import django
import pytest
from django.conf import settings
from django.core import checks, mail
from django.core.mail.backends.locmem import EmailBackend as LocmemBackend
from django.db import transaction
from django.test import override_settings

import django_rtq
from django_rtq import JobState
from django_rtq.core.tasks.registry import declared_queues
from django_rtq.exceptions import BrokerUnavailable, ConfigurationError, InvalidTask, PayloadError
from django_rtq.mail import EmailBackend, read_message, send_email, write_message
from django_rtq.testing import captured, drain, eager, private_redis

LOCMEM = "django.core.mail.backends.locmem.EmailBackend"
HAS_MAILERS = django.VERSION >= (6, 1)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")


@pytest.fixture(autouse=True)
def background(monkeypatch):
    mail.outbox = []
    with override_settings(
        EMAIL_BACKEND="django_rtq.mail.EmailBackend", RTQ={**settings.RTQ, "EMAIL": {"backend": LOCMEM}}
    ):
        yield


def with_options(**options):
    return override_settings(RTQ={**settings.RTQ, "EMAIL": {"backend": LOCMEM, **options}})


def full_message():
    message = mail.EmailMultiAlternatives(
        "Für dich", "Text", "shop@example.org", ["ada@example.org"],
        cc=["cc@example.org"], bcc=["bcc@example.org"], reply_to=["help@example.org"], headers={"X-Order": "42"},
    )  # fmt: skip
    message.attach_alternative("<p>Text</p>", "text/html")
    message.attach("a.pdf", b"\x00\xff", "application/pdf")
    message.attach("a.txt", "täxt", "text/plain")
    message.attach(None, b"GIF", "image/gif")
    message.attach(MIMEImage(b"\x89PNG", "png"))
    if django.VERSION >= (6, 0):
        part = MIMEPart()
        part.set_content(b"\x01\x02", "application", "octet-stream", cid="<logo>", disposition="inline")
        message.attach(part)
    return message


def written(message):
    """Its text, with the boundaries of its parts made equal."""
    return re.sub(rb"=====*\d+==", b"boundary", message.message().as_bytes())


def test_everything_in_a_message_arrives():
    message = full_message()
    with private_redis():
        message.send()
        drain()

    (arrived,) = mail.outbox
    message.extra_headers = {
        **arrived.extra_headers,
        "X-Order": "42",
    }  # Date and Message-ID are made when it is enqueued
    assert written(arrived) == written(message)
    assert arrived.recipients() == message.recipients()


def test_a_second_run_sends_the_same_message():
    kwargs = write_message(full_message())
    first, second = (read_message(*kwargs.values()).message() for _ in range(2))

    assert first["Message-ID"] == second["Message-ID"]
    assert first["Date"] == second["Date"]


class TaggedMessage(mail.EmailMessage):
    """A message that its backend asks for more."""

    def __init__(self, tag, **options):
        super().__init__(**options)
        self.tags = [tag]


@pytest.fixture
def this_is_an_app(monkeypatch):
    monkeypatch.setattr("django_rtq.mail.is_in_installed_app", lambda module: module == __name__)


@pytest.mark.usefixtures("this_is_an_app")
def test_a_message_of_another_class_keeps_its_attributes():
    message = TaggedMessage("invoice", subject="Hello", body="<p>Text</p>", to=["ada@example.org"])
    message.content_subtype = "html"
    with eager():
        message.send()

    (arrived,) = mail.outbox
    assert (type(arrived), arrived.tags, arrived.content_subtype) == (TaggedMessage, ["invoice"], "html")


@pytest.mark.parametrize(
    ("tag", "text"),
    [(object(), r'\["attributes"\]\["tags"\]'), ("invoice", r"test_mail\.TaggedMessage, is in no installed app")],
    ids=["no JSON", "no app"],
)
def test_a_message_that_no_worker_could_read_is_refused(request, tag, text):
    if tag != "invoice":
        request.getfixturevalue("this_is_an_app")
    message = TaggedMessage(tag, subject="Hello", to=["ada@example.org"])
    with captured() as jobs, pytest.raises(PayloadError, match=text):
        message.send()
    assert not jobs


def test_many_messages_are_many_jobs():
    messages = [("Hello", "Text", "shop@example.org", [f"{number}@example.org"]) for number in range(3)]
    with captured() as jobs:
        assert mail.send_mass_mail([*messages, ("Nobody", "Text", "shop@example.org", [])]) == 3
    assert [job.kwargs["recipients"]["to"] for job in jobs] == [["0@example.org"], ["1@example.org"], ["2@example.org"]]


def test_the_settings_and_a_message_have_options():
    message = mail.EmailMessage("Hello", "Text", None, ["ada@example.org"])
    message.rtq_options = {"client": "acme", "priority": 5}
    with with_options(queue_name="mail", priority=1), captured() as jobs:
        message.send()
        mail.send_mail("Hello", "Text", None, ["ada@example.org"])
    assert [(job.queue, job.client, job.priority) for job in jobs] == [("mail", "acme", 5), ("mail", "", 1)]
    assert "rtq_options" not in str(jobs[0].kwargs)


def test_workers_are_expected_to_serve_the_queue_of_the_settings():
    with with_options(queue_name="letters"):
        assert "letters" in declared_queues("")


def test_an_option_that_does_not_exist_is_named():
    with with_options(queue="mail"), captured(), pytest.raises(InvalidTask, match="queue"):
        mail.send_mail("Hello", "Text", None, ["ada@example.org"])


@pytest.mark.parametrize("value", ["mail", {"backend": None}])
def test_a_setting_that_is_no_dictionary_is_refused(value):
    with override_settings(RTQ={**settings.RTQ, "EMAIL": value}), pytest.raises(ConfigurationError, match="EMAIL"):
        EmailBackend()


@pytest.mark.django_db(transaction=True)
def test_messages_wait_for_the_commit_by_default():
    with captured() as jobs:
        with transaction.atomic():
            mail.send_mail("Lost order", "Text", None, ["ada@example.org"])
            transaction.set_rollback(True)
        with transaction.atomic():
            mail.send_mail("Order", "Text", None, ["ada@example.org"])
            assert not jobs
    assert [job.kwargs["subject"] for job in jobs] == ["Order"]


@pytest.mark.django_db(transaction=True)
def test_messages_are_sent_at_once_if_the_settings_say_so():
    with override_settings(RTQ={**settings.RTQ, "ENQUEUE_ON_COMMIT": False}), captured() as jobs, transaction.atomic():
        mail.send_mail("Order", "Text", None, ["ada@example.org"])
        assert len(jobs) == 1


# -- failures


def test_an_outage_of_redis_raises_unless_failures_are_silent(monkeypatch, caplog):
    monkeypatch.setattr(django_rtq.Task, "delay_many", Mock(side_effect=BrokerUnavailable("Redis cannot be reached.")))
    message = mail.EmailMessage("Hello", "Text", None, ["ada@example.org"])
    with pytest.raises(BrokerUnavailable):
        EmailBackend().send_messages([message])
    assert EmailBackend(fail_silently=True).send_messages([message]) == 0
    assert "1 e-mails could not be enqueued" in caplog.text


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (SMTPDataError(554, b"spam"), JobState.DEAD),
        (SMTPDataError(451, b"busy"), JobState.RETRYING),
        (SMTPRecipientsRefused({"ada@example.org": (550, b"unknown")}), JobState.DEAD),
        (SMTPRecipientsRefused({"a": (550, b"unknown"), "b": (450, b"later")}), JobState.RETRYING),
        (SMTPServerDisconnected("gone"), JobState.RETRYING),
    ],
)
def test_what_a_server_refuses_for_good_is_not_sent_again(monkeypatch, error, state):
    monkeypatch.setattr(LocmemBackend, "send_messages", Mock(side_effect=error))
    kwargs = write_message(mail.EmailMessage("Hello", "Text", None, ["ada@example.org"]))
    with private_redis():
        job = send_email.delay(**kwargs)
        drain(raise_errors=False)
        assert job.state is state


def test_a_password_for_the_mail_server_is_not_stored():
    with captured() as jobs, pytest.raises(ConfigurationError, match="EMAIL_HOST_PASSWORD"):
        mail.send_mail("Hello", "Text", None, ["ada@example.org"], auth_user="shop", auth_password="geheim")
    assert not jobs


def test_the_backend_does_not_send_to_itself():
    with (
        with_options(backend="django_rtq.mail.EmailBackend"),
        eager(),
        pytest.raises(ConfigurationError, match="itself"),
    ):
        mail.send_mail("Hello", "Text", None, ["ada@example.org"])


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("django.contrib.auth.models.User", " is no subclass"),
        ("this.s", ", is in no installed app"),
        ("subprocess.Popen", ", is in no installed app"),
    ],
)
def test_a_class_that_is_no_message_is_refused(path, why):
    kwargs = write_message(mail.EmailMessage("Hello", "Text", None, ["ada@example.org"]))
    kwargs["secret_content"]["class"] = path
    with pytest.raises(django_rtq.Bury, match=f"{path}{why}"):
        send_email(**kwargs)
    assert "this" not in sys.modules  # no module that belongs to no app is imported


def test_the_content_is_hidden_in_the_admin():
    from django_rtq.console.redaction import hidden

    kwargs = write_message(mail.EmailMessage("Hello", "https://shop/login/geheim", None, ["ada@example.org"]))
    assert "geheim" not in str(hidden(kwargs))
    assert "ada@example.org" in str(hidden(kwargs))


# -- Django's MAILERS


@pytest.mark.skipif(not HAS_MAILERS, reason="MAILERS came with Django 6.1")
class TestMailers:
    """Mailers of Django 6.1."""

    MAILERS = {
        "default": {"BACKEND": "django_rtq.mail.EmailBackend", "OPTIONS": {"mailer": "local", "queue_name": "mail"}},
        "local": {"BACKEND": LOCMEM},
        "nothing": {"BACKEND": "django_rtq.mail.EmailBackend"},
        "itself": {"BACKEND": "django_rtq.mail.EmailBackend", "OPTIONS": {"mailer": "itself"}},
    }

    @pytest.fixture(autouse=True)
    def mailers(self):
        with override_settings(MAILERS=self.MAILERS):
            yield

    def test_the_mailer_that_is_named_sends(self):
        with eager() as jobs:
            mail.EmailMessage("Hello", "Text", None, ["ada@example.org"]).send()
        assert jobs[0].queue == "mail"
        assert len(mail.outbox) == 1

    def test_a_mailer_has_to_be_named(self):
        with pytest.raises(ConfigurationError, match=r"MAILERS\['nothing'\].*\"mailer\": \"smtp\""):
            mail.EmailMessage("Hello", "Text", None, ["ada@example.org"]).send(using="nothing")

    def test_it_is_not_the_backend_itself(self):
        with eager(), pytest.raises(ConfigurationError, match="itself"):
            mail.EmailMessage("Hello", "Text", None, ["ada@example.org"]).send(using="itself")


# -- the system check


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"queue": "mail"}, [r".*queue_name.*"]),
        ({"backend": "nowhere.EmailBackend"}, ["The backend 'nowhere.EmailBackend' cannot be imported.*"]),
        ({"queue_name": "mail"}, []),
    ],
)
def test_the_check_says_what_cannot_be_used(options, found):
    with with_options(**options):
        messages = [message.msg for message in checks.run_checks(tags=["rtq"]) if message.id == "rtq.E009"]
    assert len(messages) == len(found)
    assert all(re.match(rf'RTQ\["EMAIL"\]: {text}', message) for text, message in zip(found, messages, strict=True))
