"""Tenants and what they own. The slug of a tenant is the client of its jobs."""

from django.conf import settings
from django.db import models

from stock.plans import PLANS


class Tenant(models.Model):
    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=100)
    email = models.EmailField()
    plan = models.CharField(max_length=20, choices=[(name, name) for name in PLANS], default="free")
    users = models.ManyToManyField(settings.AUTH_USER_MODEL, related_name="tenants")

    def __str__(self):
        return self.name


class Product(models.Model):
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    sku = models.CharField(max_length=50)
    name = models.CharField(max_length=200)
    in_stock = models.PositiveIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "sku"], name="one_product_for_each_sku")]

    def __str__(self):
        return f"{self.sku} {self.name}"


class Upload(models.Model):
    """A file of products. It is read in parts, and each part is a job."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    file = models.FileField(upload_to="uploads/")
    created_at = models.DateTimeField(auto_now_add=True)
    parts = models.PositiveIntegerField(null=True)  # None: they are not counted yet
    parts_done = models.PositiveIntegerField(default=0)
    bad_lines = models.PositiveIntegerField(default=0)

    def __str__(self):
        return f"upload {self.pk}"

    @property
    def is_done(self):
        return self.parts == self.parts_done


class Export(models.Model):
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    job_id = models.CharField(max_length=32, blank=True)
    file = models.FileField(upload_to="exports/", blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self):
        return f"export {self.pk}"


class Invoice(models.Model):
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    month = models.CharField(max_length=7)  # 2026-11
    cents = models.PositiveIntegerField()
    paid_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "month"], name="one_invoice_for_each_month")]

    def __str__(self):
        return f"{self.tenant} {self.month}"


class Payment(models.Model):
    invoice = models.ForeignKey(Invoice, on_delete=models.PROTECT)
    reference = models.CharField(max_length=100)  # of the bank

    def __str__(self):
        return self.reference
