"""What ``topo`` shows: pools, nodes, GPUs with their holders, alerts; judges no workload."""
