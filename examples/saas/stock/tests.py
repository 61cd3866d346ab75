"""Run with `python manage.py test`. Nothing but Python is needed: jobs are in fakeredis, rows in SQLite."""

import shutil
import tempfile
import time
from pathlib import Path
from unittest import mock

from django.contrib.auth import get_user_model
from django.core import mail
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import TransactionTestCase, override_settings
from django.urls import reverse

from django_rtq import report_progress, rtq
from django_rtq.testing import EagerMixin, drain, private_redis
from stock import bank, plans, tasks
from stock.models import Invoice, Payment, Product, Tenant, Upload


class TenantTestCase(TransactionTestCase):
    """With two tenants, and the first one's user logged in."""

    def setUp(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        self.enterContext(override_settings(MEDIA_ROOT=folder, DATA_DIR=Path(folder)))
        self.acme = Tenant.objects.create(slug="acme", name="Acme", email="acme@example.com", plan="team")
        self.corner = Tenant.objects.create(slug="corner", name="Corner", email="corner@example.com")
        user = get_user_model().objects.create_user("ada")
        self.acme.users.add(user)
        self.client.force_login(user)


class ImportAndExportTests(TenantTestCase):
    def setUp(self):
        super().setUp()
        self.enterContext(private_redis())

    def upload(self, text):
        return self.client.post(
            reverse("start_import"), {"file": SimpleUploadedFile("a.csv", text.encode())}, follow=True
        )

    def test_an_import_is_cut_into_parts_and_shows_how_far_it_is(self):
        lines = [f"sku-{number},Product {number},{number}" for number in range(2500)]
        page = self.upload("\n".join([*lines, "no stock,Product,many"]))
        self.assertContains(page, "waits for its turn")

        drain()

        page = self.client.get(page.request["PATH_INFO"])
        self.assertContains(page, "3 of 3 parts are done, 1 lines were wrong.")
        self.assertNotContains(page, "http-equiv")
        self.assertEqual(Product.objects.filter(tenant=self.acme).count(), 2500)

    def test_a_second_import_changes_products(self):
        self.upload("a,Apple,1\nb,Bread,2")
        self.upload("a,Apple,7")

        drain()

        numbers = dict(Product.objects.filter(tenant=self.acme).values_list("sku", "in_stock"))
        self.assertEqual(numbers, {"a": 7, "b": 2})

    def test_an_export_reports_progress_and_is_downloaded(self):
        Product.objects.bulk_create(
            Product(tenant=self.acme, sku=f"{number:04}", name="Apple", in_stock=1) for number in range(1200)
        )
        Product.objects.create(tenant=self.corner, sku="z", name="Not of Acme", in_stock=1)
        page = self.client.post(reverse("start_export"), follow=True)
        self.assertContains(page, "State: queued")
        export = self.acme.export_set.get()
        pages = []

        def report_and_look(*progress):
            report_progress(*progress)
            for _ in range(1000):  # it is stored in the background
                if b"<progress" in self.client.get(reverse("export", args=[export.pk])).content:
                    break
                time.sleep(0.005)
            pages.append(self.client.get(reverse("export", args=[export.pk])))

        with mock.patch("stock.tasks.report_progress", report_and_look):
            drain()

        self.assertContains(pages[0], "State: running")
        self.assertContains(pages[0], '<progress max="1200" value="500">')
        self.assertContains(self.client.get(reverse("export", args=[export.pk])), "Download")
        written = b"".join(self.client.get(reverse("download", args=[export.pk])).streaming_content)
        self.assertEqual(len(written.splitlines()), 1200)
        self.assertNotIn(b"Not of Acme", written)

    def test_a_tenant_does_not_see_what_is_not_its_own(self):
        upload = Upload.objects.create(tenant=self.corner, file="x")
        invoice = Invoice.objects.create(tenant=self.corner, month="2026-10", cents=1)
        self.assertEqual(self.client.get(reverse("import", args=[upload.pk])).status_code, 404)
        self.assertEqual(self.client.post(reverse("pay", args=[invoice.pk])).status_code, 404)

    def test_a_bank_that_was_down_takes_the_money_once(self):
        invoice = Invoice.objects.create(tenant=self.acme, month="2026-10", cents=2900)
        answers = [bank.BankIsDown("no answer"), "ref-1"]
        with mock.patch("stock.bank.take_money", side_effect=answers) as take_money:
            self.client.post(reverse("pay", args=[invoice.pk]))
            self.client.post(reverse("pay", args=[invoice.pk]))  # a second click
            drain(until=3600)
        self.assertEqual(Payment.objects.get().reference, "ref-1")
        self.assertEqual({call.kwargs["key"] for call in take_money.call_args_list}, {f"invoice-{invoice.pk}"})
        self.assertContains(self.client.get(reverse("home")), "2026-10")


class MonthEndTests(EagerMixin, TenantTestCase):
    def test_a_month_ends_with_an_invoice_a_payment_and_an_email(self):
        tasks.close_last_month.delay()

        invoice = Invoice.objects.get()
        self.assertEqual((invoice.tenant, invoice.cents), (self.acme, plans.PRICES["team"]))
        self.assertIsNotNone(invoice.paid_at)
        self.assertEqual(Payment.objects.get().reference, f"test-invoice-{invoice.pk}")
        (message,) = mail.outbox
        self.assertEqual(message.to, ["acme@example.com"])

    def test_old_files_are_deleted(self):
        upload = Upload.objects.create(tenant=self.acme, file=SimpleUploadedFile("a.csv", b"a,b,1"))
        path = Path(upload.file.path)
        Upload.objects.update(created_at="2026-01-01T00:00:00Z")

        tasks.delete_old_files.delay()

        self.assertFalse(path.exists())
        self.assertFalse(Upload.objects.exists())


class PlanTests(TenantTestCase):
    def test_the_plan_of_a_tenant_is_its_limit(self):
        self.enterContext(private_redis())
        user = get_user_model().objects.create_superuser("admin")
        self.client.force_login(user)
        for plan, limits in (("company", plans.PLANS["company"]), ("free", {})):
            form = {"slug": "acme", "name": "Acme", "email": "acme@example.com", "users": user.pk, "plan": plan}
            self.client.post(reverse("admin:stock_tenant_change", args=[self.acme.pk]), form)

            found = rtq.queues["default"].limits().clients.get("acme")
            self.assertEqual({name: limit.value for name, limit in found.limits.items()} if found else {}, limits)
