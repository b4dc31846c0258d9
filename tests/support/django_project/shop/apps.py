"""A user's app with one table and tasks."""

from django.apps import AppConfig


class ShopConfig(AppConfig):
    name = "support.django_project.shop"
    label = "shop"
