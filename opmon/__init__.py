"""opmon: how accurate is the model in production today, how sure are we, and when must we retrain?"""

from __future__ import annotations

__version__ = "0.1.0"
