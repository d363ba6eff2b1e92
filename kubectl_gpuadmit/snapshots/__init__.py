"""What is kept of a cluster, how it is made anonymous, and how two of them differ by verdict."""
