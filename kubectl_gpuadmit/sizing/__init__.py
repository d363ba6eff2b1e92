"""How much memory a model needs on each GPU, and what the devices of a placement would give it."""
