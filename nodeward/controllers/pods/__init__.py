"""The ground under everything that keeps pods: replica sets, daemon sets, stateful sets, jobs.

* `index`: the pods of one owner, and those of nobody, without looking at all of them
* `following`: which owners to look at when a pod changes
* `owners`: the owners of one kind, and which of them need a look
* `expectations`: what was asked of the API but not yet seen, so that nothing is asked twice
* `ownership`: controller references; adopting and releasing
* `control`: making and deleting pods, and telling about it
* `batches`: many requests at once, beginning with few
* `creation_backoff`: after a refusal, ask again later and later
* `state`, `ranking`: what a pod's status means, and which one to delete first
* `failure`, `status_writing`: what the owner's status says when it fails, and how it is written
* `template_hash`: a short name for a template
"""
