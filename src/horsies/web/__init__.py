"""The dashboard in a browser: an ASGI app over `app.operations`. Needs `horsies[web]`."""

from horsies.web.access import Authenticate, Role, Viewer, local_viewers
from horsies.web.application import create_app
from horsies.web.credentials import basic_viewers, hash_password, proxy_viewers, token_viewers
from horsies.web.options import WebOptions

__all__ = [
    "Authenticate",
    "Role",
    "Viewer",
    "WebOptions",
    "basic_viewers",
    "create_app",
    "hash_password",
    "local_viewers",
    "proxy_viewers",
    "token_viewers",
]
