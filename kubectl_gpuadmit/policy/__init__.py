"""The policy file: which rule holds where, at which level, with which settings and exceptions."""

from __future__ import annotations

from kubectl_gpuadmit.policy.entries import (
    ClassMatch,
    Comparison,
    ExceptionMatch,
    PolicyException,
    Pool,
    PoolKubelet,
    RequiredTaint,
    RuleConfig,
    StaticMatch,
    StaticRule,
    TemplateChange,
    Tenant,
    WorkloadClass,
)
from kubectl_gpuadmit.policy.model import Policy, Sign

__all__ = [
    "ClassMatch",
    "Comparison",
    "ExceptionMatch",
    "Policy",
    "PolicyException",
    "Pool",
    "PoolKubelet",
    "RequiredTaint",
    "RuleConfig",
    "Sign",
    "StaticMatch",
    "StaticRule",
    "TemplateChange",
    "Tenant",
    "WorkloadClass",
]
