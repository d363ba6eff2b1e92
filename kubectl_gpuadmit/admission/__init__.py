"""What the API server does to a new pod before a scheduler sees it: defaults, checks, quota."""
