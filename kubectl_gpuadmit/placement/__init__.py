"""Where pods would run: the scheduler's filters over a cluster's objects, and why they refuse.

Per-node feasibility is exact: it is held to kube-scheduler 1.37.2. Which feasible node is chosen,
who would be preempted among equals and when a pod ends are modelled.
"""
