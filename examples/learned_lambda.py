"""Let a three-layer net learn λ of Algorithm 2, one for each capsule layer, and watch where each goes.

    python examples/learned_lambda.py            a minute on two cores
    python examples/learned_lambda.py --tiny     seconds

λ scales the sum of votes before the squash: v = squash(λ Σ_i û). Learned, it is exp(θ) with θ a parameter like any
other. Data is the sample of Fashion-MNIST inside the package, so the accuracy says little about the full dataset.
"""

import argparse

import torch

from capsroute import CapsNet, init_lengths_, lengths, load_dataset, margin_loss
from capsroute.data.batches import Batches


def main() -> None:
    """Train, and print λ of each layer after every epoch."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="512 images and three epochs")
    parser.add_argument("--epochs", type=int, default=5)
    arguments = parser.parse_args()
    count, epochs = (512, 3) if arguments.tiny else (6000, arguments.epochs)

    torch.manual_seed(0)
    train, test = load_dataset("sample"), load_dataset("sample", split="test")
    net = CapsNet(
        train.shape,
        capsules=(None, 32, 10),
        stem_channels=32,
        primary_groups=4,
        routing="adaptive-lambda",
        lam="learned",
    )
    init_lengths_(net, train.images[:128].float() / 255)  # a stack starts with lengths that train
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    batches = Batches(train.images[:count], train.labels[:count], batch_size=32)
    print(f"start: {lambdas(net)}")
    for epoch in range(epochs):
        for images, labels in batches.epoch(epoch):
            optimizer.zero_grad()
            loss = margin_loss(net(images), labels)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1}: loss {loss:.3f}, {lambdas(net)}")

    with torch.no_grad():
        predictions = lengths(net(test.images[:500].float() / 255)).argmax(1)
    accuracy = (predictions == test.labels[:500]).float().mean()
    print(f"accuracy {accuracy:.1%} on 500 test images of the sample, {count} trained on")


def lambdas(net: CapsNet) -> str:
    """Of each layer, as it is now."""
    return ", ".join(f"layer {number} λ {layer.routing.factor():.4f}" for number, layer in enumerate(net.layers, 1))


if __name__ == "__main__":
    main()
