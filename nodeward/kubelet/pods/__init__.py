"""The life of one pod on one node, as a pure state machine: what happened comes in, what to do goes out."""
