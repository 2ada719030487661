"""The words plugins and the scheduler share: statuses, cluster events, pods as seen by plugins, extension points."""
