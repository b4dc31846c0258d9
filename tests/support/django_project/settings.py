"""The settings of the tests' Django project, in one place; the environment names the database."""

import json
import os
from importlib.util import find_spec
from typing import Any

import psycopg.conninfo

from horsies.contrib.django.simple_queue import install_alias

install_alias()


def database(url: str) -> dict[str, Any]:
    """A PostgreSQL URL as an entry of DATABASES."""
    parts = psycopg.conninfo.conninfo_to_dict(url)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.get("dbname", "postgres"),
        "USER": parts.get("user", ""),
        "PASSWORD": parts.get("password", ""),
        "HOST": parts.get("host", ""),
        "PORT": str(parts.get("port", "")),
    }


HAS_BUILT_IN_TASKS = find_spec("django.tasks") is not None

SECRET_KEY = "not a secret"
DEBUG = False
USE_TZ = True
TIME_ZONE = "UTC"
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "support.django_project.urls"
STATIC_URL = "/static/"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    *([] if HAS_BUILT_IN_TASKS else ["django_tasks"]),
    "horsies.contrib.django",
    "horsies.contrib.django.simple_queue",
    "support.django_project.shop",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
TASKS = {
    "default": {
        "BACKEND": "horsies.contrib.django.HorsiesBackend",
        "QUEUES": ["default", "low", "x"],
    },
    "other": {"BACKEND": "horsies.contrib.django.HorsiesBackend", "QUEUES": ["default"]},
}
DATABASES = {"default": database(os.environ.get("HORSIES_DJANGO_URL", "postgresql:///postgres"))}
HORSIES: dict[str, Any] = {}

# What a test says to the processes that it starts.
globals().update(json.loads(os.environ.get("HORSIES_DJANGO_SETTINGS", "{}")))
DATABASES["default"].update(json.loads(os.environ.get("HORSIES_DJANGO_DATABASE", "{}")))
