"""Dynamic Resource Allocation: slices and claims in one form, and what would be allocated."""
