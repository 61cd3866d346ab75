"""Creates the table of the database jobs: python -m benchmarks.loads.database_setup"""

from __future__ import annotations

import django

ROWS = 100


def main() -> None:
    """Create the table and its rows in the database of the settings."""
    django.setup()
    from django.db import connection

    from benchmarks.models import Account

    with connection.schema_editor() as editor:
        editor.create_model(Account)
    Account.objects.bulk_create(Account() for _ in range(ROWS))


if __name__ == "__main__":
    main()
