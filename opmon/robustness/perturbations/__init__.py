"""Perturbations of images, texts and tables, found by name through the entry points ``opmon.perturbations``."""

from __future__ import annotations
