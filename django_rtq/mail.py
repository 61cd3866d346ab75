"""Django's e-mails in the background.

EMAIL_BACKEND = "django_rtq.mail.EmailBackend"

Each message is one job of the task `django_rtq.mail.send_email`, so each is retried, cancelled and found in the admin
by itself. In a worker the real backend sends it: the one that RTQ["EMAIL"]["backend"] names or, with Django's MAILERS,
the mailer that the option `mailer` names.

What a message says is in the argument `secret_content`, which the admin hides: it may be a link that logs somebody in.
"""

from __future__ import annotations

import email.policy
import logging
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from email.message import Message, MIMEPart
from email.mime.base import MIMEBase
from email.parser import BytesParser
from email.utils import formatdate
from itertools import groupby
from smtplib import SMTPDataError, SMTPRecipientsRefused, SMTPSenderRefused
from typing import Any

from django.conf import settings  # noqa: TID251 - Django's own settings of e-mails
from django.core import mail
from django.core.mail.backends.base import BaseEmailBackend
from django.utils.module_loading import import_string

from django_rtq.core.conf.config import get_config
from django_rtq.core.tasks.declaration import is_in_installed_app
from django_rtq.core.tasks.decorator import task
from django_rtq.core.tasks.task import Task
from django_rtq.core.transactions import integrations_wait, open_database
from django_rtq.exceptions import BrokerError, Bury, ConfigurationError, PayloadError, QueueFull

logger = logging.getLogger("django_rtq")

DEFAULT_BACKEND = "django.core.mail.backends.smtp.EmailBackend"

# Attributes of EmailMessage that have arguments or entries of their own, or are of no use in a worker.
_OWN_ENTRIES = {"subject", "body", "from_email", "to", "cc", "bcc", "reply_to", "attachments", "alternatives"}
_OWN_ENTRIES |= {"extra_headers", "connection", "_connection", "rtq_options"}
_DJANGOS_MODULES = ("django.core.mail", "django.core.mail.message")


class EmailBackend(BaseEmailBackend):
    """Enqueues messages. Options of MAILERS: `mailer`, the one that sends them, and options of Task.using().

    A message may have options of its own: `message.rtq_options = {"client": "acme", "priority": 10}`.
    """

    def __init__(self, fail_silently: bool = False, *, alias: str | None = None, **options: Any) -> None:
        super().__init__()
        self.alias = alias
        self._is_silent = fail_silently
        options.pop("_ignore_unknown_kwargs", None)
        if options.pop("username", None) or options.pop("password", None):
            raise ConfigurationError(
                "django_rtq.mail.EmailBackend takes no auth_user and auth_password: they would be stored in Redis. Set "
                "EMAIL_HOST_USER and EMAIL_HOST_PASSWORD, or MAILERS."
            )
        self._mailer = str(options.pop("mailer", ""))
        self._options = {**_options_of_settings(), **options}
        if alias and not self._mailer:
            raise ConfigurationError(
                f'MAILERS[{alias!r}] of django_rtq.mail.EmailBackend has no option "mailer". Write '
                '"OPTIONS": {"mailer": "smtp"}, with the name in MAILERS of the one that sends the messages.'
            )

    def send_messages(self, email_messages: Sequence[mail.EmailMessage]) -> int:
        """Enqueue messages, and return how many. Raises what delay_many() raises, unless errors are to be silent."""
        sent, with_recipients = 0, (one for one in email_messages if one.recipients())
        for options, messages in groupby(
            with_recipients, lambda one: {**self._options, **getattr(one, "rtq_options", {})}
        ):
            calls = [((), {**write_message(message), "mailer": self._mailer}) for message in messages]
            try:
                _task_with(options).delay_many(calls)
            except (BrokerError, QueueFull):
                if not self._is_silent:
                    raise
                logger.exception("%d e-mails could not be enqueued", len(calls))
                break
            sent += len(calls)
        return sent


@task
def send_email(
    subject: str,
    recipients: dict[str, list[str]],
    from_email: str,
    secret_content: dict[str, Any],
    mailer: str = "",
) -> None:
    """Send a message. A server that refuses it for good (an SMTP code of 500 or more) makes the job dead at once."""
    try:
        message = read_message(subject, recipients, from_email, secret_content)
    except PayloadError as error:
        raise Bury(str(error)) from error
    try:
        _real_backend(mailer).send_messages([message])
    except (SMTPDataError, SMTPSenderRefused, SMTPRecipientsRefused) as error:
        if _is_permanent(error):
            raise Bury(f"The mail server refused the message: {error}") from error
        raise


def _task_with(options: dict[str, Any]) -> Task[..., None]:
    """The task with these options. Nobody can edit the code that sends most e-mails, so they await the commit."""
    with_options = send_email.using(**options) if options else send_email
    return replace(with_options, on_commit=open_database() or True) if integrations_wait() else with_options


def _is_permanent(error: SMTPDataError | SMTPSenderRefused | SMTPRecipientsRefused) -> bool:
    if isinstance(error, SMTPRecipientsRefused):
        return all(code >= 500 for code, _ in error.recipients.values())
    return error.smtp_code >= 500


def _real_backend(mailer: str) -> Any:
    path = get_config().email.get("backend", DEFAULT_BACKEND)
    backend = mail.mailers[mailer] if mailer else import_string(path)()
    if isinstance(backend, EmailBackend):
        raise ConfigurationError(
            f"The backend that sends e-mails in workers is django_rtq.mail.EmailBackend itself. Name another one in "
            f'{"MAILERS" if mailer else "RTQ"}{f"[{mailer!r}]" if mailer else """["EMAIL"]["backend"]"""}.'
        )
    return backend


def check_settings() -> None:
    """Raises ConfigurationError or InvalidTask if RTQ["EMAIL"] cannot be used."""
    send_email.using(**_options_of_settings())
    path = get_config().email.get("backend", DEFAULT_BACKEND)
    try:
        import_string(path)
    except ImportError as error:
        raise ConfigurationError(f"The backend {path!r} cannot be imported: {error}") from error


def _options_of_settings() -> dict[str, Any]:
    return {name: value for name, value in get_config().email.items() if name != "backend"}


# -- messages as JSON


def write_message(message: mail.EmailMessage) -> dict[str, Any]:
    """The arguments of send_email() for a message. Raises PayloadError for what cannot be stored."""
    kind = type(message)
    content = {
        "class": _checked_class(f"{kind.__module__}.{kind.__qualname__}"),
        "body": str(message.body),
        "reply_to": list(map(str, message.reply_to)),
        "headers": _write_headers(message),
        "attachments": [_write_attachment(attachment) for attachment in message.attachments],
        "alternatives": [
            [_write_content(content), mimetype] for content, mimetype in getattr(message, "alternatives", None) or ()
        ],
        # What subclasses and their users have set, as django-anymail's `tags` or Django's `content_subtype`.
        "attributes": {name: value for name, value in vars(message).items() if name not in _OWN_ENTRIES},
    }
    return {
        "subject": str(message.subject),
        "recipients": {
            field: list(map(str, addresses))
            for field, addresses in (("to", message.to), ("cc", message.cc), ("bcc", message.bcc))
            if addresses
        },
        "from_email": str(message.from_email),
        "secret_content": content,
    }


def _write_headers(message: mail.EmailMessage) -> dict[str, str]:
    """It gets its Date and its Message-ID now: a second run sends the same message, and receivers may notice that."""
    headers = {name: str(value) for name, value in message.extra_headers.items()}
    given = {name.lower() for name in headers}
    if "date" not in given:
        headers["Date"] = formatdate(localtime=settings.EMAIL_USE_LOCALTIME)
    if "message-id" not in given:
        headers["Message-ID"] = mail.make_msgid(domain=str(mail.DNS_NAME))
    return headers


def read_message(
    subject: str, recipients: Mapping[str, list[str]], from_email: str, content: Mapping[str, Any]
) -> mail.EmailMessage:
    """The message that write_message() was given."""
    kind = import_string(_checked_class(content["class"]))
    if not (isinstance(kind, type) and issubclass(kind, mail.EmailMessage)):
        raise Bury(f"{content['class']} is no subclass of django.core.mail.EmailMessage.")
    message: mail.EmailMessage = kind.__new__(kind)
    has_alternatives = issubclass(kind, mail.EmailMultiAlternatives)
    base: Any = mail.EmailMultiAlternatives if has_alternatives else mail.EmailMessage
    base.__init__(  # not that of a subclass, which may take other arguments
        message,
        subject,
        content["body"],
        from_email,
        headers=dict(content["headers"]),
        reply_to=content["reply_to"],
        **recipients,
    )
    for attachment in content["attachments"]:
        attached = _read_content(attachment["content"])
        if isinstance(attached, Message):
            message.attachments.append(attached)
        else:
            message.attach(attachment["name"], attached, attachment["mimetype"])
    for alternative, mimetype in content["alternatives"]:
        message.attach_alternative(_read_content(alternative), mimetype)  # type: ignore[attr-defined]
    vars(message).update(content["attributes"])
    return message


def _checked_class(path: str) -> str:
    """Raises PayloadError for a class of a module that a worker does not import because an argument names it."""
    module = path.rpartition(".")[0]
    if module not in _DJANGOS_MODULES and not is_in_installed_app(module):
        raise PayloadError(
            f"The class of the message, {path}, is in no installed app: workers import no other module that a job "
            "names. Add the app of the class to INSTALLED_APPS."
        )
    return path


def _write_attachment(attachment: Any) -> dict[str, Any]:
    if isinstance(attachment, Message):
        kind = "mimebase" if isinstance(attachment, MIMEBase) else "mimepart"
        return {"content": {kind: _text(attachment.as_bytes())}}
    name, content, mimetype = attachment
    return {"name": None if name is None else str(name), "content": _write_content(content), "mimetype": mimetype}


def _write_content(content: Any) -> Any:
    if isinstance(content, mail.EmailMessage):
        content = content.message()
    if isinstance(content, Message):
        content = content.as_bytes()
    return {"base64": _text(content)} if isinstance(content, bytes | bytearray | memoryview) else str(content)


def _read_content(content: str | Mapping[str, str]) -> Any:
    if isinstance(content, str):
        return content
    ((kind, text),) = content.items()
    data = b64decode(text)
    if kind == "mimebase":
        return BytesParser(_ReadPart).parsebytes(data)
    make_part: Any = MIMEPart
    return BytesParser(make_part, policy=email.policy.default).parsebytes(data) if kind == "mimepart" else data


class _ReadPart(MIMEBase):
    """A MIMEBase that a parser can make: it knows its type only when it has read the headers."""

    def __init__(self, **options: Any) -> None:
        Message.__init__(self, **options)


def _text(data: bytes | bytearray | memoryview) -> str:
    return b64encode(data).decode()
