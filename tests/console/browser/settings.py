"""The settings of the server that the browser visits. RTQ_TEST_THEME names the theme of the admin, if any."""

import os

import django

from testproject.settings import INSTALLED_APPS as WITH_ADMIN
from tests.settings import *  # noqa: F403
from tests.settings import MIDDLEWARE

# What each wants in front of django.contrib.admin, by its own instructions.
THEMES = {"unfold": ["unfold"], "jazzmin": ["jazzmin"]}

theme = os.environ.get("RTQ_TEST_THEME", "")
ROOT_URLCONF = "tests.console.browser.urls"
INSTALLED_APPS = [*THEMES.get(theme, []), *WITH_ADMIN, "tests.app"]
if not theme:
    # Third-party themes do not obey the policy.
    if django.VERSION >= (6, 0):
        from django.utils.csp import CSP

        MIDDLEWARE = [*MIDDLEWARE, "django.middleware.csp.ContentSecurityPolicyMiddleware"]
        SECURE_CSP = {"default-src": [CSP.SELF]}
    else:
        MIDDLEWARE = [*MIDDLEWARE, "tests.console.browser.content_security_policy.Policy"]
