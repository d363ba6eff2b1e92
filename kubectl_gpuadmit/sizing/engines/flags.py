"""The flags, variables and programs by which engines are told anything that this program reads.

What is written to a file keeps these and drops the rest: see ``snapshots.secrets``.
"""

from __future__ import annotations

from kubectl_gpuadmit.sizing.engines import kserve, nim, reading, starts

NAMES: frozenset[str] = frozenset(
    name.lstrip("-").replace("_", "-").lower()
    for flags, bare, _ in reading.TABLES.values()
    for name in (*(n for flag in flags for n in flag.names), *bare)
    if len(name) > 2 or name in ("-m", "-c")
)
"""Without their dashes, in small letters. Flags of one letter mean passwords to other programs."""

VARIABLES: frozenset[str] = frozenset(
    {name for table in reading.VARIABLES.values() for name, _ in table}
    | {name for name, _ in nim.VARIABLES}
    | {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}
    | {"VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS", "LWS_GROUP_SIZE"}
)

PROGRAMS: frozenset[str] = frozenset(
    {*starts.PROGRAMS, *starts.MODULES, *starts.LAUNCHERS}
    | {"sh", "bash", "/bin/sh", "/bin/bash", "exec", "python", "python3", "ray", "start", "sleep"}
    | {"&&", "||", ";", "|", "&", "\\", "env", "nohup", "if", "then", "else", "fi", "do", "done"}
)
assert kserve.FLAGS, "its flags are among the names"
