"""Where a browser finds what MLflow holds."""

from __future__ import annotations

from opmon.web.site import Site


def run_in_mlflow(site: Site, run_id: str | None) -> str | None:
    """The page of a run; None where MLflow is no server, or there is no run."""
    if run_id is not None and site.mlflow_pages is not None:
        return f"{site.mlflow_pages.rstrip('/')}/#/runs/{run_id}"
    address = str(site.settings.mlflow.tracking_uri)
    if run_id is None or not address.startswith(("http://", "https://")):
        return None
    scheme, _, rest = address.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2].rstrip('/')}/#/runs/{run_id}"
