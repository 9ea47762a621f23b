"""MLflow as opmon uses it: model versions, runs, metrics, artifacts, tags. Nothing else imports mlflow."""

from __future__ import annotations

from opmon.registry.registry import MlflowRegistry

__all__ = ["MlflowRegistry"]
