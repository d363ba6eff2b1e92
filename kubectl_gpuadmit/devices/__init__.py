"""Dynamic Resource Allocation: slices, classes, claims, and what the scheduler would allocate."""
