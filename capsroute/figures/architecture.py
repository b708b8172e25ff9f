"""A net as a drawing: every block with the shape that it gives, made from the net itself."""

from dataclasses import dataclass

from capsroute.figures.drawing import COLOURS, GREY, Drawing, new_figure
from capsroute.layers import CapsuleLayer
from capsroute.models import CapsNet, parameter_count
from capsroute.stems import STEMS

BLOCK = 1.5  # inches of each block and what leads to it


@dataclass(frozen=True)
class Block:
    """A box of the drawing, and what leads to it."""

    name: str
    shape: str
    how: str
    parameters: int
    colour: str
    count: int  # of maps or capsules: how tall it is drawn


def blocks_of(net: CapsNet) -> list[Block]:
    """Image, feature maps, primary capsules, and each layer of capsules."""
    config = net.config
    channels, height, width = net.in_shape
    stem = STEMS[config["stem"]]
    sides = [stem.side(side, config["stem_kernel"]) for side in (height, width)]
    maps = config["stem_channels"]
    stem_text = stem.text.format(kernel=config["stem_kernel"]).replace(", ", "\n")
    primary = f"{config['primary_kernel']}x{config['primary_kernel']} conv,\nstride {config['primary_stride']}, squash"
    blocks = [
        Block("image", f"{channels} x {height} x {width}", "", 0, GREY, channels),
        Block("features", f"{maps} x {sides[0]} x {sides[1]}", stem_text, parameter_count(net.stem), COLOURS[5], maps),
        Block(
            "primary\ncapsules",
            f"{net.capsules[0]} x {net.dims[0]}-D",
            primary,
            parameter_count(net.primary),
            COLOURS[4],
            net.capsules[0],
        ),
    ]
    for number, layer in enumerate(net.layers):
        assert isinstance(layer, CapsuleLayer)
        last = number + 1 == len(net.layers)
        options = layer.routing.extra_repr().split(",")[0]
        blocks.append(
            Block(
                "class\ncapsules" if last else f"capsules {number + 1}",
                f"{net.capsules[number + 1]} x {net.dims[number + 1]}-D",
                f"{layer.routing_name}\n{options}" + ("\n+ input" if net.is_residual(number) else ""),
                parameter_count(layer),
                COLOURS[1] if last else COLOURS[0],
                net.capsules[number + 1],
            )
        )
    return blocks


def draw_architecture(net: CapsNet, source: str, name: str = "architecture") -> Drawing:
    """The blocks from left to right; heights grow with the number of maps or capsules."""
    from matplotlib.patches import FancyBboxPatch

    blocks = blocks_of(net)
    caption = f"{parameter_count(net):,} parameters. Above the arrows: how; below: parameters. {source}"
    width = BLOCK * (len(blocks) - 0.4)  # nothing leads to the first
    with new_figure(width, 2.5, caption) as figure:
        axes = figure.subplots()
        axes.set_axis_off()
        axes.set_xlim(0.4, len(blocks))
        axes.set_ylim(-1.15, 1.3)
        for place, block in enumerate(blocks):
            half = 0.25 + 0.5 * min(1.0, block.count / 1152) ** 0.4
            left = place + 0.55
            axes.add_patch(
                FancyBboxPatch(
                    (left, -half),
                    0.34,
                    2 * half,
                    boxstyle="round,pad=0.02,rounding_size=0.04",
                    facecolor=block.colour,
                    edgecolor="black",
                    linewidth=0.6,
                    alpha=0.55,
                )
            )
            axes.text(left + 0.17, half + 0.08, block.name, ha="center", va="bottom", fontsize=8)
            axes.text(left + 0.17, -half - 0.1, block.shape, ha="center", va="top", fontsize=7.5)
            if place:
                start = place - 1 + 0.55 + 0.38
                axes.annotate("", (left - 0.04, 0), (start, 0), arrowprops={"arrowstyle": "-|>", "lw": 1})
                middle = (start + left - 0.04) / 2
                axes.text(middle, 0.08, block.how, ha="center", va="bottom", fontsize=6.2)
                axes.text(middle, -0.1, f"{block.parameters:,}", ha="center", va="top", fontsize=6.2, color=GREY)
    return Drawing(name, f"The net {[*net.capsules]}", caption, figure)
