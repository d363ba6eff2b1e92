"""CEL as the API server and the scheduler run it; what it cannot evaluate is unknown."""
