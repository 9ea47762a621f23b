"""Which model a command is about: a monitor's, one named by its address, or an ONNX file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opmon.cli.common import one_monitor, settings_of

if TYPE_CHECKING:
    from opmon.abc import Registry
    from opmon.config import MonitorSettings
    from opmon.stages.models import Reading
    from opmon.types import ModelVersion


@dataclass(frozen=True)
class Subject:
    """A model on this machine; ``version`` and ``registry`` are None for a plain file."""

    path: Path
    settings: MonitorSettings
    folder: Path
    version: ModelVersion | None = None
    registry: Registry | None = None

    @property
    def title(self) -> str:
        """What the model is called: a registered one by name and version, for its file is always called ``model``."""
        return self.path.stem if self.version is None else f"{self.version.name} v{self.version.version}"

    @property
    def reading(self) -> Reading:
        """How the monitor says the model is to be read, as arguments of ``Scorer.open``."""
        from opmon.stages.models import answering, reading_of, signature_of

        signature: tuple[str, ...] = ()
        if self.registry is not None and self.version is not None:
            signature = signature_of(self.registry, self.version)
        return {**answering(self.settings), "reading": reading_of(self.settings), "signature": signature}


def subject_of(config: Path | None, monitor: str | None, model: str | None) -> Subject:
    """The model named on the command line, read as the monitor says; a file needs no configuration."""
    from opmon.errors import ConfigError, NotFoundError

    if model is not None and not model.startswith("models:/"):
        if not Path(model).is_file():
            raise NotFoundError(f"{model!r} is neither an ONNX file nor an address such as models:/name@alias")
        try:
            settings = settings_of(config)
            chosen = settings.monitor(one_monitor(settings, monitor))
        except (ConfigError, NotFoundError):
            if config is not None or monitor is not None:
                raise
            return Subject(Path(model), _plain(), Path(".opmon"))
        return Subject(Path(model), chosen, settings.state)
    from opmon.config.registry import registry_of
    from opmon.stages.models import model_file

    settings = settings_of(config)
    chosen = settings.monitor(one_monitor(settings, monitor))
    registry = registry_of(settings)
    version = registry.resolve(model or chosen.model)
    if chosen.scoring.by != "onnx":
        raise ConfigError(
            f"monitor {chosen.name!r} has scoring: {{by: {chosen.scoring.by}}}, and this needs the model's ONNX graph; "
            f"name an ONNX file instead"
        )
    path = model_file(chosen, registry, version, settings.state)
    return Subject(path, chosen, settings.state, version, registry)


def _plain() -> MonitorSettings:
    """The settings of a model that no monitor watches."""
    from opmon.config import MonitorSettings

    return MonitorSettings.model_validate(
        {"model": "models:/file/1", "source": {"type": "files", "path": "."}, "sampler": {"type": "srs"}}
    )
