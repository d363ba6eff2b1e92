"""``topo`` for a terminal, for programs, and as a page to look at."""
