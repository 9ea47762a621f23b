"""The sources ``mlflow`` and ``mlflow_traces``: inputs that production logged to runs, or as traces."""
