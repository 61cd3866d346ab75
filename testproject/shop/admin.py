"""The shop in the admin."""

from __future__ import annotations

from django.contrib import admin

from testproject.shop.models import Customer, Order, OrderMail, Service, Tenant


@admin.register(Tenant)
class TenantAdmin(admin.ModelAdmin):
    list_display = ("name", "slug")


@admin.register(Customer)
class CustomerAdmin(admin.ModelAdmin):
    list_display = ("name", "email", "tenant")
    list_filter = ("tenant",)


@admin.register(Order)
class OrderAdmin(admin.ModelAdmin):
    list_display = ("number", "tenant", "customer", "total_cents", "status")
    list_filter = ("tenant", "status")
    list_select_related = ("tenant", "customer")


@admin.register(OrderMail)
class OrderMailAdmin(admin.ModelAdmin):
    list_display = ("id", "subject", "recipient", "sent_at")
    raw_id_fields = ("order",)


@admin.register(Service)
class ServiceAdmin(admin.ModelAdmin):
    list_display = ("name", "works")
    list_editable = ("works",)
