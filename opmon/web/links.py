"""Where a browser finds what MLflow holds."""

from __future__ import annotations

from opmon.config import Settings


def run_in_mlflow(settings: Settings, run_id: str | None) -> str | None:
    """The page of a run; None where MLflow is no server, or there is no run."""
    address = str(settings.mlflow.tracking_uri)
    if run_id is None or not address.startswith(("http://", "https://")):
        return None
    scheme, _, rest = address.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2].rstrip('/')}/#/runs/{run_id}"
