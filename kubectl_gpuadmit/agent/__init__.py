"""The node agent's process: looks at its node again and again, and keeps one object true."""
