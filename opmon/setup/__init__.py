"""The configuration that ``opmon init --from`` writes after looking at a registered model and a log."""

from opmon.setup.proposing import Proposal, propose

__all__ = ["Proposal", "propose"]
