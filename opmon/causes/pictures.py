"""What simple statistics say of pictures: blur, noise, light, contrast, how things stand, lie and fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from opmon.causes.features import Measurements
from opmon.types import Array, Floats, Numbers

LARGEST = 64
"""Pictures are looked at with at most so many pixels a side."""
PORTION = 200
"""Pictures that are looked at together."""
ENOUGH = 8
"""Of a class with so many pictures it is told how a picture differs from those like it."""

_WORDS: Mapping[str, tuple[str | None, str | None]] = {
    "edges": ("hard edges in the pictures", "blur in the pictures"),
    "grain": ("noise in the pictures", None),
    "brightness": ("bright pictures", "dark pictures"),
    "contrast": ("strong contrast in the pictures", "weak contrast in the pictures"),
    "lean": ("pictures that lean to the left", "pictures that lean to the right"),
    "turn": ("turned pictures", None),
    "right": ("pictures that are shifted to the right", "pictures that are shifted to the left"),
    "down": ("pictures that are shifted down", "pictures that are shifted up"),
    "extent": ("large things in the pictures", "small things in the pictures"),
    "extremes": ("parts of the pictures are plain black or white", None),
    "colour": ("strong colours in the pictures", "weak colours in the pictures"),
}


def picture_features(pictures: Sequence[Array | None], classes: Sequence[str] | None = None) -> list[Measurements]:
    """Statistics of pictures, heights × widths of numbers, in colour or not; NaN where there is no picture.

    With ``classes``, what a picture shows, each is held against the median of its class: a shoe is darker than a shirt,
    and not for that too dark.
    """
    stats = {name: np.full(len(pictures), np.nan) for name in _WORDS}
    shapes: dict[tuple[int, ...], list[int]] = {}
    for at, picture in enumerate(pictures):
        if picture is not None and picture.ndim in (2, 3) and min(picture.shape[:2]) >= 4:
            shapes.setdefault(picture.shape, []).append(at)
    known = [pictures[at] for some in shapes.values() for at in some]
    if not known:
        return []
    low = min(float(np.nanmin(each)) for each in known if each is not None)
    high = max(float(np.nanmax(each)) for each in known if each is not None)
    portions = [some[at : at + PORTION] for some in shapes.values() for at in range(0, len(some), PORTION)]
    for some in portions:
        stack = np.stack([np.asarray(pictures[at], dtype=np.float32) for at in some])
        for name, values in _statistics((np.nan_to_num(stack) - low) / ((high - low) or 1.0)).items():
            stats[name][some] = values
    found = []
    for name, (above, below) in _WORDS.items():
        if not np.isfinite(stats[name]).any():
            continue
        values = _within(stats[name], classes)
        if float(np.nanstd(values)) > 1e-6:
            found.append(Measurements(name, values, above, below))
    return found


def _within(values: Floats, classes: Sequence[str] | None) -> Floats:
    """How far from the median of its class each value is, where classes have enough pictures."""
    if classes is None:
        return values
    names, number = np.unique(np.asarray(classes, dtype=str), return_inverse=True)
    usual, centre = np.nanmedian(values), np.empty(len(names))
    for at in range(len(names)):
        own = values[number == at]
        own = own[np.isfinite(own)]
        centre[at] = np.median(own) if len(own) >= ENOUGH else usual
    return np.asarray(values - centre[number])


def _statistics(stack: Numbers) -> dict[str, Numbers]:
    """Of pictures of one shape, between 0 and 1."""
    found: dict[str, Numbers] = {}
    if stack.ndim == 4:
        colours = stack[..., :3]
        found["colour"] = (colours.max(axis=3) - colours.min(axis=3)).mean(axis=(1, 2))
        stack = colours.mean(axis=3)
    stack = _smaller(stack)
    found["brightness"], found["contrast"] = stack.mean(axis=(1, 2)), stack.std(axis=(1, 2))
    found["extremes"] = _plain(stack)
    span = np.maximum(stack.max(axis=(1, 2)) - stack.min(axis=(1, 2)), 1e-6)
    down, across = np.gradient(_smoothed(stack), axis=(1, 2))
    steep = np.sqrt(down**2 + across**2).reshape(len(stack), -1)
    found["edges"] = np.quantile(steep, 0.95, axis=1) / span
    found["grain"] = _grain(stack)
    energy = np.maximum((down**2 + across**2).sum(axis=(1, 2)), 1e-9)
    found["turn"] = 2 * np.abs(down * across).sum(axis=(1, 2)) / energy
    found |= _place(stack)
    return found


def _smaller(stack: Numbers) -> Numbers:
    """With at most :data:`LARGEST` pixels a side, by the means of blocks; of a thin picture at least three are left."""
    step = -(-max(stack.shape[1:]) // LARGEST)
    if step == 1:
        return stack
    down, across = (min(step, side // 3) for side in stack.shape[1:])
    height, width = stack.shape[1] // down, stack.shape[2] // across
    blocks = stack[:, : height * down, : width * across].reshape(len(stack), height, down, width, across)
    return np.asarray(blocks.mean(axis=(2, 4)))


def _smoothed(stack: Numbers) -> Numbers:
    """With half of the noise: the mean of each pixel and its neighbours, the near ones most."""
    padded = np.pad(stack, ((0, 0), (1, 1), (1, 1)), mode="edge")
    down = (padded[:, :-2] + 2 * padded[:, 1:-1] + padded[:, 2:]) / 4
    return np.asarray((down[:, :, :-2] + 2 * down[:, :, 1:-1] + down[:, :, 2:]) / 4)


def _grain(stack: Numbers) -> Numbers:
    """What is left of a picture without its lines and edges: the mean over the quieter three quarters.

    Immerkær's mask, Computer Vision and Image Understanding 64 (1996), which neither edges nor slopes move.
    """
    second = stack[:, :-2] - 2 * stack[:, 1:-1] + stack[:, 2:]
    both = np.abs(second[:, :, :-2] - 2 * second[:, :, 1:-1] + second[:, :, 2:]).reshape(len(stack), -1)
    quiet = np.sort(both, axis=1)[:, : max(1, 3 * both.shape[1] // 4)]
    return np.asarray(quiet.mean(axis=1))


def _plain(stack: Numbers) -> Numbers:
    """The share of pixels in the rows and columns next to pixels of the same extreme value, beyond the background."""
    same = (stack[:, 1:, 1:] == stack[:, :-1, 1:]) & (stack[:, 1:, 1:] == stack[:, 1:, :-1])
    return np.asarray(same.mean(axis=(1, 2)))


def _place(stack: Numbers) -> dict[str, Numbers]:
    """Where what differs from the background lies, how wide it is, and how it leans."""
    ground = np.median(np.concatenate((stack[:, 0], stack[:, -1], stack[:, :, 0], stack[:, :, -1]), axis=1), axis=1)
    mass = np.abs(stack - ground[:, None, None])
    mass = np.where(mass > 0.1 * mass.max(axis=(1, 2), keepdims=True), mass, 0)
    total = np.maximum(mass.sum(axis=(1, 2)), 1e-9)
    y, x = np.mgrid[-1 : 1 : stack.shape[1] * 1j, -1 : 1 : stack.shape[2] * 1j]
    right, down = (mass * x).sum(axis=(1, 2)) / total, (mass * y).sum(axis=(1, 2)) / total
    dx, dy = x - right[:, None, None], y - down[:, None, None]
    xx, yy, xy = ((mass * part).sum(axis=(1, 2)) / total for part in (dx**2, dy**2, dx * dy))
    lean = xy / np.sqrt(np.maximum(xx * yy, 1e-9))
    return {"right": right, "down": down, "extent": np.sqrt(xx + yy), "lean": lean}
