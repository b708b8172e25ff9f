"""A training script of one's own in the style of Lightning: a module with its steps, and Fabric for the rest.

    python examples/lightning_style.py                           a minute on two cores
    python examples/lightning_style.py --tiny                    seconds
    python examples/lightning_style.py --accelerator cuda --devices 2 --precision bf16-mixed

`lightning-fabric`, which comes with this library, brings devices, precision and several processes; the loop stays in
view. Data is the sample of Fashion-MNIST inside the package, so the accuracy says little about the full dataset.
"""

import argparse

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from capsroute import CapsNet, lengths, load_dataset, margin_loss


class Classifier(nn.Module):
    """What a LightningModule is: a net, its training step, its validation step and its optimiser."""

    def __init__(self, net: CapsNet, lr: float = 1e-3) -> None:
        super().__init__()
        self.net, self.lr = net, lr

    def forward(self, images: Tensor) -> Tensor:
        """Class capsules [b, j, d]."""
        return self.net(images)

    def training_step(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        """The loss of a batch."""
        images, labels = batch
        return margin_loss(self(images), labels)

    def validation_step(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        """How many of a batch are right, and how many there are."""
        images, labels = batch
        right = (lengths(self(images)).argmax(1) == labels).sum()
        return torch.stack([right, torch.full_like(right, len(labels))])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam, as in the paper."""
        return torch.optim.Adam(self.parameters(), lr=self.lr)


def loader(split: str, count: int, shuffle: bool) -> DataLoader[tuple[Tensor, ...]]:
    """Batches of the sample, floats from 0 to 1."""
    dataset = load_dataset("sample", split=split)
    tensors = TensorDataset(dataset.images[:count].float() / 255, dataset.labels[:count])
    return DataLoader(tensors, batch_size=32, shuffle=shuffle)


def main() -> None:
    """Train and validate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="512 images and three epochs")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--routing", default="adaptive-lambda")
    parser.add_argument("--accelerator", default="cpu")
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--precision", default="32-true")
    arguments = parser.parse_args()
    count, epochs = (512, 3) if arguments.tiny else (6000, arguments.epochs)

    fabric = Fabric(accelerator=arguments.accelerator, devices=arguments.devices, precision=arguments.precision)
    fabric.launch()
    fabric.seed_everything(0, verbose=False)
    classifier = Classifier(CapsNet.from_preset("small", routing=arguments.routing))
    model, optimizer = fabric.setup(classifier, classifier.configure_optimizers())
    model.mark_forward_method("training_step")
    model.mark_forward_method("validation_step")
    train, test = fabric.setup_dataloaders(loader("train", count, True), loader("test", 500, False))
    for epoch in range(epochs):
        model.train()
        for batch in train:
            optimizer.zero_grad()
            loss = model.training_step(batch)
            fabric.backward(loss)
            optimizer.step()
        model.eval()
        with torch.no_grad():
            counts = sum(model.validation_step(batch) for batch in test)
        right, all_of_them = fabric.all_reduce(counts, reduce_op="sum").tolist()
        fabric.print(f"epoch {epoch + 1}: loss {loss:.3f}, validation {right / all_of_them:.1%}")
    fabric.print(f"accuracy {right / all_of_them:.1%} on {all_of_them} test images of the sample, {count} trained on")


if __name__ == "__main__":
    main()
