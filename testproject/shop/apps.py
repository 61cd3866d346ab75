"""The shop's app."""

from django.apps import AppConfig


class ShopConfig(AppConfig):
    name = "testproject.shop"
    verbose_name = "Shop"
