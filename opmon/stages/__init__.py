"""What moves a round from one state to the next, one file per step; ``opmon.monitor`` tells the story in their order.

Each step does its outside work first (read, score, talk to MLflow), in a way that doing it again gives the same, and
then changes the round in one fenced transaction. A kill before the transaction repeats the step; a kill after it goes
on with the next.
"""

from __future__ import annotations
