"""The policy that ``policy init`` writes: every part once, commented, denying nothing yet."""

from __future__ import annotations

STARTER = """\
# Policy of kubectl gpu-admit. Check it with:  kubectl gpu-admit policy lint FILE
# Everything here only warns. Turn a rule to deny when its findings have been right for a while.
apiVersion: gpu-admit.io/v1
kind: AdmissionPolicy
metadata:
  name: starter

# Pools: nodes that carry these labels. Replace the labels by your own.
pools:
  inference:
    nodeSelector: {gpu-partition: inf}
  train:
    nodeSelector: {gpu-partition: train}
    tolerations:                     # what a pod needs to enter, if the nodes are tainted
    - {key: dedicated, operator: Equal, value: train, effect: NoSchedule}

# Workload classes: how work is recognised, where it may land, at which priority it runs.
# A pod that shows any of the signs is of the class; all pairs of one sign must hold together.
classes:
  inference:
    match:
      labels: {workload-type: interactive}
      priorityClasses: [llm-inference-critical]
    pool: inference
    priorityClass: llm-inference-critical
  train:
    match:
      labels: {workload-type: batch}
      priorityClasses: [llm-training-batch]
    pool: train
    priorityClass: llm-training-batch

# What holds where a rule below says nothing else. Levels: off, audit, warn, deny.
defaults:
  level: warn
  ifMissing: warn                    # a fact that a rule needs is not there: show it

# Rules by name: a level, or level, settings, and other levels for namespaces and pools.
# kubectl gpu-admit explain --rule NAME prints what a rule does.
rules:
  labels/required:
    settings: {labels: [team, workload-type]}
    namespaces: {kube-system: off}
  labels/class: warn
  partition/route: audit             # audit shows the change without making it
  partition/confine: warn
  partition/priority: warn
  ephemeral/ttl:
    settings: {maxDuration: 24h, classes: [train]}
  ephemeral/overrun: warn
  capacity/utilisation:
    settings: {thresholdPercent: 95, window: 2m, halfLife: 1m}
  capacity/free-floor:
    level: audit
    settings: {floorPercent: 20}
  capacity/burst:
    settings: {maxPods: 100}
  topology/island-integrity: warn    # these rest on the agent's map of each node
  topology/splits-island:
    settings: {training: [train], inference: [inference]}
  topology/residue: warn

# Your own rules: a match, and what follows from it.
static:
- name: interactive-stays-small
  level: warn
  match:
    labels: {workload-type: interactive}
    resources: {gpuMemoryGB: ">320"}   # all GPUs of one pod together
  deny:
    message: Interactive models may use 320 GB of GPU memory a pod; ask the platform team for more

# Work that may differ, by whose word, why, and until when.
exceptions: []
# - rules: [labels/required]
#   match: {namespaces: [research-legacy]}
#   owner: platform-team@example.com
#   reason: moves to labels with release 7
#   expires: 2027-03-31

# Immature features of device drivers (MPS, DynamicMIG …) that may be used; no other may.
# kubectl gpu-admit policy ledger FILE prints every feature, its stage, and what is undecided.
ledger:
  features: []
# - feature: DynamicMIG
#   owner: gpu-platform@example.com
#   expires: 2027-03-31
#   reason: pilot on the A100 nodes
#   testCluster: mig-lab

# Annotations that say when a job ends: a duration (4h) or a time (RFC 3339).
ttlAnnotations: [gpu-admit.io/ttl]
"""
