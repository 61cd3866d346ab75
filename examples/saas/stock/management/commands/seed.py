"""Makes tenants with users to log in as, and a file of products to import."""

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand

from stock import plans
from stock.models import Invoice, Tenant

TENANTS = {"corner": "free", "harbour": "team", "acme": "company"}
LINES = 50_000


class Command(BaseCommand):
    help = __doc__

    def handle(self, **options):
        user_model = get_user_model()
        if not user_model.objects.filter(username="admin").exists():
            user_model.objects.create_superuser("admin", "admin@example.com", "admin")
        for slug, plan in TENANTS.items():
            address = f"{slug}@example.com"
            tenant, _ = Tenant.objects.get_or_create(
                slug=slug, defaults={"name": slug.title(), "plan": plan, "email": address}
            )
            plans.apply(tenant)
            Invoice.objects.get_or_create(tenant=tenant, month="2026-10", defaults={"cents": 2900})
            if not tenant.users.exists():
                tenant.users.add(user_model.objects.create_user(slug, address, slug))
        path = settings.DATA_DIR / "products.csv"
        path.write_text("".join(f"sku-{n},Product {n},{n % 100}\n" for n in range(LINES)))
        self.stdout.write(f"Users, each with its name as its password: admin, {', '.join(TENANTS)}")
        self.stdout.write(f"{LINES:,} products to import: {path}")
