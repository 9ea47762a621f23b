"""A configuration for a registered model and a log, by looking at both: what ``opmon init --from`` writes."""

from opmon.setup.proposing import Proposal, propose

__all__ = ["Proposal", "propose"]
