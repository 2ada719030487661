"""What every component stands on: clock, chance, work queue, client, informer, leader election, event recorder.

Nothing here knows a Kubernetes rule. Components receive these things in their constructors and reach the outside
world through them alone, which is what lets the same component run for real and in a rehearsal.
"""
