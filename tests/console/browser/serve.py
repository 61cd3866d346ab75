"""A server of the admin, for tests that look at it from outside: `python -m tests.console.browser.serve PORT`.

Its first line is the cookie of somebody who is signed in and may do everything.
"""

import sys

import django


def main(port):
    """Create the database and a user, print the session cookie, and serve until stopped."""
    django.setup()
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.test import Client

    call_command("migrate", verbosity=0)
    user, _ = User.objects.get_or_create(username="nightshift", is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(user)
    sys.stdout.write(f"{client.cookies['sessionid'].value}\n")
    sys.stdout.flush()
    # --insecure: static files, although DEBUG is off. --noreload: one process, which ends when it is told to.
    call_command("runserver", f"127.0.0.1:{port}", use_reloader=False, insecure_serving=True, verbosity=0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
