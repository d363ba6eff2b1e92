"""Which GPUs belong together: links, islands, NUMA nodes and PCIe switches of a node, and who holds what."""
