"""Which pod next: pods wait here to be scheduled, and are woken by what may help them.

A pure core, given the time as whole nanoseconds and never asking for it. `scheduling_queue` is the door; behind it are
the heap pods are sorted in, backoff, the pods nobody can place, those in a scheduling cycle, and nominated nodes.
"""
