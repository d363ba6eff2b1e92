"""What ResourceQuota and LimitRange refuse, told by the numbers in the text; looks up no quota.

Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/resourcequota/controller.go and
k8s.io/kubernetes
v1.37.2 plugin/pkg/admission/limitranger/admission.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.diagnosis.cause import (
    QUANTITY,
    Cause,
    Heard,
    Hit,
    Phrase,
    Who,
    pattern,
    spoken,
    table,
)
from kubectl_gpuadmit.diagnosis.pasted import Statement
from kubectl_gpuadmit.kube.quantity import QuantityError, canonical, parse
from kubectl_gpuadmit.verdict import Evidence

REASONS = {
    "why/quota-none": "A ResourceQuota counts the resource only where a scope or configuration"
    " says so,"
    " and the namespace has no quota that covers the object. Ask who runs the cluster for one.",
    "why/quota-timeout": "The API server could not evaluate quotas in time. Try again; if it"
    " stays, the"
    " API server or etcd is overloaded.",
    "why/quota-elsewhere": "A vendor's webhook refused the object by a quota of its own, which"
    " kubectl"
    " get resourcequota may not show. Ask for less, or have that quota raised.",
}

_KEY = r"[A-Za-z0-9][-A-Za-z0-9._/]{0,316}"
_AMOUNTS = rf"{_KEY}={QUANTITY}(?:,{_KEY}={QUANTITY})*"
_EXCEEDED = pattern(
    rf"exceeded quota: (?P<quota>(?-i:[a-z0-9][-a-z0-9.]{{0,252}}?)) , requested:"
    rf" (?P<requested>{_AMOUNTS})"
    rf" (?: ,used: (?P<used>{_AMOUNTS}) (?: ,limited: (?P<limited>{_AMOUNTS}) )? )?"
)
_EXCEEDED_CUT = pattern(r"exceeded quota(?: : (?P<quota>(?-i:[a-z0-9][-a-z0-9.]*))? )?")
_TEMPLATE = pattern(r"Pod(?:Group)?ResourceClaim <claim:NAME> :")
_CARRIER = pattern(r"admission webhook \"(?P<webhook>[^\"]{1,400})\" denied the request")

QUOTA_NEXT = "kubectl describe resourcequota {quota}"


def amounts(statement: Statement, hit: Hit, group: str) -> dict[str, str]:
    """``a=1,b=2`` as keys and quantities; what a blank ends belongs to the text after it."""
    if hit.match[group] is None:
        return {}
    found = {}
    for item in statement.beside(*hit.match.span(group)).split(","):
        words = item.split()
        item = words[0] if len(words) < 2 or "=" in words[0] else "".join(words)
        key, _, value = item.partition("=")
        found[key.strip()] = value.strip()
    return found


def _number(text: str) -> int | None:
    try:
        return parse(text).nano if text else None
    except QuantityError:
        return None


def _exceeded(statement: Statement) -> Iterator[Heard]:
    last = 0
    for match in _EXCEEDED.finditer(statement.bare):
        hit = Hit(statement, match)
        asked, used, limit = (amounts(statement, hit, g) for g in ("requested", "used", "limited"))
        last = match.end()
        cause = _blamed(hit["quota"], asked, used, limit, *_carrier(statement, match.start()))
        yield Heard(match.start(), match.end(), spoken(cause, "quota"))
    if cut := _EXCEEDED_CUT.search(statement.bare, last):
        name = Hit(statement, cut)["quota"]
        cause = _blamed(name, {}, {}, {}, *_carrier(statement, cut.start()))
        yield Heard(cut.start(), cut.end(), spoken(cause, "quota"))


def _carrier(statement: Statement, before: int) -> tuple[str, str]:
    """The webhook that refused in a quota's words and the claim whose making was refused, '' each
    where there is none."""
    webhook = list(_CARRIER.finditer(statement.bare, 0, before))
    claim = list(_TEMPLATE.finditer(statement.bare, 0, before))
    return (webhook[-1]["webhook"] if webhook else "", claim[-1]["claim"] if claim else "")


def _blamed(
    quota: str,
    asked: dict[str, str],
    used: dict[str, str],
    limit: dict[str, str],
    webhook: str,
    template: str,
) -> Cause:
    name = f"ResourceQuota {quota}" if quota and not webhook else f"quota {quota}".strip()
    code = "why/quota-elsewhere" if webhook else "quota/exceeded"
    if template:
        code = "quota/template-trap"
    said = f" (said by the webhook {webhook}: kubectl get resourcequota may not show it)"
    carrier = said if webhook else ""
    if template:
        carrier = (
            f" (asked by claim {template} of the pod's template: the pod is admitted and waits)"
        )
    next = f"kubectl describe resourcequota {quota or 'NAME'}"
    if webhook:
        next = "kubectl get validatingwebhookconfigurations"
    evidence: list[Evidence] = []
    lines: list[str] = []
    who: Who = "user"
    for key, wanted in asked.items():
        wants, holds, most = (_number(part.get(key, "")) for part in (asked, used, limit))
        if wants is None or holds is None or most is None or wants + holds <= most:
            continue
        left = canonical(max(most - holds, 0), parse(limit[key]).format)
        line = f"{key} asked {wanted} · used {used[key]} · limit {limit[key]}, {left} left"
        if most == 0:
            who = "platform"
            line += "; the quota gives none at all"
        elif wants > most:
            line += "; more than the whole quota"
        lines.append(line)
        evidence += [
            Evidence(name, f"{key} {role}", amount, None, "the message")
            for role, amount in (("asked", wanted), ("used", used[key]), ("limit", limit[key]))
        ]
    if lines:
        return Cause(code, f"{name}: {'; '.join(lines)}{carrier}", who, next, tuple(evidence))
    if asked and set(asked) <= set(used) and set(asked) <= set(limit):
        detail = f"{name} is said to be exceeded, but by the numbers in the text no key is"
    elif asked:
        keys = ", ".join(f"{key} asked {value}" for key, value in asked.items())
        detail = f"{name} is exceeded; the text is cut, so which key it is cannot be told ({keys})"
    else:
        detail = f"{name} is exceeded; the text does not say by what"
    return Cause(code, detail + carrier, "user", next)


def _uncounted(hit: Hit) -> Cause:
    keys = f" for {hit['keys'].replace(',', ', ')}" if hit["keys"] else ""
    return Cause(
        "quota/status-unknown",
        f"ResourceQuota {hit['quota']} has no status{keys}: nothing was exceeded, the quota"
        f" controller"
        " has not counted it, e.g. because it names a resource that does not exist any more",
        "platform",
        f"kubectl get resourcequota {hit['quota']} -o yaml",
    )


_OTHER = table(
    "quota",
    (
        Phrase.of(
            r"failed quota: <quota> : must specify (?P<missing>[a-z0-9./-]+ for: .+|[a-z0-9./,-]+)",
            "quota/must-specify",
            "user",
            "ResourceQuota {quota} counts what the pod leaves open: {missing}",
            QUOTA_NEXT,
        ),
        Phrase(
            pattern(
                r"status unknown for quota: <quota>"
                r" (?-i: , resources: (?P<keys>[-a-z0-9./]{1,316}(?:,[-a-z0-9./]{1,316})*)"
                r" | (?=$|[^-a-z0-9.,/]) )"
            ),
            lambda hit: _uncounted(hit),
        ),
        Phrase.of(
            r"insufficient quota to consume: (?P<keys>[-a-z0-9./,]+)",
            "why/quota-none",
            "platform",
            "the namespace has no ResourceQuota that allows any {keys}, and one is required",
            "kubectl get resourcequota",
        ),
        Phrase.of(
            r"insufficient quota to match these scopes: (?P<scopes>\[(?:\{[^}]{1,400}\},?)+\])",
            "why/quota-none",
            "platform",
            "no ResourceQuota of the namespace covers {scopes}, and one is required",
            "kubectl get resourcequota -o yaml",
        ),
        Phrase.of(
            r"quota usage is negative for resource\(s\): (?P<keys>[-a-z0-9./,]+)",
            "quota/negative",
            "user",
            "the object asks for a negative amount of {keys}",
            "kubectl gpu-admit explain -f FILE",
        ),
        Phrase.of(
            r"resource quota evaluation timed out",
            "why/quota-timeout",
            "platform",
            "the API server could not evaluate the namespace's quotas in time",
            "kubectl get --raw='/readyz?verbose'",
        ),
    ),
)


def _range(kind: str) -> Phrase:
    """``minimum cpu usage per Container is 1, but request is 500m``"""
    made = pattern(
        rf"{kind} <resource:RESOURCE> usage per (?P<type>Container|Pod|PersistentVolumeClaim) is"
        rf" (?P<bound>{QUANTITY}) (?: , but (?P<role>request|limit) is (?P<given>{QUANTITY})"
        r" | \. No (?P<none>request|limit) is specified )?"
    )
    code = f"limit-range/{kind[:3]}"

    def read(hit: Hit) -> Cause:
        bound, given = hit["bound"], hit["given"]
        if hit["none"]:
            detail = f"no {hit['none']} is named"
        elif given:
            detail = f"the {hit['role']} is {given}"
        else:
            detail = "the text does not say what is asked"
        most = "at most" if kind == "maximum" else "at least"
        unit = "claim" if hit["type"].startswith("Per") else hit["type"].lower()
        return Cause(
            code,
            f"a LimitRange wants {most} {bound} {hit['resource']} a {unit}: {detail}",
            "user",
            "kubectl describe limitrange",
            (
                Evidence(
                    "LimitRange",
                    f"{hit['resource']} {kind}",
                    given or None,
                    bound,
                    "the message",
                    "most" if kind == "maximum" else "least",
                ),
            ),
        )

    return Phrase(made, read)


_LIMITS = table(
    "limit range",
    (
        _range("minimum"),
        _range("maximum"),
        Phrase.of(
            rf"(?P<resource>(?-i:[a-z0-9][-a-z0-9./]{{0,316}}?)) max limit to request ratio per"
            rf" (?P<type>Container|Pod) is (?P<bound>{QUANTITY}) , but (?:provided ratio is"
            r" (?P<given>[0-9.]+[0-9]) | no (?P<none>request|limit) is specified)",
            "limit-range/ratio",
            "user",
            "a LimitRange lets a limit be {bound} times its request at most for {resource}",
            "kubectl describe limitrange",
            evidence=lambda hit: (
                Evidence(
                    "LimitRange",
                    "limit to request",
                    hit["given"] or None,
                    hit["bound"],
                    "the message",
                    "most",
                ),
            ),
        ),
    ),
)


def hear(statement: Statement) -> Iterator[Heard]:
    yield from _exceeded(statement)
    yield from _OTHER(statement)
    yield from _LIMITS(statement)
