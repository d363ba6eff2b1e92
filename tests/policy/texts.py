"""Policy texts that several tests read."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTED = (ROOT / "docs/policy.md").read_text("utf-8")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```", DOCUMENTED, re.M | re.S)
FULL = BLOCKS[0]
"""The example of docs/policy.md: every part of the file."""

POLICIES = """\
policies:
  - name: "route-batch-to-batch-pool"
    match:
      labels:
        workload-type: "batch"
    mutate:
      nodeSelector:
        nvidia.com/gpu.pool: "batch"
        topology.kubernetes.io/zone: "us-east1-b"
  - name: "reject-large-gpu-on-live"
    match:
      labels:
        workload-type: "interactive"
      resources:
        gpuMemoryGB: ">40"
    deny:
      message: "Interactive models limited to 40GB."
"""
FAVORITES = """\
# For pods in gpu-training namespace
apiVersion: v1
kind: Policy
favorites:
- matchExpressions:
  - {key: "type", operator: In, values: ["training"]}
  nodeSelector:
    nvidia.com/gpu.product: "H100-SXM-80GB"
  # validate nodeSelector is not tainted
  requiredTaints:
  - key: "dedicated"
    operator: "Equal"
    value: "gpu"
"""


def in_config_map(key: str, text: str) -> str:
    body = "".join(f"    {line}" for line in text.splitlines(keepends=True))
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n"
    return f"{head}  other: x\n  {key}: |\n{body}"
