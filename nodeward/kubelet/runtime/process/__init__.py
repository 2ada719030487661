"""Containers that are local processes: no privileges needed, no images, the node's own file system.

* **What runs** is the command and its arguments; the image is only a name (`runtime.images` says which names fail).
  An image here has no entrypoint: arguments without a command are the command, and with neither the container idles
  until it is told to stop.
* **Each container** has a small supervisor (`shim`), forked by the `nursery` and then nobody's child: it starts the
  command in a session of its own, writes the log, waits for the end and notes the exit code in the container's
  directory. So containers outlive the agent, and the agent learns how they ended when it comes back. A supervisor
  costs under 2 MB of memory of its own, a start some 10 ms.
* **Stopping** signals the command alone, as container runtimes do; when it has ended, or its grace is over,
  everything it started is killed, wherever it went.
* **Volumes** are bind mounts in a mount namespace of the container (`rootfs`): as root directly, else in a user
  namespace. Where the machine allows neither, the container starts without them and finds in `NODEWARD_MOUNTS` where
  they are: one `target=source` a line.
* **Network** is the node's: every pod has the address 127.0.0.1.
* **CPUs** by affinity, which a process could change for itself. **Memory is not limited**: that takes a cgroup.
* **The user** is the agent's; as root, runAsUser and runAsGroup are followed.
"""
