"""How each serving engine is told what to serve: one module an engine, its flags as data."""
