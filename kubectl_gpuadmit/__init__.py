"""kubectl gpu-admit: may this GPU workload in, would it then run, and what would make it so?"""

__version__ = "0.1.0"
