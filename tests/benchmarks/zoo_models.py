"""Models as teams register them, each with a log of its inputs and the truth: the animals of ``zoo.py``."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

ROWS = 2000
RNG = np.random.default_rng(0)


@dataclass
class Animal:
    """A model: how it is registered, its log, what is true, and what it answers by itself."""

    name: str
    register: Callable[[str], Any]
    log: pa.Table
    truth: Any
    predict: Callable[[int], Any]
    """The original's own answers to the first rows, so many times over as are asked for."""
    trust: bool = False
    way: str = "onnx"
    """The one that is to be chosen."""
    instead: bool = False
    """Whether the model itself is to be asked though its conversion was chosen."""
    refused: str = ""
    """Words of the refusal, where no monitor can watch it."""


def requirements() -> dict[str, Any]:
    return {"name": "model", "pip_requirements": []}


# --- data ---------------------------------------------------------------------------------------------------------

FRAME = pd.DataFrame(RNG.normal(size=(2 * ROWS, 10)).astype(np.float64), columns=[f"f{k}" for k in range(10)])
LEAN = FRAME["f0"] + FRAME["f1"] * FRAME["f2"] - 0.5 * FRAME["f3"] + RNG.logistic(size=2 * ROWS) * 0.4
BINARY = np.where(LEAN > 0, "default", "paid")
CODES = (LEAN > 0).to_numpy().astype(int)
COLOURS = np.array(["red", "green", "blue"])[np.digitize(LEAN, [-0.7, 0.7])]
MIXED = FRAME[["f0", "f1", "f2", "f3"]].assign(
    town=np.array(["Rome", "Oslo", "Lima"])[RNG.integers(0, 3, 2 * ROWS)],
    plan=np.where(LEAN + RNG.normal(size=2 * ROWS) > 0, "gold", "free"),
)
MIXED.loc[RNG.random(2 * ROWS) < 0.1, "f1"] = np.nan
PRICE = (3 * LEAN + 20).to_numpy()
GOOD, BAD = ["good", "fine", "great", "lovely", "liked"], ["bad", "awful", "boring", "hated", "poor"]
FILL = ["the", "film", "was", "we", "and", "very", "plot", "actor"]


def _texts() -> tuple[list[str], list[str]]:
    texts, labels = [], []
    for _ in range(2 * ROWS):
        kind = RNG.integers(2)
        words = [
            str(RNG.choice((GOOD, BAD)[int(kind)] if RNG.random() < 0.35 else [*FILL, *GOOD[:1], *BAD[:1]]))
            for _ in range(7)
        ]
        texts.append(" ".join(words))
        labels.append(("positive", "negative")[int(kind)])
    return texts, labels


def table(frame: pd.DataFrame, **more: Any) -> pa.Table:
    found = pa.Table.from_pandas(frame.reset_index(drop=True), preserve_index=False)
    return with_ids(found, **more)


def with_ids(found: pa.Table, **more: Any) -> pa.Table:
    found = found.append_column("request_id", pa.array([f"r{k}" for k in range(found.num_rows)]))
    start = pd.Timestamp("2026-03-01", tz="UTC")
    found = found.append_column(
        "logged_at", pa.array([start + pd.Timedelta(seconds=60 * k) for k in range(found.num_rows)])
    )
    for name, values in more.items():
        found = found.append_column(
            name, values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
        )
    return found


def lists(values: Any) -> pa.Array:
    flat = np.ascontiguousarray(values).reshape(len(values), -1)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), flat.shape[1])


def many(frame: Any, count: int) -> Any:
    """The rows over and over, ``count`` in all."""
    at = np.arange(count) % len(frame)
    if isinstance(frame, pd.DataFrame | pd.Series):
        return frame.iloc[at].reset_index(drop=True)
    return [frame[k] for k in at] if isinstance(frame, list) else np.asarray(frame)[at]


TRAIN, PROD = slice(0, ROWS), slice(ROWS, 2 * ROWS)


# --- scikit-learn and boosting ------------------------------------------------------------------------------------


def sklearn_animals() -> Iterator[Animal]:
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import (
        ExtraTreesClassifier,
        GradientBoostingRegressor,
        HistGradientBoostingClassifier,
        RandomForestClassifier,
    )
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression, RidgeClassifier
    from sklearn.multioutput import MultiOutputClassifier
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from sklearn.svm import SVC, LinearSVC

    def animal(name: str, model: Any, frame: Any, truth: Any, **more: Any) -> Animal:
        model.fit(frame[TRAIN], truth[TRAIN])
        log = table(frame[PROD]) if isinstance(frame, pd.DataFrame) else with_ids(pa.table({"review": frame[PROD]}))
        return Animal(
            name,
            sklearn_register(
                model, frame[:5] if isinstance(frame, pd.DataFrame) else pd.DataFrame({"review": frame[:5]})
            ),
            log,
            truth[PROD],
            lambda count: model.predict(many(frame[PROD], count)),
            trust=True,
            way="converted",
            **more,
        )

    texts, moods = _texts()
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    mixed = make_column_transformer(
        (numbers, ["f0", "f1", "f2", "f3"]), (OneHotEncoder(handle_unknown="ignore"), ["town", "plan"])
    )
    yield animal("LogisticRegression", LogisticRegression(), FRAME, BINARY)
    yield animal("HistGradientBoosting", HistGradientBoostingClassifier(max_iter=60), FRAME, BINARY)
    yield animal("RandomForest", RandomForestClassifier(60, random_state=0), FRAME, BINARY)
    yield animal("ExtraTrees, codes", ExtraTreesClassifier(40, random_state=0), FRAME, CODES)
    yield animal("SVC", SVC(), FRAME, COLOURS)
    yield animal("LinearSVC", LinearSVC(), FRAME, BINARY)
    yield animal("KNeighbors", KNeighborsClassifier(5), FRAME, COLOURS)
    yield animal(
        "MLP", make_pipeline(StandardScaler(), MLPClassifier((16,), max_iter=80, random_state=0)), FRAME, COLOURS
    )
    yield animal("GaussianNB", GaussianNB(), FRAME, BINARY)
    yield animal("RidgeClassifier", RidgeClassifier(), FRAME, COLOURS)
    yield animal("GradientBoosting, a number", GradientBoostingRegressor(n_estimators=40), FRAME, PRICE)
    yield animal("pipeline, text and gaps", make_pipeline(mixed, LogisticRegression()), MIXED, BINARY)
    yield animal(
        "pipeline, boosted with gaps",
        make_pipeline(
            make_column_transformer(
                (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["town", "plan"]), remainder="passthrough"
            ),
            HistGradientBoostingClassifier(max_iter=40),
        ),
        MIXED,
        BINARY,
    )
    yield animal("TF-IDF", make_pipeline(TfidfVectorizer(), LogisticRegression()), texts, np.array(moods))
    several = MultiOutputClassifier(LogisticRegression()).fit(FRAME[TRAIN], np.stack([CODES, 1 - CODES], 1)[TRAIN])
    yield Animal(
        "multi-label (scikit-learn)",
        sklearn_register(several, FRAME[:5]),
        table(FRAME[PROD]),
        None,
        lambda count: None,
        trust=True,
        refused="label",
    )


def sklearn_register(model: Any, example: Any) -> Callable[[str], Any]:
    def register(name: str) -> Any:
        import mlflow
        from mlflow.models import infer_signature

        return mlflow.sklearn.log_model(
            model,
            registered_model_name=name,
            signature=infer_signature(example),
            serialization_format="cloudpickle",
            **requirements(),
        )

    return register


def boosting_animals() -> Iterator[Animal]:
    import catboost
    import lightgbm
    import mlflow
    import xgboost
    from mlflow.models import infer_signature

    signature = infer_signature(FRAME[:5])
    kinds = np.unique(COLOURS, return_inverse=True)[1]

    def animal(
        name: str, model: Any, log_model: Any, truth: Any, predict: Any, way: str = "onnx", **columns: Any
    ) -> Animal:
        def register(called: str) -> Any:
            return log_model(model, registered_model_name=called, signature=signature, **requirements())

        return Animal(
            name,
            register,
            table(FRAME[PROD], **columns),
            truth[PROD],
            lambda count: predict(many(FRAME[PROD], count)),
            trust=way != "onnx",
            way=way,
            instead=way == "flavor",
        )

    one = xgboost.XGBClassifier(n_estimators=40).fit(FRAME[TRAIN], CODES[TRAIN])
    yield animal("XGBClassifier", one, mlflow.xgboost.log_model, CODES, one.predict)
    yield animal("XGBClassifier, itself", one, mlflow.xgboost.log_model, CODES, one.predict, way="flavor")
    three = xgboost.XGBClassifier(n_estimators=40).fit(FRAME[TRAIN], kinds[TRAIN])
    yield animal("XGBClassifier, three", three, mlflow.xgboost.log_model, kinds, three.predict)
    price = xgboost.XGBRegressor(n_estimators=40).fit(FRAME[TRAIN], PRICE[TRAIN])
    yield animal("XGBRegressor", price, mlflow.xgboost.log_model, PRICE, price.predict)
    booster = one.get_booster()

    def share(frame: Any) -> Any:
        return (booster.predict(xgboost.DMatrix(frame)) >= 0.5).astype(int)

    yield animal("XGBoost Booster", booster, mlflow.xgboost.log_model, CODES, share, decision=share(FRAME[PROD]))
    light = lightgbm.LGBMClassifier(n_estimators=40, verbose=-1).fit(FRAME[TRAIN], BINARY[TRAIN])
    yield animal("LGBMClassifier", light, mlflow.lightgbm.log_model, BINARY, light.predict, way="converted")
    yield animal("LGBMClassifier, itself", light, mlflow.lightgbm.log_model, BINARY, light.predict, way="flavor")
    small = lightgbm.train(
        {"objective": "multiclass", "num_class": 3, "verbose": -1}, lightgbm.Dataset(FRAME[TRAIN], kinds[TRAIN]), 30
    )
    yield animal(
        "LightGBM Booster, three",
        small,
        mlflow.lightgbm.log_model,
        kinds,
        lambda frame: small.predict(frame).argmax(axis=1),
    )
    cat = catboost.CatBoostClassifier(iterations=60, verbose=False, allow_writing_files=False).fit(
        FRAME[TRAIN], BINARY[TRAIN]
    )
    yield animal("CatBoostClassifier", cat, mlflow.catboost.log_model, BINARY, cat.predict)
    yield animal("CatBoostClassifier, itself", cat, mlflow.catboost.log_model, BINARY, cat.predict, way="flavor")
    paid = catboost.CatBoostRegressor(iterations=60, verbose=False, allow_writing_files=False).fit(
        FRAME[TRAIN], PRICE[TRAIN]
    )
    yield animal("CatBoostRegressor", paid, mlflow.catboost.log_model, PRICE, paid.predict)


# --- networks -----------------------------------------------------------------------------------------------------


def onnx_register(model: Any, signature: Any = None) -> Callable[[str], Any]:
    def register(name: str) -> Any:
        import mlflow

        return mlflow.onnx.log_model(model, registered_model_name=name, signature=signature, **requirements())

    return register


def torch_register(net: Any, given: Any, **more: Any) -> Callable[[str], Any]:
    """Registers the network itself; ``given`` are inputs such as it takes."""

    def register(name: str) -> Any:
        import mlflow
        from mlflow.models import infer_signature

        options = {"serialization_format": "pickle", "signature": infer_signature(given), **requirements(), **more}
        return mlflow.pytorch.log_model(net, registered_model_name=name, **options)

    return register


def trained(net: Any, inputs: Any, targets: Any, loss: Any, steps: int = 60) -> Any:
    import torch

    torch.manual_seed(0)
    optimiser = torch.optim.Adam(net.parameters(), 0.01)
    for _ in range(steps):
        at = torch.randint(0, len(targets), (256,))
        optimiser.zero_grad()
        loss(net(*(each[at] for each in inputs)), targets[at]).backward()
        optimiser.step()
    return net.eval()


def exported(net: Any, inputs: Any, dynamo: bool = False, names: Any = None) -> Any:
    import onnx
    import torch

    names = names or ["input"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        example = tuple(each[:2] for each in inputs)
        if dynamo:
            batch = torch.export.Dim("batch")
            torch.onnx.export(
                net,
                example,
                str(path),
                input_names=names,
                output_names=["output"],
                dynamo=True,
                verbose=False,
                dynamic_shapes=tuple({0: batch} for _ in example),
                external_data=False,
            )
        else:
            torch.onnx.export(
                net,
                example,
                str(path),
                input_names=names,
                output_names=["output"],
                dynamo=False,
                dynamic_axes={each: {0: "batch"} for each in [*names, "output"]},
            )
        return onnx.load(str(path))


def torch_animals() -> Iterator[Animal]:
    import onnx
    import torch
    from sklearn.datasets import load_digits
    from torch import nn

    torch.set_num_threads(1)
    raw, digits = load_digits(return_X_y=True)
    images = torch.tensor(raw.reshape(-1, 1, 8, 8) / 16, dtype=torch.float32)
    half = len(digits) // 2
    labels = torch.tensor(digits)
    log = with_ids(pa.table({"image": lists(images[half:].numpy())}))

    def cnn(*last: Any) -> Any:
        return nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 10), *last)

    def of_images(name: str, net: Any, model: Any, **more: Any) -> Animal:
        def predict(count: int) -> Any:
            with torch.no_grad():
                return (
                    net(
                        many(images[half:], count)
                        if more.get("tensor")
                        else torch.tensor(many(images[half:].numpy(), count))
                    )
                    .argmax(1)
                    .numpy()
                )

        return Animal(name, onnx_register(model), log, digits[half:], predict)

    cross = nn.functional.cross_entropy
    plain = trained(cnn(), [images[:half]], labels[:half], cross)
    soft = nn.Sequential(plain, nn.Softmax(1)).eval()
    yield of_images("CNN, logits", plain, exported(plain, [images]))
    yield of_images("CNN, softmax", soft, exported(soft, [images]))
    some = images[:4].numpy()
    for form, more in (("pickled", {}), ("as a graph", {"serialization_format": "pt2", "input_example": some})):
        itself = of_images(f"CNN of PyTorch, {form}", plain, None)
        yield replace(itself, register=torch_register(plain, some, **more), trust=True, way="converted")
    yield of_images("CNN, dynamo", plain, exported(plain, [images], dynamo=True))
    half_net = type(plain)(*(layer for layer in plain))
    import copy

    sixteen = copy.deepcopy(plain).half()
    halved = exported(sixteen, [images.half()])
    yield of_images("CNN, float16", half_net, halved)
    from onnxruntime.quantization import QuantType, quantize_dynamic

    dense = trained(
        nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)),
        [images[:half]],
        labels[:half],
        cross,
    )
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(exported(dense, [images]), f"{folder}/in.onnx")
        quantize_dynamic(f"{folder}/in.onnx", f"{folder}/out.onnx", weight_type=QuantType.QInt8)
        small = onnx.load(f"{folder}/out.onnx")
    import onnxruntime

    session = onnxruntime.InferenceSession(small.SerializeToString(), providers=["CPUExecutionProvider"])
    yield Animal(
        "MLP, quantised",
        onnx_register(small),
        log,
        digits[half:],
        lambda count: session.run(None, {"input": many(images[half:].numpy(), count)})[0].argmax(1),
    )
    yield from _wide(exported, torch)
    yield from _tokens(torch)
    yield from _tables(torch)


def _wide(exported: Any, torch: Any) -> Iterator[Animal]:
    classes = 1000
    centres = RNG.normal(size=(classes, 32)).astype(np.float32)
    truth = RNG.integers(0, classes, ROWS)
    inputs = (centres[truth] + 1.3 * RNG.normal(size=(ROWS, 32))).astype(np.float32)
    net = torch.nn.Linear(32, classes)
    with torch.no_grad():
        net.weight.copy_(torch.tensor(centres))
        net.bias.copy_(-0.5 * torch.tensor(centres).pow(2).sum(1))
    yield Animal(
        "1,000 classes",
        onnx_register(exported(net.eval(), [torch.tensor(inputs)])),
        with_ids(pa.table({"embedding": lists(inputs)})),
        truth,
        lambda count: net(torch.tensor(many(inputs, count))).argmax(1).numpy(),
    )


def _tokens(torch: Any) -> Iterator[Animal]:
    nn = torch.nn

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(50, 16)
            self.encode = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0), 1)
            self.head = nn.Linear(16, 2)

        def forward(self, tokens: Any) -> Any:
            return self.head(self.encode(self.embed(tokens)).mean(1))

    tokens = RNG.integers(0, 50, (2 * ROWS, 12))
    truth = ((tokens < 12).sum(1) + RNG.normal(size=2 * ROWS) > 3).astype(int)
    net = trained(Encoder(), [torch.tensor(tokens[TRAIN])], torch.tensor(truth[TRAIN]), nn.functional.cross_entropy, 80)

    def predict(count: int) -> Any:
        with torch.no_grad():
            return net(torch.tensor(many(tokens[PROD], count))).argmax(1).numpy()

    encoder = Animal(
        "transformer encoder",
        onnx_register(exported(net, [torch.tensor(tokens)], names=["input_ids"])),
        with_ids(pa.table({"input_ids": lists(tokens[PROD])})),
        truth[PROD],
        predict,
    )
    yield encoder
    itself = torch_register(net, {"input_ids": tokens[:4]})
    yield replace(encoder, name="transformer encoder of PyTorch", register=itself, trust=True, way="converted")


def _tables(torch: Any) -> Iterator[Animal]:
    nn, values = torch.nn, torch.tensor(FRAME.to_numpy(np.float32))
    codes = torch.tensor(CODES)
    from mlflow.models import infer_signature

    signature = infer_signature(FRAME[:5])
    sigmoid = trained(
        nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1), nn.Sigmoid()),
        [values[TRAIN]],
        codes[TRAIN].float()[:, None],
        nn.functional.binary_cross_entropy,
    )
    price = trained(
        nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1)),
        [values[TRAIN]],
        torch.tensor(PRICE[TRAIN], dtype=torch.float32)[:, None],
        nn.functional.mse_loss,
        300,
    )

    def asked(net: Any) -> Callable[[int], Any]:
        def predict(count: int) -> Any:
            with torch.no_grad():
                return net(torch.tensor(many(FRAME[PROD], count).to_numpy(np.float32))).numpy()[:, 0]

        return predict

    yes = asked(sigmoid)
    graph = exported(sigmoid, [values])
    yield Animal(
        "one probability",
        onnx_register(graph, signature),
        table(FRAME[PROD]),
        CODES[PROD],
        lambda count: (yes(count) >= 0.5).astype(int),
    )
    shouted = FRAME[PROD].rename(columns={name: f"F_{name[1:]}" for name in FRAME})
    said = np.where(yes(ROWS) >= 0.5, "default", "paid")
    yield Animal(
        "one probability, in other words",
        onnx_register(graph, signature),
        table(shouted, decision=said),
        np.where(CODES[PROD], "default", "paid"),
        lambda count: np.where(yes(count) >= 0.5, "default", "paid"),
    )
    number = Animal(
        "regression, one output",
        onnx_register(exported(price, [values]), signature),
        table(FRAME[PROD]),
        PRICE[PROD],
        asked(price),
    )
    yield number
    yield replace(
        number,
        name="regression of PyTorch",
        register=torch_register(price, FRAME[:5]),
        trust=True,
        way="converted",
    )

    class Three(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = price

        def forward(self, given: Any) -> Any:
            return torch.sigmoid(self.inner(given) + torch.tensor([[0.0, 1.0, 2.0]]))

    yield Animal(
        "multi-label (network)",
        onnx_register(exported(Three().eval(), [values]), signature),
        table(FRAME[PROD]),
        None,
        lambda count: None,
        refused="multi-label",
    )
    from skl2onnx import to_onnx
    from sklearn.linear_model import LinearRegression

    linear = LinearRegression().fit(FRAME[TRAIN], np.stack([PRICE, -PRICE, 2 * PRICE], 1)[TRAIN])
    yield Animal(
        "regression, three outputs",
        onnx_register(to_onnx(linear, FRAME.to_numpy(np.float32)[:1]), signature),
        table(FRAME[PROD]),
        None,
        lambda count: None,
        refused="watches one",
    )

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.other = nn.Linear(6, 2), nn.Linear(4, 2)

        def forward(self, account: Any, person: Any) -> Any:
            return torch.softmax(self.one(account) + self.other(person), 1)

    parts = [values[:, :6], values[:, 6:]]
    two = trained(
        Two(),
        [each[TRAIN] for each in parts],
        codes[TRAIN],
        lambda given, wanted: nn.functional.nll_loss(given.log(), wanted),
    )

    def predict(count: int) -> Any:
        with torch.no_grad():
            return two(*(torch.tensor(many(each[PROD].numpy(), count)) for each in parts)).argmax(1).numpy()

    both = Animal(
        "two inputs",
        onnx_register(exported(two, parts, names=["account", "person"])),
        with_ids(pa.table({"account": lists(parts[0][PROD].numpy()), "person": lists(parts[1][PROD].numpy())})),
        CODES[PROD],
        predict,
    )
    yield both
    named = {name: part[:4].numpy() for name, part in zip(("account", "person"), parts, strict=True)}
    yield replace(both, name="two inputs of PyTorch", register=torch_register(two, named), trust=True, way="converted")


# --- anything else ------------------------------------------------------------------------------------------------


def other_animals() -> Iterator[Animal]:
    import mlflow
    from mlflow.models import infer_signature
    from skl2onnx import to_onnx
    from sklearn.linear_model import LogisticRegression

    words = LogisticRegression().fit(FRAME[TRAIN].to_numpy(np.float32), COLOURS[TRAIN])
    graph = to_onnx(words, FRAME.to_numpy(np.float32)[:1], options={"zipmap": False}, target_opset=17)

    def predict(count: int) -> Any:
        return words.predict(many(FRAME[PROD], count).to_numpy(np.float32))

    yield Animal(
        "ONNX, words as labels",
        onnx_register(graph, infer_signature(FRAME[:5])),
        table(FRAME[PROD]),
        COLOURS[PROD],
        predict,
    )

    class Scores(mlflow.pyfunc.PythonModel):
        def predict(self, context: Any, model_input: Any, params: Any = None) -> Any:
            import pandas

            lean = 1 / (1 + 2.718281828 ** -(model_input["f0"] + model_input["f1"] * model_input["f2"]))
            return pandas.DataFrame({"paid": 1 - lean, "default": lean})

    class Words(mlflow.pyfunc.PythonModel):
        def predict(self, context: Any, model_input: Any, params: Any = None) -> Any:
            return ["default" if value > 0 else "paid" for value in model_input["f0"]]

    def pyfunc(model: Any) -> Callable[[str], Any]:
        return lambda name: mlflow.pyfunc.log_model(
            python_model=model, registered_model_name=name, signature=infer_signature(FRAME[:5]), **requirements()
        )

    def lean(count: int) -> Any:
        return many((FRAME["f0"] + FRAME["f1"] * FRAME["f2"])[PROD], count)

    yield Animal(
        "pyfunc, scores by name",
        pyfunc(Scores()),
        table(FRAME[PROD]),
        BINARY[PROD],
        lambda count: np.where(lean(count) > 0, "default", "paid"),
        trust=True,
        way="flavor",
    )
    yield Animal(
        "pyfunc, words alone",
        pyfunc(Words()),
        table(FRAME[PROD]),
        BINARY[PROD],
        lambda count: np.where(many(FRAME["f0"][PROD], count) > 0, "default", "paid"),
        trust=True,
        way="flavor",
    )
    said, scores = (
        words.predict(FRAME[PROD].to_numpy(np.float32)),
        words.predict_proba(FRAME[PROD].to_numpy(np.float32)),
    )
    yield Animal(
        "logged alone", pyfunc(Words()), with_ids(pa.table({"answer": said})), COLOURS[PROD], predict, way="logged"
    )
    yield Animal(
        "logged with scores",
        pyfunc(Words()),
        with_ids(pa.table({"prompt": ["…"] * ROWS, "answer": said, "scores": lists(scores)})),
        COLOURS[PROD],
        predict,
        way="logged",
    )
    price = 3 * (FRAME["f0"] + FRAME["f1"] * FRAME["f2"] - 0.5 * FRAME["f3"]).to_numpy()[PROD] + 20
    yield Animal(
        "logged, a number",
        pyfunc(Words()),
        with_ids(pa.table({"predicted_price": price})),
        PRICE[PROD],
        lambda count: many(price, count),
        way="logged",
    )
    yield from _keras()


def _keras() -> Iterator[Animal]:
    import os

    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras
    import mlflow

    values = FRAME.to_numpy(np.float32)
    net = keras.Sequential(
        [keras.layers.Input((10,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(2, "softmax")]
    )
    net.compile("adam", "sparse_categorical_crossentropy")
    net.fit(values[TRAIN], CODES[TRAIN], epochs=4, verbose=0)

    def register(name: str) -> Any:
        from mlflow.models import infer_signature

        return mlflow.keras.log_model(
            net,
            registered_model_name=name,
            signature=infer_signature(values[:5], net.predict(values[:5], verbose=0)),
            **requirements(),
        )

    yield Animal(
        "Keras",
        register,
        with_ids(pa.table({"features": lists(values[PROD])})),
        CODES[PROD],
        lambda count: net.predict(many(values[PROD], count), verbose=0).argmax(1),
        trust=True,
        way="flavor",
    )


def animals() -> Iterator[Animal]:
    """All of them, each made when it is asked for."""
    yield from sklearn_animals()
    yield from boosting_animals()
    yield from torch_animals()
    yield from other_animals()
