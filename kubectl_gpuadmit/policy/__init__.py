"""The policy file: which rule holds where, at which level, with which settings and exceptions."""

from __future__ import annotations

from kubectl_gpuadmit.policy.model import (
    ClassMatch,
    Comparison,
    ExceptionMatch,
    Policy,
    PolicyException,
    Pool,
    PoolKubelet,
    RequiredTaint,
    RuleConfig,
    Sign,
    StaticMatch,
    StaticRule,
    TemplateChange,
    Tenant,
    WorkloadClass,
)

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
