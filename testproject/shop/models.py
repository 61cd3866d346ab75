"""The models of the shop."""

from __future__ import annotations

from django.db import models


class Tenant(models.Model):
    """The owner of a shop. Its slug is the client of its jobs."""

    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=100)
    plan = models.CharField(max_length=20, default="free")

    def __str__(self) -> str:
        return self.name


class Customer(models.Model):
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    name = models.CharField(max_length=100)
    email = models.EmailField()

    def __str__(self) -> str:
        return f"{self.name} <{self.email}>"


class Order(models.Model):
    class Status(models.TextChoices):
        PLACED = "placed"
        PAID = "paid"
        SHIPPED = "shipped"

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    customer = models.ForeignKey(Customer, on_delete=models.CASCADE)
    number = models.PositiveIntegerField()
    total_cents = models.PositiveIntegerField(default=0)
    status = models.CharField(max_length=10, choices=Status, default=Status.PLACED)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "number"], name="one_number_per_tenant")]

    def __str__(self) -> str:
        return f"{self.tenant.slug} {self.number}"


class OrderMail(models.Model):
    """An email that was sent. Numbered in the order of sending, over all tenants."""

    order = models.OneToOneField(Order, on_delete=models.CASCADE)
    recipient = models.EmailField()
    subject = models.CharField(max_length=200)
    sent_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.subject} to {self.recipient}"


class Service(models.Model):
    """An external service that the shop depends on, with a switch to turn it off."""

    name = models.SlugField(unique=True)
    works = models.BooleanField(default=True)

    def __str__(self) -> str:
        return f"{self.name} ({'works' if self.works else 'out of order'})"
