"""The work in the background. The first argument of each task is the tenant, which is the client of its jobs."""

import csv
import io
import logging
from datetime import timedelta
from itertools import islice

from django.core.files.base import ContentFile
from django.core.mail import EmailMessage, mail_admins
from django.db.models import F
from django.utils import timezone

from django_rtq import cron, exponential, report_progress, task, workflow
from stock import bank
from stock.models import Export, Invoice, Payment, Product, Tenant, Upload
from stock.plans import PRICES

ROWS = 1000
DAYS_KEPT = 7
BERLIN = "Europe/Berlin"

logger = logging.getLogger(__name__)
of_tenant = task.with_options(client=lambda tenant, **_: tenant, time_limit=120)

# Imports


@of_tenant(exactly_once=True)
def split_upload(tenant, upload_id):
    """Enqueue a job for each thousand lines. Exactly once: the rows of the outbox are written in its transaction."""
    upload = Upload.objects.get(pk=upload_id)
    starts, offset = [], 0
    with upload.file.open("rb") as file:
        for number, line in enumerate(lines_of(file)):
            if number % ROWS == 0:
                starts.append(offset)
            offset += len(line)
    Upload.objects.filter(pk=upload_id).update(parts=len(starts))
    import_part.delay_many([((tenant, upload_id, start), {}) for start in starts])
    logger.info("%d parts", len(starts))


def lines_of(file):
    """The lines from here on. Django's own iteration goes back to the beginning."""
    return iter(file.readline, b"")


@of_tenant(exactly_once=True)
def import_part(tenant, upload_id, start):
    """Read a thousand lines: sku, name, number in stock. Products that are known are changed."""
    upload = Upload.objects.get(pk=upload_id)
    with upload.file.open("rb") as file:
        file.seek(start)
        rows = list(csv.reader(line.decode("utf-8", "replace") for line in islice(lines_of(file), ROWS)))
    good = {row[0]: row for row in rows if len(row) == 3 and row[0] and row[2].strip().isdigit()}
    Product.objects.bulk_create(
        [
            Product(tenant_id=upload.tenant_id, sku=sku[:50], name=name[:200], in_stock=int(number))
            for sku, name, number in good.values()
        ],
        update_conflicts=True,
        unique_fields=["tenant", "sku"],
        update_fields=["name", "in_stock"],
    )
    bad = sum(len(row) != 3 or not row[0] or not row[2].strip().isdigit() for row in rows)
    Upload.objects.filter(pk=upload_id).update(parts_done=F("parts_done") + 1, bad_lines=F("bad_lines") + bad)


# Exports


@of_tenant
def export_products(tenant, export_id):
    """Write a file. A second run writes it again."""
    products = Product.objects.filter(tenant__slug=tenant).order_by("sku")
    total = products.count()
    text = io.StringIO()
    writer = csv.writer(text)
    for number, product in enumerate(products.iterator(), start=1):
        writer.writerow([product.sku, product.name, product.in_stock])
        if number % 500 == 0:
            report_progress(number, total, "products")
    export = Export.objects.get(pk=export_id)
    export.file.save(f"{tenant}-{export_id}.csv", ContentFile(text.getvalue().encode()))


# Invoices


@task(schedule=cron("0 3 1 * *", tz=BERLIN))
def close_last_month():
    """On the first of a month: an invoice for each tenant that pays."""
    month = f"{timezone.localdate().replace(day=1) - timedelta(days=1):%Y-%m}"
    tenants = Tenant.objects.exclude(plan="free").values_list("slug", flat=True)
    close_month.delay_many([((slug, month), {}) for slug in tenants])


@of_tenant
def close_month(tenant, month):
    """Invoice, payment, e-mail, one after the other. There is one workflow for each tenant and month at a time."""
    with workflow("month-end", client=tenant, key=f"{tenant}:{month}") as flow:
        invoice = flow.add(make_invoice, tenant, month)
        payment = flow.add(charge, tenant, invoice.result)
        flow.after(payment).add(send_invoice, tenant, invoice.result)
        flow.on_death(tell_support, tenant, month)


@of_tenant
def make_invoice(tenant, month):
    owner = Tenant.objects.get(slug=tenant)
    invoice, _ = Invoice.objects.get_or_create(tenant=owner, month=month, defaults={"cents": PRICES[owner.plan]})
    return invoice.pk


@of_tenant(
    queue_name="bank",
    exactly_once=True,
    max_attempts=8,
    backoff=exponential(base=30, cap=3600),
    retry_on=[bank.BankIsDown],
)
def charge(tenant, invoice_id):
    """Take the money and note it.

    Our rows are written once for each job (exactly_once). The bank is asked again if we did not hear its answer, so it
    gets a key. Two jobs, as of two clicks, wait for each other at the row of the invoice.
    """
    invoice = Invoice.objects.select_for_update().get(pk=invoice_id)
    if invoice.paid_at is None:
        reference = bank.take_money(tenant, invoice.cents, key=f"invoice-{invoice.pk}")
        Payment.objects.create(invoice=invoice, reference=reference)
        Invoice.objects.filter(pk=invoice_id).update(paid_at=timezone.now())


@of_tenant
def send_invoice(tenant, invoice_id):
    """A job of its own in the queue of e-mails, with the rate that the supplier allows."""
    invoice = Invoice.objects.select_related("tenant").get(pk=invoice_id)
    message = EmailMessage(
        f"Your invoice for {invoice.month}", f"We have taken {invoice.cents / 100:.2f} EUR.", to=[invoice.tenant.email]
    )
    message.rtq_options = {"client": tenant}
    message.send()


@of_tenant
def tell_support(tenant, month):
    mail_admins(f"{tenant}: {month} is not paid", "A job of the workflow month-end is dead: see the admin.")


# Every night


@task(schedule=cron("30 3 * * *", tz=BERLIN), time_limit=600)
def delete_old_files():
    """Delete files of uploads and exports after a week."""
    before = timezone.now() - timedelta(days=DAYS_KEPT)
    for model in (Export, Upload):
        for kept in model.objects.filter(created_at__lt=before).iterator():
            kept.file.delete(save=False)
            kept.delete()
