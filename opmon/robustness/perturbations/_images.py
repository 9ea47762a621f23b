"""Linear maps of whole batches of images: what blurs, moves and resizes them, without a loop over the images."""

from __future__ import annotations

import functools

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


@functools.lru_cache(maxsize=256)
def affine(height: int, width: int, matrix: tuple[float, float, float, float]) -> sparse.csr_array:
    """The operator that shows at each pixel (x, y) from the centre the bilinear value at ``matrix @ (x, y)``; black
    outside the image."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    x, y = x - (width - 1) / 2, y - (height - 1) / 2
    a, b, c, d = matrix
    source_x = a * x + b * y + (width - 1) / 2
    source_y = c * x + d * y + (height - 1) / 2
    return _bilinear(source_x.ravel(), source_y.ravel(), height, width)


@functools.lru_cache(maxsize=256)
def line_blur(height: int, width: int, length: float, angle: float) -> sparse.csr_array:
    """The operator that averages along a line of this length (pixels) and angle (radians), edges repeated."""
    count = max(2, 2 * int(np.ceil(length)) + 1)
    offsets = np.linspace(-length / 2, length / 2, count)
    y, x = (grid.ravel().astype(np.float64) for grid in np.mgrid[0:height, 0:width])
    total = sum(
        _bilinear(
            np.clip(x + offset * np.cos(angle), 0, width - 1),
            np.clip(y + offset * np.sin(angle), 0, height - 1),
            height,
            width,
        )
        for offset in offsets
    )
    return (total / count).tocsr().astype(np.float32)


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
