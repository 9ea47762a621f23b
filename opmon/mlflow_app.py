"""The pages inside MLflow's own server: ``mlflow server --app-name opmon`` serves them below ``/opmon``.

MLflow's pages and API stay as they are. The monitors run elsewhere: ``opmon serve`` or ``opmon run``.
"""

from __future__ import annotations

import os

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import Mount, Route

from opmon.config import load
from opmon.errors import ConfigError
from opmon.health.health import Health
from opmon.store.engine import open_store
from opmon.web.app import application
from opmon.web.server import CALLS, tell_closed
from opmon.web.site import Site

PREFIX = "/opmon"
_SERVER, _STATIC_PREFIX = "_MLFLOW_SGI_NAME", "_MLFLOW_STATIC_PREFIX"
"""How MLflow tells an app which server runs it, and what stands before its own pages."""


def create_app() -> FastAPI:
    """MLflow's own application with the pages in it, of the configuration in ``$OPMON_CONFIG`` or ``opmon.yaml``."""
    server = os.environ.get(_SERVER, "uvicorn")
    if server != "uvicorn":
        raise ConfigError(
            f"opmon's pages need the server that mlflow server starts by itself, uvicorn, and this is {server}: leave "
            f"out --{server}-opts, or serve the pages on an address of their own with opmon serve"
        )
    from mlflow.server.fastapi_app import app as mlflow_app

    return with_pages(mlflow_app, os.environ.get(_STATIC_PREFIX, "").rstrip("/"))


def with_pages(mlflow_app: FastAPI, static_prefix: str = "") -> FastAPI:
    """The same application, which answers below :data:`PREFIX` with opmon's pages and API."""
    settings = load(None)
    store = open_store(settings.database.get_secret_value())
    tell_closed(settings, store)
    site = Site(settings, store, health=Health(settings, store, "web"), mlflow_pages=static_prefix or "/")
    site.audited.start()
    where = static_prefix + PREFIX
    pages = application(site, at_once=CALLS)

    async def moved(request: Request) -> RedirectResponse:
        return RedirectResponse(f"{request.scope.get('root_path', '')}{where}/")

    mlflow_app.router.routes[:0] = [Route(where, moved), Mount(where, app=pages)]
    return mlflow_app
