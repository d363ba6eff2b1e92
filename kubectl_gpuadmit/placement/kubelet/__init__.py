"""The kubelet's own gate after the scheduler's choice: NUMA alignment of devices, CPUs and memory.

A pure copy of what the resource managers of a kubelet decide when a pod comes to their node; the
same answers as Kubernetes 1.37's pkg/kubelet/cm. It reads no cluster: who knows a node's machine,
settings and holdings hands them in.
"""
