"""Models asked through their own MLflow flavor, in a process of their own."""
