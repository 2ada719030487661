"""Real containers, through any runtime that speaks CRI v1 over a unix socket (containerd 1.6 and newer).

* **`CriRuntime`** (`runtime.py`) is the `Runtime`; everything it does is a CRI call. What is asked for is worked out by
  pure functions (`sandbox_config`, `container_config`, `resources`); what came of it is read by others (`endings`).
* **Found again** by labels: pods and containers carry `io.kubernetes.pod.uid` and the other labels of the kubelet, so
  nothing about them is kept on disk by the agent, and `crictl` shows them as people know them.
* **Ends of containers** are found by looking, every second and more often after something has changed: older runtimes
  have no stream of events.
* **Network**: the pod's own where the runtime has a network (CNI) set up; where it has none, the node's network for
  every pod, with a warning (`network="auto"`). `"pod"` insists on the pod's own, `"host"` on the node's.
* **Not done**: image pull secrets and credential providers, runtime classes and user namespaces (both refused, never
  ignored), block devices, mount propagation, limits of a pod as a whole.

Importing this package's modules loads gRPC and protobuf: import them where a CRI runtime was chosen, not before.
"""
