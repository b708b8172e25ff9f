"""Put class capsules on a plain ResNet-18 in place of its pooling and its linear layer.

    python examples/resnet18_head.py                a minute on two cores: a quarter of the width
    python examples/resnet18_head.py --width 64     the published width, minutes an epoch
    python examples/resnet18_head.py --tiny         seconds

The net is written out below and knows nothing of capsules. `CapsuleHead` takes its feature maps [b, c, h, w]: eight
channels at one position make a lower capsule, and the head's lengths are the scores. Data is the sample of
Fashion-MNIST inside the package, so the accuracy says little about the full dataset.
"""

import argparse

import torch
from torch import Tensor, nn

from capsroute import CapsuleHead, lengths, load_dataset, margin_loss
from capsroute.data.batches import Batches


class Block(nn.Module):
    """relu(x + f(x)), f being two convolutions."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, 1, 1, bias=False),
            nn.BatchNorm2d(after),
        )
        self.shortcut = nn.Sequential()
        if stride > 1 or before != after:
            self.shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x: Tensor) -> Tensor:
        """The block's result."""
        return torch.relu(self.body(x) + self.shortcut(x))


def resnet18(channels: int, width: int = 64) -> nn.Sequential:
    """ResNet-18 for small images (first convolution 3 x 3, no pooling), up to its last feature maps."""
    layers: list[nn.Module] = [nn.Conv2d(channels, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    before = width
    for after, stride in ((width, 1), (2 * width, 2), (4 * width, 2), (8 * width, 2)):
        layers += [Block(before, after, stride), Block(after, after, 1)]
        before = after
    return nn.Sequential(*layers)


def main() -> None:
    """Train body and head together, and tell how good they are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="width 8, 512 images, three epochs")
    parser.add_argument("--width", type=int, default=16, help="channels of the first layers; 64 is the published one")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--routing", default="adaptive-lambda")
    arguments = parser.parse_args()
    width, count, epochs = (8, 512, 3) if arguments.tiny else (arguments.width, 6000, arguments.epochs)

    torch.manual_seed(0)
    train, test = load_dataset("sample"), load_dataset("sample", split="test")
    channels, height, _ = train.shape
    side = -(-height // 8)  # three strides of two, each rounding up
    body = resnet18(channels, width)
    head = CapsuleHead((8 * width, side, side), classes=len(train.classes), routing=arguments.routing)
    net = nn.Sequential(body, head)
    print(head)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    batches = Batches(train.images[:count], train.labels[:count], batch_size=32)
    for epoch in range(epochs):
        for images, labels in batches.epoch(epoch):
            optimizer.zero_grad()
            loss = margin_loss(net(images), labels)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1}: loss {loss:.3f}")

    net.eval()
    with torch.no_grad():
        predictions = lengths(net(test.images[:500].float() / 255)).argmax(1)
    accuracy = (predictions == test.labels[:500]).float().mean()
    print(f"accuracy {accuracy:.1%} on 500 test images of the sample, {count} trained on")


if __name__ == "__main__":
    main()
