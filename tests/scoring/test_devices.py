from __future__ import annotations

import pytest

from opmon.errors import InputError
from opmon.scoring.devices import CPU, CUDA, TENSORRT, Providers


def test_the_cpu_is_the_last_provider() -> None:
    assert Providers.of(["cpu", "tensorrt", "CUDAExecutionProvider", "cuda"]).names == (TENSORRT, CUDA, CPU)
    assert Providers.of(["cpu"]).wanted == ()


def test_options_are_text_and_opmons_own_are_kept_unless_they_are_set() -> None:
    given = {"gpu_mem_limit": "4 GB", "use_tf32": True, "arena_extend_strategy": "kSameAsRequested"}
    cuda = Providers.of(["cuda"], {"cuda": given})
    assert cuda.options_of(CUDA) == {
        "gpu_mem_limit": "4000000000",
        "use_tf32": "1",
        "arena_extend_strategy": "kSameAsRequested",
        "cudnn_conv_algo_search": "HEURISTIC",
    }
    assert Providers.of(["cuda"]).options_of(CUDA)["use_tf32"] == "0"
    assert cuda.options_of(CPU) == {}


def test_the_number_of_a_device_is_the_one_its_memory_is_bound_to() -> None:
    assert Providers.of(["cuda"]).device_id == 0
    assert Providers.of(["cuda"], {"CUDAExecutionProvider": {"device_id": 3}}).device_id == 3


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        ([], {}, "at least one: cpu, cuda"),
        (["cuta"], {}, r"no provider 'cuta' \(did you mean 'cuda'\?\).*ExecutionProvider"),
        (["ExecutionProvider"], {}, "no provider 'ExecutionProvider'"),
        (["cuda"], {"tensorrt": {}}, "options for 'tensorrt'; the providers named that take options are: cuda"),
        (["cpu"], {"cpu": {"threads": 1}}, "options for 'cpu'; .* are: none"),
        (
            ["cuda"],
            {"cuda": {"device_id": "first"}},
            "device_id must be the number of a device, .*'first'",
        ),
        (["cuda"], {"cuda": {"device_id": -1}}, "got -1"),
        (["cuda"], {"cuda": {"gpu_mem_limit": "a lot"}}, "gpu_mem_limit must be bytes, such as 4 GB; got 'a lot'"),
        (["cuda"], {"cuda": {"gpu_mem_limit": 0}}, "such as 4 GB; got 0"),
    ],
)
def test_providers_that_cannot_be_are_told(names, options, message) -> None:
    with pytest.raises(InputError, match=message):
        Providers.of(names, options)
