"""Answers of the API server about the call itself: who may, how often, and whether it can be
reached."""

from __future__ import annotations

from kubectl_gpuadmit.diagnosis.cause import Phrase, table

REASONS = {
    "why/throttled": "The API server has too many requests and asks to wait. Try again later; if"
    " it stays,"
    " look for a client that calls too often.",
    "why/not-allowed": "RBAC does not let this user or service account do it. Ask for the role"
    " that the text"
    " names.",
    "why/not-authenticated": "The API server does not know the caller: the token or certificate"
    " is missing or"
    " expired. Log in again.",
    "why/api-unreachable": "The API server cannot be reached. Check the kubeconfig's server, the"
    " network and"
    " the VPN.",
    "why/api-timeout": "The API server took too long. Try again; if it stays, a webhook or etcd"
    " is slow.",
    "why/no-such-kind": "The API server does not know the kind: its CRD is not installed, or the"
    " version is"
    " not served.",
    "why/exists": "An object of this name exists already. Use another name, or apply instead of"
    " create.",
    "why/conflict": "The object was changed by somebody else meanwhile. Read it again and repeat.",
}

hear = table(
    "API server",
    (
        Phrase.of(
            r"the server has received too many requests and has asked us to try again later"
            r"|\bToo ?Many ?Requests\b|client rate limiter Wait returned an error"
            r"|(?:error|code|status|HTTP):?[ =]?429\b",
            "why/throttled",
            "wait",
            "the API server is busy and asks to wait: throttling, not a refusal of the object",
            "kubectl get --raw /metrics | grep apiserver_flowcontrol_rejected_requests_total",
        ),
        Phrase.of(
            r"User \"(?P<user>[^\"]{1,400})\" cannot (?P<verb>[a-z]+) resource"
            r" \"(?P<resource>[^\"]{1,400})\""
            r" (?: in API group \"[^\"]{0,253}\" )?"
            r" (?P<where> in the namespace \"[^\"]{1,400}\" | at the cluster scope )?",
            "why/not-allowed",
            "platform",
            "RBAC: {user} may not {verb} {resource} {where}",
            "kubectl auth can-i {verb} {resource}",
        ),
        Phrase.of(
            r"You must be logged in to the server|the server has asked for the client to provide"
            r" credentials"
            r"|\(?Unauthorized\)?(?=$|[^a-z])",
            "why/not-authenticated",
            "user",
            "the API server does not know the caller: the login is missing or expired",
            "kubectl auth whoami",
        ),
        Phrase.of(
            r"The connection to the server (?P<server>[-a-zA-Z0-9.:/\[\]]{1,300}?) was"
            r" refused|Unable to connect to the server"
            r"|dial tcp [^:]{0,300}:\d+ : (?:connect: connection refused|i/o timeout)",
            "why/api-unreachable",
            "platform",
            "the API server cannot be reached",
            "kubectl cluster-info",
        ),
        Phrase.of(
            r"Timeout: request did not complete within requested timeout|etcdserver: request"
            r" timed out"
            r"|the server was unable to return a response in the time allotted",
            "why/api-timeout",
            "wait",
            "the API server took too long",
            "kubectl get --raw='/readyz?verbose'",
        ),
        Phrase.of(
            r"no matches for kind \"(?P<kind>[^\"]{1,400})\" in version"
            r" \"(?P<version>[^\"]{1,400})\""
            r"|the server doesn't have a resource type \"(?P<type>[^\"]{1,400})\"",
            "why/no-such-kind",
            "user",
            "the API server knows no {kind}{type} {version}",
            "kubectl api-resources",
        ),
        Phrase.of(
            r"(?P<kind>[a-z.]{1,100}) \"(?P<name>[^\"]{1,400})\" already exists",
            "why/exists",
            "user",
            "{kind} {name} exists already",
            "kubectl get {kind} {name}",
        ),
        Phrase.of(
            r"the object has been modified; please apply your changes to the latest version",
            "why/conflict",
            "wait",
            "the object was changed by somebody else meanwhile",
            "kubectl get NAME -o yaml",
        ),
    ),
)
