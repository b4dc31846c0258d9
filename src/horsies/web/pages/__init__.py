"""One module per page; each lists its routes, and here they meet."""

from starlette.routing import Route

from horsies.web.pages import (
    failures,
    maintenance,
    overview,
    queues,
    schedules,
    sign_in,
    status,
    task,
    tasks,
    workers,
    workflows,
)

PAGES: list[Route] = [
    *overview.ROUTES,
    *tasks.ROUTES,
    *task.ROUTES,
    *queues.ROUTES,
    *workers.ROUTES,
    *workflows.ROUTES,
    *schedules.ROUTES,
    *failures.ROUTES,
    *maintenance.ROUTES,
    *status.ROUTES,
    *sign_in.ROUTES,
]
