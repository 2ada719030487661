"""Device taint eviction: pods leave devices with NoExecute taints, when the time their claims tolerate them is over."""
