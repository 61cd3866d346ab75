"""Runs commands, given as JSON, each as a list of words. Prints what each of them said as JSON."""

import json
import sys
from io import StringIO

import django

django.setup()

from django.core.management import call_command  # noqa: E402


def said(words):
    out = StringIO()
    call_command(*words, stdout=out)
    return out.getvalue()


if __name__ == "__main__":
    json.dump([said(words) for words in json.loads(sys.argv[1])], sys.stdout)
