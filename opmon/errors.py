"""The errors opmon raises, and nothing else.

::

    OpmonError                    everything below; catch this to catch all of opmon
    ├── InputError (ValueError)   an argument, an array or a file that cannot be right
    │   └── ConfigError           opmon.yaml or an OPMON_* variable
    ├── PluginError               a named plugin is unknown, cannot be imported or is not what it should be
    ├── ModelError                the model was found but cannot be used
    │   ├── OutOfMemory           it needs more memory for so many inputs than its device has
    │   └── EndlessModel          it did not end, and was stopped
    ├── SourceError               production inputs cannot be read
    ├── UnavailableError          a service opmon needs did not answer; trying again later is right
    │   ├── RegistryUnavailable   MLflow
    │   ├── DatabaseUnavailable   the SQL database
    │   │   └── DatabaseBusy      another process holds what is needed for too long
    │   └── StateUnavailable      the disk of this machine takes no more
    ├── NotFoundError             a model, round, task or event that does not exist
    ├── LeaseHeld                 another process is working on this monitor
    ├── LeaseLost                 the lease expired while this process worked; what was not committed is dropped
    └── DeliveryError             a trigger's target did not take an event

A message says what was given, what is allowed and what to do next. Errors of other libraries are
translated where opmon meets that library (``registry``, ``scoring.session``, ``store``), always ``from`` the original.
"""

from __future__ import annotations


class OpmonError(Exception):
    """The root of all errors that opmon raises on purpose."""


class InputError(OpmonError, ValueError):
    """An argument, an array or a file that cannot be right."""


class ConfigError(InputError):
    """The configuration cannot be right: the message names the key, the value and what is allowed."""


class PluginError(OpmonError):
    """A named plugin is unknown, cannot be imported or does not keep its contract."""


class ModelError(OpmonError):
    """The model was found but cannot be used."""


class OutOfMemory(ModelError):
    """The model needs more memory than its device has, for as many inputs as it was given at once."""


class EndlessModel(ModelError):
    """The model did not end in the time that it has for a batch, and was stopped."""


class SourceError(OpmonError):
    """Production inputs cannot be read."""


class UnavailableError(OpmonError):
    """A service that opmon needs did not answer: nothing is lost, try again later."""


class RegistryUnavailable(UnavailableError):
    """MLflow did not answer."""


class DatabaseUnavailable(UnavailableError):
    """The SQL database did not answer."""


class DatabaseBusy(DatabaseUnavailable):
    """Another process holds what is needed in the SQL database for too long."""

    freed = False
    """Whether one that stood still was made to let go: asked again, the database may do it."""


class StateUnavailable(UnavailableError):
    """The disk of this machine takes no more, or opmon may not write where it keeps its files."""


class NotFoundError(OpmonError):
    """A model, round, task or event that does not exist."""


class LeaseHeld(OpmonError):
    """Another process is working on this monitor."""


class LeaseLost(OpmonError):
    """The lease expired while this process worked: what it had not committed is dropped."""


class DeliveryError(OpmonError):
    """A trigger's target did not take an event; ``retry_after`` seconds is what the target asked for.

    ``final`` is true where no retry can help (a forbidden address, a malformed URL).
    """

    def __init__(self, message: str, *, retry_after: float | None = None, final: bool = False) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.final = final
