"""What a node can do, as the static configuration its declared features are discovered from (KEP-5328).

Three sources: the code of this kubelet, its configuration, and its container runtime (`Runtime.abilities`). All are
fixed for a kubelet run, so an autoscaler that knows version, gates and these settings predicts the node's list.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from nodeward.features.declared.abilities import CPU_MANAGER_POLICY, POD_RESIZE, able
from nodeward.kubelet.config.settings import KubeletSettings

#: What the code of this kubelet does on any machine. Volumes in memory have no size here, so none is changed.
KUBELET_ABILITIES: Final = able(POD_RESIZE)


def static_config(settings: KubeletSettings, runtime: Mapping[str, str]) -> Mapping[str, str]:
    """The static configuration of a node; `runtime` is what its container runtime can do."""
    return MappingProxyType({**KUBELET_ABILITIES, CPU_MANAGER_POLICY: settings.cpu_policy, **runtime})
