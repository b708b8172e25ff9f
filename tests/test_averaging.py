import pytest
import torch

from capsroute import TrainConfig, fit
from capsroute.averaging import WeightAverage


def test_the_average_is_the_weighted_mean_of_the_weights_after_each_step():
    module = torch.nn.Linear(2, 1)
    average = WeightAverage(module, 0.9)
    seen = []
    for step in range(5):
        module.weight.data.fill_(float(step))
        average.update()
        seen.append(float(step))
    weights = [0.9 ** (len(seen) - 1 - number) for number in range(len(seen))]
    expected = sum(w * value for w, value in zip(weights, seen, strict=True)) / sum(weights)
    with average.applied():
        assert module.weight[0, 0].item() == pytest.approx(expected, rel=1e-6)
    assert module.weight[0, 0].item() == 4.0


def test_before_the_first_step_the_weights_are_their_own_average():
    module = torch.nn.Linear(2, 1)
    before = module.weight.clone()
    with WeightAverage(module, 0.9).applied():
        assert torch.equal(module.weight, before)


def test_the_weights_come_back_after_an_error():
    module = torch.nn.Linear(2, 1)
    average = WeightAverage(module, 0.5)
    average.update()
    module.weight.data.fill_(3.0)
    with pytest.raises(ZeroDivisionError), average.applied():
        raise ZeroDivisionError
    assert (module.weight == 3.0).all()


def test_the_state_makes_the_same_average_again():
    module = torch.nn.Linear(2, 1)
    one, other = WeightAverage(module, 0.9), WeightAverage(module, 0.9)
    for _ in range(3):
        module.weight.data.normal_()
        one.update()
    other.load_state(one.state())
    with one.applied():
        averaged = module.weight.clone()
    with other.applied():
        assert torch.equal(module.weight, averaged)


def test_a_run_is_judged_and_saved_with_averaged_weights(tmp_path):
    options = {"dataset": "sample", "limit": 64, "preset": "small", "epochs": 2, "batch_size": 16, "quiet": True}
    plain = fit(TrainConfig(**options, device="cpu", precision="fp32", out=tmp_path / "plain"))
    averaged = fit(TrainConfig(**options, device="cpu", precision="fp32", out=tmp_path / "averaged", ema=0.9))
    plain_weight, weight = (result.net.layers[0].weight for result in (plain, averaged))
    assert torch.equal(plain_weight, weight)  # the run goes on with its own weights ...
    from capsroute import load

    saved = load(tmp_path / "averaged").layers[0].weight
    assert not torch.equal(saved, weight)  # ... and saves their average
    assert plain.values["confusion"] != averaged.values["confusion"] or plain.values["loss"] != averaged.values["loss"]
