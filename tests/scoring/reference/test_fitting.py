from __future__ import annotations

import numpy as np
import onnx
import pytest

from opmon.errors import InputError, ModelError
from opmon.scoring.heads.autoencoders import SimpleAutoencoder, VariationalAutoencoder
from opmon.scoring.heads.dsa import DistanceSurprise
from opmon.scoring.heads.lsa import LikelihoodSurprise
from opmon.scoring.reference._kept import Kept
from opmon.scoring.reference.distances import distances_to_others, nearest
from opmon.scoring.reference.fitted import Reference, model_hash
from opmon.scoring.reference.fitting import open_fit
from opmon.scoring.scorer import Scorer


@pytest.fixture
def rows() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(600, 6)).astype(np.float32)


def test_a_reference_survives_its_file(mlp, fitted, rows, tmp_path) -> None:
    made = fitted(mlp(), rows)
    made.save(tmp_path / "reference.npz")
    read = Reference.load(tmp_path / "reference.npz")
    assert read.describe() == made.describe()
    assert read.crowds == made.crowds
    assert set(read.crowds) == set(made.classes)
    for name in ("traces", "predicted", "distances"):
        assert (getattr(read, name) == getattr(made, name)).all()
    assert read.model_hash == model_hash(mlp())


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 broken", b"\x93NUMPY"])
def test_a_file_that_is_no_reference(tmp_path, content) -> None:
    (tmp_path / "reference.npz").write_bytes(content)
    with pytest.raises(ModelError, match="opmon reference"):
        Reference.load(tmp_path / "reference.npz")
    with pytest.raises(ModelError, match="there is no reference"):
        Reference.load(tmp_path / "nothing.npz")


def test_the_accuracy_on_the_training_inputs(mlp, fed, rows) -> None:
    path = mlp()
    scores = Scorer.open(path, "classification", device="cpu").score(fed(rows))
    said = np.concatenate([part.predictions for part in scores]).astype(int)
    labels = np.where(np.arange(600) % 3 == 0, (said + 1) % 4, said)
    fit = open_fit(path, "classification", device="cpu", label="label")
    reference = fit.run(fed(rows, label=labels))
    assert (reference.accuracy, reference.labelled) == (pytest.approx(2 / 3), 600)
    with pytest.raises(InputError, match="no column 'truth'"):
        open_fit(path, "classification", device="cpu", label="truth").run(fed(rows, label=labels))


def test_a_limit_is_kept_whatever_the_batches(mlp, fed, rows) -> None:
    path = mlp()
    found = [
        open_fit(path, "classification", device="cpu", limit=100, seed=3).run(fed(rows, step=step))
        for step in (50, 600)
    ]
    assert len(found[0].traces) == 100
    assert found[0].seen == 600
    assert (found[0].traces == found[1].traces).all()
    assert set(found[0].classes) == {0, 1, 2, 3}


def test_a_rare_class_is_kept() -> None:
    kept = Kept(1000, np.random.default_rng(0))
    for start in range(0, 100_000, 5000):
        classes = np.where(np.arange(start, start + 5000) % 10_000 == 0, 1, 0)
        kept.add(np.arange(start, start + 5000)[:, None], classes)
    rows, classes = kept.result()
    assert len(rows) == 1000
    assert (classes == 1).sum() == 10
    assert rows[classes == 0].mean() == pytest.approx(50_000, abs=4000)


def test_dist_b_is_exact(rows) -> None:
    predicted = np.arange(600) % 3
    offset = rows + np.float32(1000)
    found = distances_to_others(offset, predicted)
    for i in range(0, 600, 29):
        others = offset[predicted != predicted[i]].astype(np.float64)
        assert found[i] == pytest.approx(np.linalg.norm(others - offset[i], axis=1).min(), rel=1e-12)
    distance, which = nearest(rows[:50], rows, np.arange(50))
    assert (which != np.arange(50)).all()
    assert (distance > 0).all()


def test_the_limits_are_those_of_the_training_inputs_without_themselves(mlp, fitted, rows) -> None:
    from opmon.testing import surprise

    reference = fitted(mlp(), rows)
    values = []
    for i in range(len(reference.traces)):
        rest = np.arange(len(reference.traces)) != i
        traces, predicted = reference.traces[rest], reference.predicted[rest]
        values.append(surprise.dsa(traces, predicted, reference.traces[i], reference.predicted[i], "input"))
    assert reference.limits["dsa:input"] == pytest.approx((min(values), max(values)), rel=1e-6)


def test_production_like_training_is_rarely_beyond_the_limits(mlp, fitted, fed, rows) -> None:
    path = mlp()
    heads = {"dsa": DistanceSurprise(), "lsa": LikelihoodSurprise()}
    scorer = Scorer.open(path, "classification", device="cpu", heads=heads, reference=fitted(path, rows))
    later = np.random.default_rng(5).normal(size=(500, 6))
    for part in scorer.score(fed(later)):
        for name in heads:
            assert 0 < np.median(part.variables[name]) < 0.6
            assert (part.variables[name] == 1).mean() < 0.05


@pytest.mark.parametrize(("kind", "head"), [("sae", SimpleAutoencoder()), ("vae", VariationalAutoencoder())])
def test_autoencoders_find_what_training_never_held(mlp, fed, kind, head) -> None:
    rng = np.random.default_rng(0)
    plane = rng.normal(size=(600, 2)) @ rng.normal(size=(2, 6))
    path = mlp()
    reference = open_fit(path, "classification", device="cpu", heads=(head,)).run(fed(plane))
    scorer = Scorer.open(path, "classification", device="cpu", heads={kind: head}, reference=reference)
    usual = next(iter(scorer.score(fed(plane[:100])))).variables[kind]
    strange = next(iter(scorer.score(fed(rng.normal(size=(100, 6)) * plane.std(0))))).variables[kind]
    assert np.median(strange) > 1.5 * np.median(usual)


def test_labels_in_other_words_are_no_accuracy(mlp, fed, rows) -> None:
    options = {"classes": ["north", "east", "south", "west"], "device": "cpu", "label": "label"}
    fit = open_fit(mlp(), "classification", **options)
    with pytest.raises(
        InputError, match=r"labels that are none of the model's classes: 3 \(600\), 600 of 600.*north, e"
    ):
        fit.run(fed(rows, step=600, label=np.full(600, 3)))
    fit = open_fit(mlp(), "classification", **options)
    reference = fit.run(fed(rows, label=np.array(["north"] * 599 + ["unknown"])))
    assert reference.labelled == 599


def test_a_gap_is_nothing_strange_to_an_autoencoder(tmp_path, fed) -> None:
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.tree import DecisionTreeClassifier

    from opmon.scoring.conversion.converting import convert

    rng = np.random.default_rng(0)
    values = 100 + rng.normal(size=(600, 2)) @ rng.normal(size=(2, 6))
    gaps = np.where(rng.random(values.shape) < 0.05, np.nan, values)
    path = tmp_path / "model.onnx"
    fitted = make_pipeline(SimpleImputer(), DecisionTreeClassifier(max_depth=2)).fit(gaps, values[:, 0] > 100)
    path.write_bytes(convert(fitted, None))
    reference = open_fit(path, "classification", device="cpu", heads=(SimpleAutoencoder(),)).run(fed(gaps))
    scorer = Scorer.open(path, "classification", device="cpu", heads={"sae": SimpleAutoencoder()}, reference=reference)
    mean = reference.weights["sae"]["mean"]
    assert mean == pytest.approx(np.nanmean(gaps, axis=0), rel=1e-5)
    found, filled = (
        np.concatenate([part.variables["sae"] for part in scorer.score(fed(rows))])
        for rows in (gaps, np.where(np.isnan(gaps), mean, gaps))
    )
    assert found == pytest.approx(filled, rel=1e-4)


def test_an_autoencoder_that_was_not_fitted(mlp, fitted, rows) -> None:
    path = mlp()
    with pytest.raises(ModelError, match="--fit sae"):
        Scorer.open(path, "classification", heads={"sae": SimpleAutoencoder()}, reference=fitted(path, rows))


def test_no_training_inputs(mlp, fed) -> None:
    with pytest.raises(ModelError, match="needs at least 2"):
        open_fit(mlp(), "classification", device="cpu").run(fed(np.empty((0, 6))))


def test_a_model_written_again_elsewhere_is_the_same_model(mlp, tmp_path) -> None:
    path = mlp()
    again = tmp_path / "again.onnx"
    onnx.save_model(onnx.load(str(path)), str(again), save_as_external_data=True, location="data", size_threshold=0)
    assert model_hash(again) == model_hash(path)
    assert model_hash(mlp(seed=1, name="other")) != model_hash(path)


def test_a_tree_can_have_an_autoencoder_and_no_traces(tmp_path, rows, fed) -> None:
    from sklearn.tree import DecisionTreeClassifier

    from opmon.scoring.conversion.converting import convert

    path = tmp_path / "tree.onnx"
    path.write_bytes(convert(DecisionTreeClassifier(max_depth=2).fit(rows, rows[:, 0] > 0), None))
    with pytest.raises(ModelError, match="no hidden layer"):
        open_fit(path, "classification", device="cpu")
    reference = open_fit(path, "classification", device="cpu", heads=(SimpleAutoencoder(),)).run(fed(rows))
    assert reference.layer is None
    heads = {"sae": SimpleAutoencoder()}
    scored = next(
        iter(Scorer.open(path, "classification", device="cpu", heads=heads, reference=reference).score(fed(rows)))
    )
    assert np.isfinite(scored.variables["sae"]).all()
    with pytest.raises(ModelError, match="no hidden layer"):
        Scorer.open(path, "classification", heads={"lsa": LikelihoodSurprise()}, reference=reference)


def test_some_rows_are_kept_to_compare_production_with(mlp, fed, rows) -> None:
    fit = open_fit(mlp(), "classification", device="cpu", label="label")
    fit.sampled = 100
    fit.run(fed(rows, step=90, label=np.zeros(600, int), age=np.arange(600)))
    sample = fit.sample.to_pandas()
    assert list(sample.columns) == ["age", "model prediction"]
    assert len(sample) == 100
    assert sample["age"].is_unique
    assert 200 < sample["age"].mean() < 400
