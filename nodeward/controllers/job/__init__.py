"""Jobs: pods that run to their end, counted exactly.

`controller` looks and writes. What it finds is put together by `job_state`; `ending` says whether the job has finished
and why, `sizing` which pods to make and delete, `accounting` what the status counts and which pods have been counted.
Beneath them: `pod_facts`, `indexes`, `policies` (rules users give), `backoff` (pauses after failures), `making` (new
pods) and `conditions`.
"""
