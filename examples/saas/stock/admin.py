"""The models in the admin, beside the pages of django_rtq."""

from django.contrib import admin

from stock.models import Export, Invoice, Payment, Product, Tenant, Upload


@admin.register(Tenant)
class TenantAdmin(admin.ModelAdmin):
    list_display = ["name", "slug", "plan"]


admin.site.register([Export, Invoice, Payment, Product, Upload])
