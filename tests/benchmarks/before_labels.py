"""Expected accuracy: how far off is it, and how often does its interval hold the accuracy of all inputs of a round?

    python tests/benchmarks/before_labels.py --json [--labels 200] [--seeds 3] [--sampler adaptive] [--delay 1]
                                             [--only "census;concept"] [--folder nannyml/datasets/data]
    python tests/benchmarks/before_labels.py --speed

One line per stream. Errors are means of absolute errors, in points, over all rounds but the first: ``confidence`` of
the mean of the model's own scores, ``ours``, ``rolling`` of the mean of the last five rounds' estimates, ``noise`` of
somebody who knows each input's chance to be wrong by the model's scores (a round is right on more or fewer of its
inputs by chance). ``ratio`` is ``ours`` in errors of ``confidence``, ``least_ratio`` is ``noise`` in them: where scores
are right, no method gets below it, and where it is above one half, none meets the bar. ``coverage`` is that of the
interval of 95 %, ``half_width`` its mean. Each round is labelled by opmon's own sampler and estimator; ``--delay`` is
how many rounds later its labels are there.
The bar: ``ours`` at most half of ``confidence``, coverage at least 90 %. ``--speed`` times a round of a million inputs.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from before_labels_data import OTHERS, TUNED, Inputs, Stream, folder_of

from opmon import plugins
from opmon.expected import Expectation, Miss, Past, Seen, expect, from_scores
from opmon.types import Draw, Estimate, Frame, Sample

WINDOW = 30


def labelled(round_: Inputs, sampler: str, labels: int, seed: int) -> tuple[Draw, Sample, Estimate]:
    """The labels of a round, and what is estimated from them."""
    rng = np.random.default_rng(seed)
    frame, chosen = Frame({"confidence": round_.own}, predictions=round_.said), plugins.make("sampler", sampler, {})
    draw = chosen.draw(frame, labels, rng)
    while len(draw) < labels:
        known = Sample(draw, round_.wrong[draw.positions], "classification")
        more = chosen.next_batch(frame, labels, known, rng)
        if len(more) == len(draw):
            break
        draw = more
    sample = Sample(draw, round_.wrong[draw.positions], "classification")
    return draw, sample, plugins.make("estimator", draw.design).estimate(sample)


def life(stream: Stream, sampler: str, labels: int, delay: int, seed: int) -> np.ndarray:
    """Per round: truth, expected, low, high, mean confidence, rolling, the variance of the truth given the scores."""
    known: list[tuple[Past, Estimate]] = []
    told: dict[int, Expectation] = {}
    rows = []
    for number, each in enumerate(stream):
        there = [one for one in known if one[0].number <= number - delay][-WINDOW:]
        misses = [
            Miss(past.number, told[past.number].value - (1 - found.value), told[past.number].sd, _noise(found))
            for past, found in there
        ]
        frame = Seen({"confidence": each.own}, each.said)
        past = [one for one, _ in there]
        told[number] = expect(past, misses, frame, number, binary=True) if past else from_scores(frame)
        last = [found.value for _, found in there[-5:]]
        own = float(each.own.mean(dtype=float))
        rows.append(
            (
                1 - each.wrong.mean(),
                1 - told[number].value,
                1 - told[number].high,
                1 - told[number].low,
                1 - own,
                np.mean(last) if last else 1 - own,
                float((each.own * (1 - each.own)).mean()) / len(each.own),
            )
        )
        draw, sample, found = labelled(each, sampler, labels, 1000 * seed + number)
        weights = plugins.make("estimator", draw.design).coefficients(sample)
        at = draw.positions
        inputs = Seen({"confidence": each.own[at].astype(float)}, each.said[at])
        known.append((Past(number, inputs, each.wrong[at], np.ones(len(at)) if weights is None else weights), found))
    return np.array(rows)


def _noise(estimate: Estimate) -> float:
    return (estimate.half_width / 1.96) ** 2


def measured(name: str, streams: list[Stream], sampler: str, labels: int, delay: int) -> dict[str, object]:
    """One line."""
    found = np.concatenate([life(each, sampler, labels, delay, seed)[1:] for seed, each in enumerate(streams)])
    truth, value, low, high, own, rolling, noise = found.T
    off = {"confidence": own, "ours": value, "rolling": rolling}
    errors = {key: 100 * float(np.abs(each - truth).mean()) for key, each in off.items()}
    chance = 100 * float(np.sqrt(2 / np.pi * noise).mean())
    return {
        "data": name,
        "rounds": len(found),
        **errors,
        "ratio": errors["ours"] / errors["confidence"],
        "noise": chance,
        "least_ratio": chance / errors["confidence"],
        "coverage": float(((low <= truth) & (truth <= high)).mean()),
        "half_width": 50 * float((high - low).mean()),
        "accuracy": [100 * float(truth.min()), 100 * float(truth.max())],
    }


def speed() -> dict[str, float]:
    """Seconds of processor for a round of a million inputs with three variables, after 20 rounds of 200 labels."""
    rng = np.random.default_rng(0)
    size = 1_000_000

    def seen(count: int) -> Seen:
        own = rng.beta(1, 5, count).astype(np.float32)
        more = {"dsa": rng.random(count).astype(np.float32), "lsa": rng.random(count).astype(np.float32)}
        return Seen({"confidence": own, **more}, rng.integers(0, 10, count))

    past = []
    for number in range(20):
        inputs = seen(200)
        past.append(
            Past(number, inputs, (rng.random(200) < inputs.variables["confidence"]).astype(float), np.ones(200))
        )
    frame, began = seen(size), time.process_time()
    expect(past, [], frame, 20, binary=True)
    return {"inputs": size, "processor_seconds": time.process_time() - began}


def main() -> None:
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--labels", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sampler", default="adaptive")
    parser.add_argument("--delay", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    if given.speed:
        print(json.dumps(speed()))
        return
    every = {**TUNED, **OTHERS}
    wanted = [name for name in every if not given.only or name in given.only.split(";")]
    folder = folder_of(given.folder)
    for name in wanted:
        streams = [every[name](folder, seed) for seed in range(given.seeds)]
        row = measured(name, streams, given.sampler, given.labels, given.delay)
        row |= {"tuned": name in TUNED, "sampler": given.sampler, "labels": given.labels, "delay": given.delay}
        if given.json:
            print(json.dumps(row), flush=True)
            continue
        holds = row["ratio"] <= 0.5 and row["coverage"] >= 0.9
        print(
            f"{name:20s} confidence {row['confidence']:5.2f}  ours {row['ours']:5.2f} (x {row['ratio']:.2f}, "
            f"at best {row['least_ratio']:.2f})  "
            f"rolling {row['rolling']:5.2f}  noise {row['noise']:4.2f}  coverage {row['coverage']:.3f}  "
            f"half width {row['half_width']:5.2f}{'' if holds else '  below the bar'}",
            flush=True,
        )


if __name__ == "__main__":
    main()
