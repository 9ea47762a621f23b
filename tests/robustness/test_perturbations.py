"""One suite over every image and table perturbation there is."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
from numpy.typing import NDArray

from opmon import plugins
from opmon.abc import Perturbation
from opmon.errors import InputError
from opmon.robustness.codecs import Pictures
from opmon.robustness.perturbations.table import Missing
from tests.builtin import built_in

IMAGES = [name for name in built_in("perturbation") if name.startswith("image.")]
TABLES = [name for name in built_in("perturbation") if name.startswith("table.")]
SHAPES = [(12, 28, 28, 1), (7, 32, 24, 3), (3, 64, 64, 3)]


def scene(shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Something with edges and a gradient."""
    rng = np.random.default_rng(3)
    n, height, width, channels = shape
    y, x = np.mgrid[0:height, 0:width]
    disc = ((y - height / 2) ** 2 + (x - width / 2) ** 2 < (height / 3) ** 2)[None, ..., None]
    tone = rng.uniform(0.3, 0.9, (n, 1, 1, channels))
    return (np.where(disc, tone, 0.05) + 0.1 * (x / width)[None, ..., None]).astype(np.float32).clip(0, 1)


def apply(name: str, inputs: NDArray[np.float32], severity: int, seed: int = 0) -> NDArray[np.float32]:
    made: Perturbation = plugins.make("perturbation", name)
    return made.apply(inputs, severity, np.random.default_rng(seed))


def test_all_of_the_papers_are_there() -> None:
    assert len(IMAGES) == 18
    assert len(TABLES) == 5
    assert sum(name.startswith("text.") for name in built_in("perturbation")) == 4


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", IMAGES)
def test_image_keeps_shape_type_and_range(name: str, shape: tuple[int, ...]) -> None:
    before = scene(shape)
    kept = before.copy()
    for severity in range(1, 6):
        after = apply(name, before, severity)
        assert after.shape == shape
        assert after.dtype == np.float32
        assert after.min() >= 0
        assert after.max() <= 1 + 1e-5
    assert np.array_equal(before, kept)


@pytest.mark.parametrize("name", IMAGES)
def test_large_images_leave_nothing_large_behind(name: str) -> None:
    """A service runs for months, and each of sixteen angles at five severities once left 40 MB behind it."""
    inputs = scene((1, 320, 320, 1))
    apply(name, scene((1, 168, 168, 1)), 1)  # what it imports stays
    tracemalloc.start()
    try:
        apply(name, inputs, 5)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 3_000_000


@pytest.mark.parametrize("name", IMAGES)
def test_image_same_seed_same_result(name: str) -> None:
    inputs = scene(SHAPES[0])
    assert np.array_equal(apply(name, inputs, 3), apply(name, inputs, 3))


@pytest.mark.parametrize("name", IMAGES)
def test_image_higher_severity_changes_more(name: str) -> None:
    inputs = scene((40, 32, 32, 1))
    change = [float(np.abs(apply(name, inputs, severity) - inputs).mean()) for severity in range(1, 6)]
    assert change[0] > 0
    assert change[4] > 1.3 * change[0]
    assert sum(b < a * 0.98 for a, b in itertools.pairwise(change)) == 0


@pytest.mark.parametrize("name", IMAGES)
def test_image_is_made_input_by_input(name: str) -> None:
    """What happens to one image does not depend on what the others show."""
    inputs = scene((6, 32, 32, 3))
    other = inputs.copy()
    other[3:] = 1 - other[3:]
    assert np.allclose(apply(name, inputs, 4)[:3], apply(name, other, 4)[:3], atol=0.02)


def test_shot_noise_has_the_mean_of_the_image() -> None:
    inputs = np.full((400, 8, 8, 1), 0.4, np.float32)
    assert apply("image.shot-noise", inputs, 3).mean() == pytest.approx(0.4, abs=0.01)


def test_jpeg_is_libjpegs() -> None:
    """One image as a tile equals the image coded by itself."""
    import io

    from PIL import Image

    image = (scene((1, 32, 32, 1))[0, ..., 0] * 255).round().astype(np.uint8)
    content = io.BytesIO()
    Image.fromarray(image).save(content, "JPEG", quality=10)
    alone = np.asarray(Image.open(content))
    tiled = apply("image.jpeg-compression", image[None, ..., None].astype(np.float32) / 255, 4)
    assert np.array_equal(np.rint(tiled[0, ..., 0] * 255), alone)


def test_rotation_by_a_right_angle_is_exact() -> None:
    from opmon.robustness.perturbations.geometry import Rotate

    image = np.random.default_rng(0).random((1, 9, 9, 1), np.float32)
    turned = Rotate(angles=(np.pi / 2,)).apply(image, 1, np.random.default_rng(0))
    assert any(np.allclose(turned[0, ..., 0], np.rot90(image[0, ..., 0], k), atol=1e-5) for k in (1, 3))


@pytest.mark.parametrize("name", TABLES)
def test_table_keeps_shape_and_type(name: str) -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(200, 5)).astype(np.float32)
    table[:, 4] = rng.integers(0, 5, 200)
    made = plugins.make("perturbation", name).fitted(table)
    changes = []
    for severity in range(1, 6):
        after = made.apply(table, severity, np.random.default_rng(1))
        assert after.shape == table.shape
        assert after.dtype == table.dtype
        assert np.array_equal(after[:, 4], np.rint(after[:, 4]))
        changes.append(float(np.abs(after - table).mean()))
    assert changes == sorted(changes)
    assert changes[0] > 0


def test_table_swap_keeps_what_columns_hold() -> None:
    table = np.random.default_rng(0).integers(0, 3, (500, 2)).astype(float)
    after = plugins.make("perturbation", "table.swap").fitted(table).apply(table, 5, np.random.default_rng(0))
    assert set(np.unique(after)) <= {0.0, 1.0, 2.0}


def test_whole_numbers_are_never_missing() -> None:
    """As one of them, NaN would be −9,223,372,036,854,775,808."""
    table, rng = np.arange(40).reshape(20, 2), np.random.default_rng(0)
    with pytest.raises(InputError, match="takes int64, which has no missing values: say fill: median"):
        Missing(fill="nan").fitted(table).apply(table, 5, rng)
    filled = Missing().fitted(table).apply(table, 5, rng)
    assert filled.dtype == table.dtype
    assert 0 <= filled.min() <= filled.max() < 40
    assert np.isnan(Missing(fill="nan").apply(table.astype(np.float32), 5, rng)).any()


def test_table_categories_are_not_scaled() -> None:
    table = np.random.default_rng(0).normal(size=(50, 3)) + 3
    made = plugins.make("perturbation", "table.scale", {"categorical": (1,)}).fitted(table)
    after = made.apply(table, 5, np.random.default_rng(0))
    assert np.array_equal(after[:, 1], table[:, 1])
    assert not np.allclose(after[:, 0], table[:, 0])


@pytest.mark.parametrize("name", [*IMAGES, *TABLES])
def test_broken_severity_table(name: str) -> None:
    made = plugins.make("perturbation", name)
    field = next(f for f in made.__dataclass_fields__ if isinstance(getattr(made, f), tuple) and getattr(made, f))
    for table in ((), ("a",), (float("nan"),), (True,)):
        with pytest.raises(InputError):
            plugins.make("perturbation", name, {field: table})


def test_own_function() -> None:
    made = plugins.make("perturbation", "function", {"path": "numpy:roll"})
    assert made.apply(np.arange(3), 1, None).tolist() == [2, 0, 1]


@pytest.mark.parametrize("path", ["numpy", "no_such_module:f", "numpy:no_such_name", "numpy:pi"])
def test_broken_function(path: str) -> None:
    from opmon.errors import OpmonError

    with pytest.raises(OpmonError):
        plugins.make("perturbation", "function", {"path": path})


@pytest.mark.parametrize(("mean", "std"), [(0.1307, 0.3081), (0.4914, 0.2470), (0.4465, 0.2616)])
def test_normalised_pictures_lie_between_black_and_white(mean: float, std: float) -> None:
    """As MNIST and CIFAR-10 are: rounding leaves black below 0, and there are no fewer photons than none."""
    pixels = np.arange(256, dtype=np.float32).reshape(1, 16, 16, 1) * np.float32(1 / 255)
    inputs = (pixels - np.float32(mean)) / np.float32(std)
    codec = Pictures(16, 16, 1, black=-mean / std, white=(1 - mean) / std, shape=(16, 16, 1), steps=255)
    encoded = codec.encode(inputs)
    assert encoded.min() == 0
    assert encoded.max() == pytest.approx(1, abs=1e-6)
    assert encoded.max() <= 1
    assert np.allclose(codec.decode(encoded), inputs, atol=1e-6)
    for severity in range(1, 6):
        assert np.isfinite(apply("image.shot-noise", encoded, severity)).all()
        assert np.isfinite(apply("image.shot-noise", encoded - 0.1, severity)).all(), "as a function of one's own may"


@pytest.mark.parametrize(
    ("shape", "dtype"), [((5, 28, 28), np.uint8), ((5, 1, 28, 28), np.float32), ((5, 784), np.float64),
                         ((5, 32, 32, 3), np.uint8), ((5, 3, 20, 30), np.float32)], ids=str
)  # fmt: skip
def test_codec_gives_back_what_it_got(shape: tuple[int, ...], dtype: type) -> None:
    inputs = (np.random.default_rng(0).random(shape) * (255 if dtype is np.uint8 else 1)).astype(dtype)
    codec = Pictures.like(inputs)
    images = codec.encode(inputs)
    assert images.ndim == 4
    assert images.dtype == np.float32
    assert 0 <= images.min() <= images.max() <= 1
    back = codec.decode(images)
    assert back.dtype == dtype
    assert np.allclose(back, inputs, atol=1e-6)


def test_codec_that_cannot_tell_the_size() -> None:
    with pytest.raises(InputError, match="size"):
        Pictures.like(np.zeros((4, 30)))
    assert Pictures.like(np.zeros((4, 30)), size=(5, 6)).encode(np.zeros((4, 30))).shape == (4, 5, 6, 1)
