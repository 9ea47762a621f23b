-- Run once, by the PostgreSQL image, when its folder is empty: one database for opmon, one for MLflow.
CREATE DATABASE opmon;
CREATE DATABASE mlflow;
