"""Writing the monitor graph to a file that any ONNX runtime serves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from opmon.errors import InputError, ModelError
from opmon.scoring.graph.adapting import adapted
from opmon.scoring.graph.compiled import compile_graph, on_one_thread, serialised
from opmon.scoring.graph.file import external_files, read_model
from opmon.scoring.outputs.meaning import Scores
from opmon.scoring.outputs.planning import plan_outputs
from opmon.scoring.reference.fitted import Reference
from opmon.scoring.session import Tensor, open_session
from opmon.spellings import Classes
from opmon.types import Problem

if TYPE_CHECKING:
    from onnx import ModelProto

    from opmon.abc import Head

ONE_FILE = 1_800_000_000
"""Above so many bytes the weights go to a file of their own: an ONNX file ends at 2 GB."""


def write_monitor_graph(
    path: Path,
    target: Path,
    problem: Problem,
    heads: Mapping[str, Head],
    reference: Reference | None = None,
    layer: str | None = None,
    raw: bool = False,
    classes: Classes | None = None,
    output: str | None = None,
    scores: Scores = "auto",
    one_file: int = ONE_FILE,
) -> tuple[str, ...]:
    """Write the model in ``path`` with its variables to ``target``; gives the names of its outputs.

    The file is checked with ONNX's own checker and loaded once. Weights go to ``<target>.data`` where the model kept
    them in files or the whole is above ``one_file`` bytes.
    """
    if target.exists() and target.samefile(path):
        raise InputError(f"the monitor graph must not overwrite the model {path}; name another file")
    if reference is not None:
        reference.require_model(path)
    model = read_model(path)
    outside = bool(external_files(model))
    changed = adapted(model)
    source: Path | bytes = path if changed is None else serialised(changed)
    session = open_session(source, "cpu", folder=path.parent)
    model = model if changed is None else changed
    outputs = plan_outputs(model, session.outputs, problem, classes, output, scores)
    score = next(item for item in session.outputs if item.name == outputs.score)
    with on_one_thread():
        compiled = compile_graph(model, outputs, score, heads, reference, layer, raw, whole=True)
    if compiled.outside:
        raise ModelError(
            f"{', '.join(compiled.outside)} cannot be part of the graph, having no ONNX nodes for this model: a "
            f"monitor computes them beside it. Compile the others: --variable"
        )
    _complete(compiled.model, session.outputs)
    _write(compiled.model, path.parent, target, outside, one_file)
    return tuple(item.name for item in open_session(target, "cpu").outputs)


def _complete(model: ModelProto, outputs: Sequence[Tensor]) -> None:
    """Give outputs whose shape the file does not say the one that ONNX Runtime finds: the checker wants one."""
    shapes = {item.name: item.shape for item in outputs}
    for item in model.graph.output:
        if item.type.HasField("tensor_type") and not item.type.tensor_type.HasField("shape"):
            item.type.tensor_type.shape.SetInParent()
            for size in shapes.get(item.name, ()):
                dimension = item.type.tensor_type.shape.dim.add()
                if size is not None:
                    dimension.dim_value = size


def _write(model: ModelProto, folder: Path, target: Path, outside: bool, one_file: int) -> None:
    import onnx

    if outside:
        onnx.load_external_data_for_model(model, str(folder))
    data = f"{target.name}.data"
    split = outside or model.ByteSize() > one_file
    partial = target.with_name(f".{target.name}.part")
    try:
        (target.parent / data).unlink(missing_ok=True)  # onnx appends to a file that is there
        onnx.save_model(model, str(partial), save_as_external_data=split, location=data, size_threshold=1024)
        onnx.checker.check_model(str(partial))
        partial.replace(target)
    except onnx.checker.ValidationError as exc:
        raise ModelError(f"the monitor graph is not valid ONNX, which is a fault in a head: {exc}") from exc
    finally:
        partial.unlink(missing_ok=True)
