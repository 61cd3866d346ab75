"""Forms to enter a job's arguments as JSON, with secrets hidden."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_rtq.console.redaction import hidden, hidden_args
from django_rtq.console.subjects.clients import LIMIT_LABELS
from django_rtq.core.conf.config import get_config
from django_rtq.core.jobs import serializer
from django_rtq.core.tasks.registry import all_tasks
from django_rtq.core.tasks.task import new_job
from django_rtq.exceptions import PayloadError, RTQError
from django_rtq.limits.limit_kinds import LIMIT_KINDS, Limits
from django_rtq.workflows.steps.store import written_event


class CallForm(forms.Form):
    """The arguments of a job. A hidden secret that is not changed keeps its value."""

    args = forms.CharField(
        label=gettext_lazy("Positional arguments"),
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false"}),
        required=False,
        help_text=gettext_lazy("A JSON list, such as [7, 42]."),
    )
    kwargs = forms.CharField(
        label=gettext_lazy("Keyword arguments"),
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false"}),
        required=False,
        help_text=gettext_lazy('A JSON object, such as {"invoice_id": 42}.'),
    )

    def __init__(self, data: Any = None, *, task: str, args: Any = (), kwargs: Any = None, **initial: str) -> None:
        self._task = task
        # Redis may hold any JSON.
        self._given: dict[str, Any] = {
            "args": list(args) if isinstance(args, list | tuple) else [args],
            "kwargs": kwargs if isinstance(kwargs, dict) else {},
        }
        self._shown: dict[str, Any] = {
            "args": hidden_args(task, self._given["args"], shows_unknown=True),
            "kwargs": hidden(self._given["kwargs"]),
        }
        shown = {name: to_editable_json(value) for name, value in self._shown.items()}
        super().__init__(data, initial={**initial, **shown})

    def clean_args(self) -> list[Any]:
        value = self._read("args", [])
        if not isinstance(value, list):
            raise forms.ValidationError(_("Enter a JSON list, such as [7, 42]."))
        return value

    def clean_kwargs(self) -> dict[str, Any]:
        value = self._read("kwargs", {})
        if not isinstance(value, dict):
            raise forms.ValidationError(_('Enter a JSON object, such as {"invoice_id": 42}.'))
        return value

    def clean(self) -> dict[str, Any]:
        """Check the arguments against the task, if it is registered in this process."""
        given = super().clean() or {}
        task = all_tasks().get(self._task)
        if task is not None and not self.errors:
            try:
                new_job(task.using(**self.options), given["args"], given["kwargs"])
            except Exception as error:  # noqa: BLE001 - the task's function for its client may raise anything
                self.refuse(error)
        return given

    @property
    def options(self) -> dict[str, Any]:
        """The options of the task that differ for this job."""
        return {}

    def refuse(self, error: Exception) -> None:
        """Say why there can be no such job."""
        self.add_error(None, f"{error}" if isinstance(error, TypeError | RTQError) else repr(error)[:500])

    def _read(self, name: str, empty: Any) -> Any:
        text = self.cleaned_data[name]
        if len(text.encode("utf-8", "replace")) > get_config().max_payload_bytes:
            raise forms.ValidationError(_("The arguments are too large (MAX_PAYLOAD_BYTES)."))
        try:
            value = serializer.loads(text) if text.strip() else empty
        except PayloadError as error:
            raise forms.ValidationError(_("This JSON cannot be used as arguments: %(why)s") % {"why": error}) from None
        return restore_secrets(value, self._shown[name], self._given[name])


class EventForm(forms.Form):
    """The value of an event. The token lets it be sent once, however often the form is."""

    event = forms.CharField(widget=forms.HiddenInput, strip=False)
    token = forms.CharField(widget=forms.HiddenInput)
    value = forms.CharField(
        label=gettext_lazy("Value"),
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
        required=False,
        help_text=gettext_lazy('JSON, such as {"by": "eve"}. Empty: null.'),
    )

    def __init__(self, data: Any = None, *, event: str) -> None:
        self._event = event
        super().__init__(data, initial={"event": event, "token": secrets.token_hex(8)})

    def clean_value(self) -> Any:
        text = self.cleaned_data["value"].strip()
        try:
            value = serializer.loads(text) if text else None
            written_event(self._event, value)
        except (PayloadError, ValueError) as error:
            raise forms.ValidationError(_("This JSON cannot be used as a value: %(why)s") % {"why": error}) from None
        return value


class EnqueueForm(CallForm):
    """A new job of a task."""

    queue_name = forms.CharField(label=gettext_lazy("Queue"), required=False, max_length=100)
    client = forms.CharField(label=gettext_lazy("Client"), required=False, max_length=200)
    delay_seconds = forms.FloatField(
        label=gettext_lazy("Delay in seconds"), required=False, min_value=0, max_value=365 * 86_400
    )

    field_order = ("args", "kwargs", "queue_name", "client", "delay_seconds")

    @property
    def options(self) -> dict[str, Any]:
        given = self.cleaned_data
        options = {name: given[name] for name in ("queue_name", "client") if given[name]}
        if given["delay_seconds"]:
            options["run_after"] = given["delay_seconds"]
        return options


def to_editable_json(value: Any) -> str:
    """A value as JSON to edit. Dates and similar types keep their stored form."""
    return json.dumps(json.loads(serializer.dumps(value)), indent=2, ensure_ascii=False)


def restore_secrets(value: Any, shown: Any, old: Any) -> Any:
    """The edited value, with the original secrets in place of the ones that are still hidden."""
    if value == shown and shown != old:
        return old
    if all(isinstance(version, dict) for version in (value, shown, old)):
        return {key: restore_secrets(v, shown[key], old[key]) if key in old else v for key, v in value.items()}
    if all(isinstance(version, list) for version in (value, shown, old)):
        return [restore_secrets(v, shown[i], old[i]) if i < len(old) else v for i, v in enumerate(value)]
    return value


class LimitsForm(forms.Form):
    """The limits of a queue or a client that were set at run time. An empty field is what the settings say."""

    submit = gettext_lazy("Save")

    def __init__(self, data: Any = None, *, known: Iterable[str], limits: Limits) -> None:
        set_here = {name: limit for name, limit in limits.items() if not limit.is_from_settings}
        initial = {name: "none" if limit.value is None else str(limit.value) for name, limit in set_here.items()}
        super().__init__(data, initial=initial)
        for name in known:
            hint = _("Empty: as in the settings. “none”: no limit.")
            if name in limits and name not in set_here:
                hint += " " + _("The settings say %(value)s.") % {"value": limits[name].value}
            self.fields[name] = forms.CharField(
                label=LIMIT_LABELS.get(name, name), required=False, max_length=100, help_text=hint
            )

    def clean(self) -> dict[str, Any]:
        """The limits that were changed, each as a value, or "settings"."""
        given, changed = super().clean() or {}, dict[str, Any]()
        for name in self.changed_data:
            text = str(given.get(name, "")).strip() or "settings"
            try:
                changed[name] = LIMIT_KINDS[name].parse(text)
            except ValueError:
                self.add_error(name, LIMIT_KINDS[name].refusal(text, _))
        return changed


class ForgetForm(forms.Form):
    """What is lost with a queue."""

    discard_outcomes = forms.BooleanField(
        label=gettext_lazy("Delete the outcomes of finished jobs, too"), required=False
    )
