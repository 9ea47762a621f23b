"""Linear maps of whole batches of images: what blurs, moves and resizes them, without a loop over the images."""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from opmon.robustness.perturbations.base import Images
from opmon.types import Array

SMALL = 32
"""The side of the images that severities in pixels are calibrated on (CIFAR-10-C); larger images scale them."""


def clipped(images: Array) -> Images:
    """The images in [0, 1] and float32."""
    return np.asarray(np.clip(images, 0, 1), np.float32)


_MOST_PIXELS = 1 << 16
_KEPT: dict[tuple[str, tuple[int, ...]], NDArray[np.float32]] = {}
_MOST_KEPT, _MOST_NUMBERS = 8, 2_000_000


def normals(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Standard normal numbers, not to be changed. All severities of a perturbation draw the same ones for the same
    inputs: of a generator in the same state they are drawn once."""
    state = rng.bit_generator.state
    key = (str(state), shape)
    numbers = _KEPT.get(key)
    if numbers is None:
        numbers = rng.standard_normal(shape, dtype=np.float32)
        numbers.setflags(write=False)
        if numbers.size <= _MOST_NUMBERS:
            while len(_KEPT) >= _MOST_KEPT:
                _KEPT.pop(next(iter(_KEPT)), None)
            _KEPT[key] = numbers
    return numbers


def side_ratio(images: Images) -> float:
    """The size of the images relative to those of the calibration."""
    return float(min(images.shape[1:3]) / SMALL)


def separable(images: Images, rows: NDArray[np.float32], columns: NDArray[np.float32]) -> Images:
    """``rows @ image @ columns.T`` for every image and channel."""
    n, height, width, channels = images.shape
    moved = np.matmul(rows, images.reshape(n, height, width * channels)).reshape(n, len(rows), width, channels)
    if channels == 1:
        return np.asarray(np.matmul(moved[..., 0], columns.T)[..., None])
    return np.moveaxis(np.matmul(np.moveaxis(moved, 3, 1), columns.T), 1, 3)


def mapped(images: Images, operator: sparse.csr_array) -> Images:
    """Apply a sparse operator (pixels × pixels) to every image and channel."""
    n, height, width, channels = images.shape
    flat = np.ascontiguousarray(images.reshape(n, height * width, channels).transpose(1, 0, 2)).reshape(
        height * width, n * channels
    )
    moved = (operator @ flat).reshape(height * width, n, channels)
    return np.ascontiguousarray(moved.transpose(1, 0, 2)).reshape(images.shape)


def mapped_by(images: Images, choices: NDArray[np.int64], operators: dict[int, sparse.csr_array]) -> Images:
    """Apply to each image the operator of its choice."""
    result = np.empty_like(images)
    for choice, operator in operators.items():
        chosen = choices == choice
        if chosen.any():
            result[chosen] = mapped(images[chosen], operator)
    return result


def affine(height: int, width: int, matrix: tuple[float, float, float, float]) -> sparse.csr_array:
    """The operator that shows at each pixel (x, y) from the centre the bilinear value at ``matrix @ (x, y)``; black
    outside the image. Those of small images are kept: of one of a million pixels an operator takes 50 MB."""
    made = _affine if height * width <= _MOST_PIXELS else _affine.__wrapped__
    return made(height, width, matrix)


@functools.lru_cache(maxsize=64)
def _affine(height: int, width: int, matrix: tuple[float, float, float, float]) -> sparse.csr_array:
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    x, y = x - (width - 1) / 2, y - (height - 1) / 2
    a, b, c, d = matrix
    source_x = a * x + b * y + (width - 1) / 2
    source_y = c * x + d * y + (height - 1) / 2
    return _bilinear(source_x.ravel(), source_y.ravel(), height, width)


@functools.lru_cache(maxsize=256)
def line(length: float, angle: float) -> tuple[tuple[int, int, float], ...]:
    """A line of this length (pixels) and angle (radians) about a pixel: the pixels on it, each as (down, right, its
    share), bilinear."""
    points = np.linspace(-length / 2, length / 2, max(2, 2 * int(np.ceil(length)) + 1))
    shares: defaultdict[tuple[int, int], float] = defaultdict(float)
    for point in points.tolist():
        right, down = point * math.cos(angle), point * math.sin(angle)
        left, top = math.floor(right), math.floor(down)
        for dx, dy in ((0, 0), (0, 1), (1, 0), (1, 1)):
            share = abs(1 - dx - (right - left)) * abs(1 - dy - (down - top))
            shares[top + dy, left + dx] += share / len(points)
    return tuple((down, right, share) for (down, right), share in shares.items() if share > 1e-9)


def averaged(images: Images, steps: Sequence[tuple[int, int, float]]) -> Images:
    """The mean over the pixels that lie so many (down, right) of each, by their shares; edges repeated.

    The images are moved as a whole: an operator for it would have a number for each pixel and each step.
    """
    height, width = images.shape[1:3]
    far = max(max(abs(down), abs(right)) for down, right, _ in steps)
    padded = np.pad(images, ((0, 0), (far, far), (far, far), (0, 0)), mode="edge")
    result = np.zeros(images.shape, np.float32)
    for down, right, share in steps:
        y, x = far + down, far + right
        result += np.float32(share) * padded[:, y : y + height, x : x + width]
    return result


@functools.lru_cache(maxsize=256)
def gaussian_matrix(size: int, sigma: float) -> NDArray[np.float32]:
    """A one-dimensional Gaussian blur as a matrix, edges repeated, cut off at four σ."""
    radius = max(1, int(4 * sigma + 0.5))
    weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    matrix = np.zeros((size, size))
    for offset, weight in zip(range(-radius, radius + 1), weights / weights.sum(), strict=True):
        np.add.at(matrix, (np.arange(size), np.clip(np.arange(size) + offset, 0, size - 1)), weight)
    return matrix.astype(np.float32)


@functools.lru_cache(maxsize=256)
def resolution_matrix(size: int, coarse: int) -> NDArray[np.float32]:
    """Box averages onto ``coarse`` pixels and back again, as one matrix."""
    edges = np.linspace(0, size, coarse + 1)
    pixel = np.arange(size)[None]
    overlap = np.clip(np.minimum(edges[1:, None], pixel + 1) - np.maximum(edges[:-1, None], pixel), 0, None)
    down = overlap / overlap.sum(axis=1, keepdims=True)
    up = (overlap / overlap.sum(axis=0, keepdims=True)).T
    return np.asarray(up @ down, np.float32)


def _bilinear(x: NDArray[np.float64], y: NDArray[np.float64], height: int, width: int) -> sparse.csr_array:
    left, top = np.floor(x).astype(int), np.floor(y).astype(int)
    rows, columns, values = [], [], []
    for dx in (0, 1):
        for dy in (0, 1):
            column, row = left + dx, top + dy
            weight = np.abs(1 - dx - (x - left)) * np.abs(1 - dy - (y - top))
            inside = (column >= 0) & (column < width) & (row >= 0) & (row < height) & (weight > 1e-9)
            rows.append(np.flatnonzero(inside))
            columns.append(row[inside] * width + column[inside])
            values.append(weight[inside])
    entries = (np.concatenate(values).astype(np.float32), (np.concatenate(rows), np.concatenate(columns)))
    return sparse.csr_array(entries, shape=(height * width, height * width))
