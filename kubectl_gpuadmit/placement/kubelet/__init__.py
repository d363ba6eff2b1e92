"""The kubelet's own gate after the scheduler's choice: NUMA alignment of devices, CPUs and memory.

A pure copy of what the resource managers of a kubelet decide when a pod comes to their node; the
same answers as Kubernetes 1.37's pkg/kubelet/cm. ``verdicts`` brings it together with a cluster;
the rest reads none: who knows a node's machine, settings and holdings hands them in.
"""

FILTER = "TopologyManager"
"""Stands for the kubelet among the filters of a node: no filter of the scheduler is called so."""

TOPOLOGY = "TopologyAffinityError"
UNEXPECTED = "UnexpectedAdmissionError"
SMT = "SMTAlignmentError"
EMPTY_POOL = "EmptyPodSharedPoolError"
