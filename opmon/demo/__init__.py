"""What ``opmon demo`` shows: a model, a stream that drifts, people who label, an alarm, a retraining.

::

    digits ─► model ─► registry          stream ─► files ─► Monitor.advance() ─► annotators ─► Monitor.advance()
    (bundled) (MLP, ONNX) (MLflow)       (window by window)      draw               answer         estimate, alarm
                                                 ▲                                                     │
                                                 └──────── version 2 answers ◄──── retraining ◄────────┘

Everything between the files and the alarm is opmon as it runs in production; only the world around it is simulated.
``plot`` has its plan and events, ``story`` runs it, ``terminal`` prints it.
"""
