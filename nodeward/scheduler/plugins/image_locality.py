"""ImageLocality: nodes that have the pod's images already are better, the more so the larger the images.

An image counts by the share of nodes that have it, so that pods do not all go to the one node that was first. This
share changes for all rows at once, hence `shared_state`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from nodeward.scheduler.cache.images import IMAGES, Image, Images
from nodeward.scheduler.framework.plugin import (
    MAX_SCORE,
    ColumnScorePlugin,
    CycleState,
    PreScorePlugin,
    SharedStatePlugin,
)
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import SUCCESS, Status

if TYPE_CHECKING:
    from nodeward.scheduler.cache.node import NodeView
    from nodeward.scheduler.cache.table import NodeTable

_MB: Final = 1024 * 1024
#: Less than this in all is not worth a thought; more than this per image counts as this.
SMALLEST: Final = 23 * _MB
LARGEST: Final = 1000 * _MB


class ImageLocality(PreScorePlugin, ColumnScorePlugin, SharedStatePlugin):
    name: ClassVar[str] = "ImageLocality"
    default_weight: ClassVar[int] = 1
    pod_fields = ("spec.containers[*].image", "spec.init_containers[*].image", "spec.volumes[*].image")
    is_static: ClassVar[bool] = True

    def pre_score(self, cycle: CycleState, pod: PodView, table: NodeTable) -> Status:
        cycle.data[self.name] = wanted_images(pod), table.node_index(IMAGES)
        return SUCCESS

    def shared_state(self, cycle: CycleState, table: NodeTable) -> object:
        wanted, images = _kept(cycle)
        known = [(image.size, image.nodes) for image in map(images.get, wanted) if image is not None]
        # As long as nobody has any of them, the number of nodes does not matter.
        return (table.count, known) if known else None

    def score_rows(self, cycle: CycleState, table: NodeTable, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        wanted, images = _kept(cycle)
        sums = np.zeros(table.capacity, np.int64)
        for name in wanted:
            image = images.get(name)
            if image is not None:
                sums[list(image.rows)] += _worth(image, table.count)
        largest = LARGEST * len(wanted)
        return MAX_SCORE * (sums[rows].clip(SMALLEST, largest) - SMALLEST) // (largest - SMALLEST)

    def score(self, cycle: CycleState, pod: PodView, node: NodeView) -> int:
        wanted, images = _kept(cycle)
        here = {name for listed in node.node.status.images for name in listed.names}
        found = (images.get(name) for name in wanted if name in here)
        total = sum(_worth(image, images.nodes) for image in found if image is not None)
        largest = LARGEST * len(wanted)
        return MAX_SCORE * (min(max(total, SMALLEST), largest) - SMALLEST) // (largest - SMALLEST)


def wanted_images(pod: PodView) -> list[str]:
    """The images of its containers and volumes, with a tag; one that is wanted twice counts twice."""
    spec = pod.pod.spec
    names = [container.image for container in (*spec.init_containers, *spec.containers)]
    names += [volume.image.reference for volume in spec.volumes if volume.image is not None]
    return [f"{name}:latest" if name.rfind(":") <= name.rfind("/") else name for name in names]


def _kept(cycle: CycleState) -> tuple[list[str], Images]:
    """What `pre_score` left: the images the pod wants, and where images are."""
    kept: tuple[list[str], Images] = cycle.data[ImageLocality.name]
    return kept


def _worth(image: Image, nodes: int) -> int:
    return int(image.size * (image.nodes / nodes))
