import pytest
import small_runs
import torch

from capsroute import InputError, TrainConfig, fit
from capsroute.hardware import Choice, records_steps

CPU, CUDA = Choice("cpu", "bf16", ""), Choice("cuda", "bf16", "")


@pytest.mark.parametrize(
    ("choice", "device", "processes", "options", "recorded"),
    [
        (CPU, "cpu", 1, {}, False),
        (CUDA, "cuda", 1, {}, True),
        (CUDA, "cuda", 1, {"cuda_graphs": False}, False),
        (CUDA, "cuda", 2, {}, False),
        (CUDA, "cuda", 1, {"compile": True}, False),
        (Choice("cuda", "fp16", ""), "cuda", 1, {}, False),
    ],
)
def test_steps_are_recorded_where_they_can_be(choice, device, processes, options, recorded):
    assert records_steps(TrainConfig(**options), choice, device, processes) is recorded


def test_recording_is_refused_where_it_cannot_be():
    with pytest.raises(InputError, match="--cuda-graphs needs one CUDA device"):
        records_steps(TrainConfig(cuda_graphs=True), CPU, "cpu", 1)


@pytest.mark.gpu
def test_recorded_steps_are_the_plain_ones(tmp_path):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    dataset = small_runs.write_dataset(tmp_path)
    results = []
    for recorded in (False, True):
        options = small_runs.options(dataset, tmp_path / str(recorded), device="cuda", epochs=4, ema=0.9, flip=True)
        results.append(fit(TrainConfig(**options, cuda_graphs=recorded)))
    plain, recorded = ({k: v.cpu() for k, v in result.net.state_dict().items()} for result in results)
    for name in plain:
        torch.testing.assert_close(plain[name], recorded[name], rtol=1e-3, atol=1e-4)
    assert results[0].accuracy == pytest.approx(results[1].accuracy, abs=0.05)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_a_run_learns_on_a_gpu(tmp_path, precision):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    dataset = small_runs.write_dataset(tmp_path)
    changes = {"device": "cuda", "precision": precision, "epochs": 8, "lr": 3e-3}
    assert fit(TrainConfig(**small_runs.options(dataset, tmp_path / "run", **changes))).accuracy > 0.9
