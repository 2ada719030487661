"""Benchmarks of whole servers, the scheduler, rules and fleets; `nodeward bench` runs them."""
