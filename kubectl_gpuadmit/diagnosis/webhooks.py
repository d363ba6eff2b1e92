"""Admission webhooks and policies: who refused, who did not answer; what a vendor's own words mean.

Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/webhook and policy, pkg/util/webhook. Texts
after ``denied
the request:`` are the webhook's own and end with the statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kubectl_gpuadmit.diagnosis.cause import Cause, Heard, Hit, Phrase, Who, pattern, spoken, table
from kubectl_gpuadmit.diagnosis.pasted import Statement

REASONS = {
    "why/webhook-denied": "An admission webhook refused the object by its own rules. Its message"
    " is quoted;"
    " change what it names, or ask its owner.",
    "why/webhook-unreachable": "The API server got no answer from an admission webhook whose"
    " failurePolicy"
    " is Fail, so nothing that it watches can be created. Not the manifest's fault: look at its"
    " pods,"
    " Service and the network to them.",
    "why/webhook-certificate": "The API server does not trust the certificate of an admission"
    " webhook, so"
    " nothing that it watches can be created. Renew the certificate or the caBundle.",
    "why/webhook-bad-answer": "An admission webhook answered what the API server cannot use. A"
    " fault of the"
    " webhook; report it to its owner.",
    "why/webhook-dry-run": "An admission webhook has side effects and so does not take part in"
    " server-side"
    " dry runs. Try without --dry-run=server.",
    "why/policy-denied": "An admission policy refused the object. Change what its message names,"
    " or ask"
    " its owner for an exception.",
    "why/policy-warned": "An admission policy warns about the object and lets it in.",
    "why/policy-broken": "An admission policy could not be evaluated. Its owner has to correct"
    " it, its"
    " parameters or its binding.",
}

WHO = "webhook"
_VALIDATING = "kubectl get validatingadmissionpolicy {policy} -o yaml"
_MUTATING = "kubectl get mutatingadmissionpolicy {policy} -o yaml"
_HOOKS = "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"

_DENIED = pattern(
    r"admission webhook \"?(?P<webhook>[-a-zA-Z0-9_./]{1,316})\"? denied the request"
    r" (?: without explanation | : (?P<message>.+))?"
)
_QUOTA_WORDS = re.compile(r"exceededquota", re.IGNORECASE)

VENDORS = (
    ("gatekeeper.sh", "Gatekeeper", "kubectl get constraints"),
    ("kyverno", "Kyverno", "kubectl get clusterpolicies,policies -A"),
    ("volcano.sh", "Volcano", "kubectl get queues.scheduling.volcano.sh"),
    ("kubesphere", "KubeSphere", "kubectl get resourcequotas.quota.kubesphere.io -A"),
    ("hami", "HAMi", "kubectl -n kube-system logs -l app.kubernetes.io/component=hami-scheduler"),
    ("kueue", "Kueue", "kubectl get clusterqueues,localqueues -A"),
    ("run.ai", "Run:ai", "kubectl get projects.run.ai -A"),
    ("runai", "Run:ai", "kubectl get projects.run.ai -A"),
    ("kai", "KAI", "kubectl get queues.scheduling.run.ai"),
    ("yunikorn", "YuniKorn", "kubectl -n yunikorn logs -l app=yunikorn"),
    ("gpu-admit", "gpu-admit", "kubectl gpu-admit explain -f FILE"),
)


def vendor(webhook: str) -> tuple[str, str]:
    """Who is behind a webhook's name, and where to look; ('', '') if nobody knows."""
    for part, name, command in VENDORS:
        if part in webhook.lower():
            return name, command
    return "", ""


def _denied(statement: Statement) -> Iterator[Heard]:
    for match in _DENIED.finditer(statement.bare):
        start, end = match.span()
        message_at = match.start("message") if match["message"] else end
        following = _DENIED.search(statement.bare, message_at)
        if following:
            end = following.start()
        rest = following.start() if following else len(statement.bare)
        if _QUOTA_WORDS.search(statement.bare, message_at, rest):
            continue  # the quota's reading names the webhook
        webhook = match["webhook"]
        message = statement.said(message_at, end) if match["message"] else ""
        for detail in _violations(message):
            yield Heard(start, end, spoken(_denial(webhook, detail), WHO))


def _violations(message: str) -> list[str]:
    """Gatekeeper says several at once, each with its constraint in brackets."""
    parts = re.split(r"(?=\[[a-z0-9][-a-z0-9.]*\] )", message)
    found = [part.strip() for part in parts if part.strip()]
    return found if len(found) > 1 and all(part.startswith("[") for part in found) else [message]


def _denial(webhook: str, message: str) -> Cause:
    name, command = vendor(webhook)
    who = f"{name} ({webhook})" if name else f"webhook {webhook}"
    by_policy = name in ("Gatekeeper", "Kyverno")
    code = "why/policy-denied" if by_policy else "why/webhook-denied"
    said = f": {message.rstrip('. ')}" if message else " without saying why"
    next_step = (
        command or f"kubectl get validatingwebhookconfigurations -o yaml | grep -B9 {webhook}"
    )
    if not re.fullmatch(r"[-a-zA-Z0-9_./]{1,316}", webhook):
        next_step = command or _HOOKS
    owner: Who = "user" if message else "platform"
    return Cause(code, f"{who} refused{said}", owner, next_step)


_FAILED = pattern(
    r"failed calling webhook \"?(?P<webhook>[-a-zA-Z0-9_./]{1,316}?)\"? (?:: | ; | $)"
    r" (?: failed to call webhook: )? (?P<why>.*)"
)


def _failed(statement: Statement) -> Iterator[Heard]:
    for match in _FAILED.finditer(statement.bare):
        hit = Hit(statement, match)
        why = match["why"].lower()
        said = hit.said("why").rstrip(". ")
        webhook = match["webhook"]
        service = re.search(r"https://([-a-z0-9]+)\.([-a-z0-9]+)\.svc", why)
        next_step = (
            f"kubectl -n {service[2]} get pods,endpoints,service/{service[1]}"
            if service
            else _HOOKS
        )
        if "x509" in why or "certificate" in why:
            code, detail = "why/webhook-certificate", "its certificate is not trusted"
        elif ("response" in why and "invalid" in why) or "undecodable" in why or "patch" in why:
            code, detail = "why/webhook-bad-answer", "its answer cannot be used"
        else:
            code, detail = "why/webhook-unreachable", _how(why)
        kept = _first_words(said)
        verb = "failed" if code == "why/webhook-bad-answer" else "cannot be asked"
        cause = Cause(
            code,
            f"webhook {webhook} {verb}: {detail}; the manifest is not to blame"
            + (f" ({kept})" if kept else ""),
            "fault" if code == "why/webhook-bad-answer" else "platform",
            next_step,
        )
        yield Heard(*match.span(), spoken(cause, WHO))


def _how(why: str) -> str:
    for text, said in (
        ("deadlineexceeded", "it did not answer in time"),
        ("timedout", "it did not answer in time"),
        ("connectionrefused", "nothing listens at its address"),
        ("noendpointsavailable", "its Service has no ready pod"),
        ("nosuchhost", "its Service's name does not resolve"),
        ("notfound", "its Service does not exist"),
        ("noroutetohost", "there is no route to its pod"),
        ("eof", "it closed the connection"),
        ("client.timeout", "it did not answer in time"),
    ):
        if text in why:
            return said
    return "the call failed"


def _first_words(text: str) -> str:
    return text if len(text) <= 240 else text[:237] + "..."


_POLICIES = table(
    "policy",
    (
        Phrase.of(
            r"ValidatingAdmissionPolicy '(?P<policy>[^']{1,400})' (?:with binding"
            r" '(?P<binding>[^']{1,400})')?"
            r" denied request: expression '(?P<expression>.+?)' resulted in error: (?P<message>.+)",
            "why/policy-broken",
            "platform",
            "ValidatingAdmissionPolicy {policy} could not be evaluated: {message}",
            _VALIDATING,
        ),
        Phrase.of(
            r"ValidatingAdmissionPolicy '(?P<policy>[^']{1,400})' (?:with binding"
            r" '(?P<binding>[^']{1,400})')?"
            r" denied request (?:: (?P<message>.+))?",
            "why/policy-denied",
            "user",
            "ValidatingAdmissionPolicy {policy} refused: {message}",
            _VALIDATING,
        ),
        Phrase.of(
            r"Validation failed for ValidatingAdmissionPolicy '(?P<policy>[^']{1,400})'"
            r" (?:with binding '[^']{1,400}')? : (?P<message>.+)",
            "why/policy-warned",
            "user",
            "ValidatingAdmissionPolicy {policy} warns: {message}",
            _VALIDATING,
        ),
        Phrase.of(
            r"policy '(?P<policy>[^']{1,400})' with binding '[^']{1,400}' denied request:"
            r" (?P<message>.+)",
            "why/policy-broken",
            "platform",
            "MutatingAdmissionPolicy {policy} could not change the object: {message}",
            _MUTATING,
        ),
        Phrase.of(
            r"failed to configure (?P<what>policy|binding): (?P<message>.+)",
            "why/policy-broken",
            "platform",
            "an admission {what} is not usable: {message}",
            "kubectl get validatingadmissionpolicies,validatingadmissionpolicybindings",
        ),
        Phrase.of(
            r"admission webhook \"?(?P<webhook>[-a-zA-Z0-9_./]{1,316})\"? does not support dry run",
            "why/webhook-dry-run",
            "user",
            "webhook {webhook} takes no part in server-side dry runs",
            _HOOKS,
        ),
        Phrase.of(
            r"admission webhook \"?(?P<webhook>[-a-zA-Z0-9_./]{1,316})\"? attempted to modify the"
            r" object,"
            r" which is not supported for this operation",
            "why/webhook-bad-answer",
            "fault",
            "webhook {webhook} tried to change what it may not change",
            _HOOKS,
        ),
    ),
)


def hear(statement: Statement) -> Iterator[Heard]:
    yield from _failed(statement)
    yield from _denied(statement)
    yield from _POLICIES(statement)
