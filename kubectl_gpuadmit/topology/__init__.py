"""Which GPUs of a node belong together: links, islands, NUMA, PCIe switches; and who holds what."""
