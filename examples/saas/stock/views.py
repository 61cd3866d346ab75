"""The pages of a tenant. A page whose job is not over reloads itself."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import FileResponse, Http404
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from django_rtq import BrokerUnavailable, JobNotFound, JobState, rtq
from stock.models import Export, Invoice, Product, Upload
from stock.tasks import charge, export_products, split_upload

OVER = (JobState.SUCCEEDED, JobState.DEAD, JobState.CANCELLED, JobState.EXPIRED)


def tenant_of(request):
    tenant = request.user.tenants.first()
    if tenant is None:
        raise PermissionDenied("This user belongs to no tenant.")
    return tenant


@login_required
@require_GET
def home(request):
    tenant = tenant_of(request)
    lists = {
        "uploads": Upload.objects.filter(tenant=tenant).order_by("-pk")[:10],
        "exports": Export.objects.filter(tenant=tenant).order_by("-pk")[:10],
        "invoices": Invoice.objects.filter(tenant=tenant).order_by("-month")[:24],
        "products": Product.objects.filter(tenant=tenant).count(),
    }
    return render(request, "stock/home.html", {"tenant": tenant, **lists})


@login_required
@require_POST
def start_import(request):
    if "file" not in request.FILES:
        messages.error(request, "Choose a file.")
        return redirect("home")
    tenant = tenant_of(request)
    with transaction.atomic():
        upload = Upload.objects.create(tenant=tenant, file=request.FILES["file"])
        split_upload.delay(tenant.slug, upload.pk)  # a row of this transaction
    return redirect("import", upload.pk)


@login_required
@require_GET
def show_import(request, pk):
    upload = get_object_or_404(Upload, pk=pk, tenant=tenant_of(request))
    return render(request, "stock/import.html", {"upload": upload, "reload": not upload.is_done})


@login_required
@require_POST
def start_export(request):
    tenant = tenant_of(request)
    with transaction.atomic():
        export = Export.objects.create(tenant=tenant)
        export.job_id = export_products.delay(tenant.slug, export.pk).id
        export.save()
    return redirect("export", export.pk)


@login_required
@require_GET
def show_export(request, pk):
    export = get_object_or_404(Export, pk=pk, tenant=tenant_of(request))
    context = {"export": export, "state": "done", "progress": None, "reload": False}
    if not export.file:
        try:
            job = rtq.job(export.job_id).details()
        except JobNotFound:  # still in the outbox
            context |= {"state": "accepted", "reload": True}
        except BrokerUnavailable:
            context |= {"state": "not known at the moment", "reload": True}
        else:
            context |= {"state": job.state, "progress": job.progress, "reload": job.state not in OVER}
    return render(request, "stock/export.html", context)


@login_required
@require_GET
def download(request, pk):
    export = get_object_or_404(Export, pk=pk, tenant=tenant_of(request))
    if not export.file:
        raise Http404("It is not written yet.")
    return FileResponse(export.file.open("rb"), as_attachment=True, filename="stock.csv")


@login_required
@require_POST
def pay(request, pk):
    tenant = tenant_of(request)
    invoice = get_object_or_404(Invoice, pk=pk, tenant=tenant, paid_at=None)
    charge.using(priority=5).delay(tenant.slug, invoice.pk)
    messages.success(request, f"The invoice for {invoice.month} is being paid.")
    return redirect("home")
