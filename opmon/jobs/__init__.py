"""Work of a round that may be done elsewhere: a function of an explicit job, which gives files and small summaries.

A job is a frozen dataclass that can be pickled: it holds all that its function needs, and nothing of the monitor's
database or MLflow. Done again, it gives the same; what it had finished before a kill is kept.
"""
