"""What the API server itself does to a new pod before a scheduler sees it: defaults, checks, quota."""
