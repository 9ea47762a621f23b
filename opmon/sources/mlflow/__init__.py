"""The source ``mlflow``: inputs that production logged to runs."""
