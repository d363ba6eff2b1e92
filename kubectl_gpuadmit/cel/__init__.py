"""The Common Expression Language as the API server and the scheduler run it; what cannot be evaluated is said to be unknown."""
