"""The kubelet's configuration file (`kubelet.config.k8s.io/v1beta1`): read, checked as a whole, given as settings."""

from nodeward.kubelet.config.loading import load_file, load_text
from nodeward.kubelet.config.settings import GateProbe, KubeletSettings, ReadinessGateSettings

__all__ = ["GateProbe", "KubeletSettings", "ReadinessGateSettings", "load_file", "load_text"]
