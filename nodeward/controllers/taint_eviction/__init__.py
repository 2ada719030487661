"""Taint eviction: pods leave nodes whose NoExecute taints they do not put up with, when their time is over."""
