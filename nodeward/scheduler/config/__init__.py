"""A scheduler's configuration file (`kubescheduler.config.k8s.io/v1`) as checked settings."""

from nodeward.scheduler.config.loading import load_scheduler_config, read_scheduler_config

__all__ = ["load_scheduler_config", "read_scheduler_config"]
