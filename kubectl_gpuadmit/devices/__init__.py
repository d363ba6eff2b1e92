"""DRA: slices, classes and claims in one form, and what the scheduler would allocate."""
