"""The source ``delta``: tables of Delta Lake, as Databricks and others write them."""
