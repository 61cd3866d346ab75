"""The models in the admin, beside the pages of django_rtq."""

from functools import partial

from django.contrib import admin
from django.db import transaction

from stock import plans
from stock.models import Export, Invoice, Payment, Product, Tenant, Upload


@admin.register(Tenant)
class TenantAdmin(admin.ModelAdmin):
    list_display = ["name", "slug", "plan"]

    def save_model(self, request, obj, form, change):
        super().save_model(request, obj, form, change)
        transaction.on_commit(partial(plans.apply, obj))


admin.site.register([Export, Invoice, Payment, Product, Upload])
