"""Class capsules on the tokens of a small transformer encoder.

    python examples/token_capsules.py            a minute on two cores
    python examples/token_capsules.py --tiny     seconds

An image is cut into patches of 4 x 4 pixels, one token each; an encoder mixes them; and `CapsuleHead` makes four lower
capsules of each token and routes all of them to the classes, in place of a class token. Data is the sample of
Fashion-MNIST inside the package, so the accuracy says little about the full dataset.
"""

import argparse

import torch
from torch import Tensor, nn

from capsroute import CapsuleHead, lengths, load_dataset, margin_loss
from capsroute.data.batches import Batches

PATCH, WIDTH = 4, 64


class TokenCapsules(nn.Module):
    """Patches, an encoder, class capsules."""

    def __init__(self, shape: tuple[int, int, int], classes: int, layers: int, routing: str) -> None:
        super().__init__()
        channels, height, width = shape
        tokens = (height // PATCH) * (width // PATCH)
        self.embed = nn.Conv2d(channels, WIDTH, PATCH, PATCH)
        self.places = nn.Parameter(0.02 * torch.randn(tokens, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, nn.LayerNorm(WIDTH), enable_nested_tensor=False)
        self.head = CapsuleHead((tokens, WIDTH), classes, primary_dim=16, routing=routing)

    def forward(self, images: Tensor) -> Tensor:
        """Class capsules [b, j, d]."""
        tokens = self.embed(images).flatten(2).transpose(1, 2) + self.places  # [b, tokens, features]
        return self.head(self.encoder(tokens))


def main() -> None:
    """Train, and tell how good the net is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="512 images, one encoder layer, three epochs")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--routing", default="adaptive-lambda")
    arguments = parser.parse_args()
    count, layers, epochs = (512, 1, 3) if arguments.tiny else (6000, 3, arguments.epochs)

    torch.manual_seed(0)
    train, test = load_dataset("sample"), load_dataset("sample", split="test")
    net = TokenCapsules(train.shape, len(train.classes), layers, arguments.routing)
    print(net.head)
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
