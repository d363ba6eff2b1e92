"""Random pods for namespaces of every Pod Security level and version: whatever the checks look at.

A third of the pods follows the restricted rules at first and is then spoilt in one or two places,
so that both answers and single complaints are common.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.differential.vocabulary import Json, chance, some

HOME = "team-a"
PREFIX = "pod-security.kubernetes.io/"
APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"
EMULATE = "referee/emulate"
"""Annotation of the namespace: the API server is of an older minor version."""

PROFILES = ("RuntimeDefault", "RuntimeDefault", "Localhost", "Unconfined", "", "Other")
CAPABILITIES = (
    *("ALL", "NET_BIND_SERVICE", "CHOWN", "SYS_CHROOT", "MKNOD", "KILL", "AUDIT_WRITE"),
    *("IPC_LOCK", "SYS_ADMIN", "SYS_PTRACE", "NET_RAW", "all", "SYS_RESOURCE"),
)
SYSCTLS = (
    *("kernel.shm_rmid_forced", "net.ipv4.tcp_syncookies", "net.ipv4.ip_local_port_range"),
    *("net.ipv4.ip_local_reserved_ports", "net.ipv4.tcp_keepalive_time"),
    *("net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"),
    *("net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_notsent_lowat"),
    *("kernel.msgmax", "net.core.somaxconn", "net.ipv4.ping_group_range"),
)
PERMITTED: dict[str, Json] = {
    "configMap": {"name": "x"},
    "csi": {"driver": "x"},
    "downwardAPI": {"items": []},
    "emptyDir": {},
    "ephemeral": {"volumeClaimTemplate": {"spec": {}}},
    "image": {"reference": "x"},
    "persistentVolumeClaim": {"claimName": "x"},
    "projected": {"sources": []},
    "secret": {"secretName": "x"},
}
RESTRICTED: dict[str, Json] = {
    "hostPath": {"path": "/dev/shm"},
    "gcePersistentDisk": {"pdName": "x"},
    "awsElasticBlockStore": {"volumeID": "x"},
    "gitRepo": {"repository": "x"},
    "nfs": {"server": "x", "path": "/"},
    "iscsi": {"targetPortal": "x", "iqn": "x", "lun": 0},
    "glusterfs": {"endpoints": "x", "path": "x"},
    "rbd": {"monitors": ["x"], "image": "x"},
    "flexVolume": {"driver": "x"},
    "cinder": {"volumeID": "x"},
    "cephfs": {"monitors": ["x"]},
    "flocker": {"datasetName": "x"},
    "fc": {"lun": 1},
    "azureFile": {"secretName": "x", "shareName": "x"},
    "vsphereVolume": {"volumePath": "x"},
    "quobyte": {"registry": "x", "volume": "x"},
    "azureDisk": {"diskName": "x", "diskURI": "x"},
    "photonPersistentDisk": {"pdID": "x"},
    "portworxVolume": {"volumeID": "x"},
    "scaleIO": {"gateway": "x", "system": "x", "secretRef": None},
    "storageos": {"volumeName": "x"},
}
TYPES = {**PERMITTED, **RESTRICTED}


def case(rng: Random) -> Json:
    namespace: Json = {
        "kind": "Namespace",
        "apiVersion": "v1",
        "metadata": {"name": HOME, "labels": labels(rng)},
    }
    if chance(rng, 0.15):
        namespace["metadata"]["annotations"] = {EMULATE: f"1.{rng.randint(30, 37)}"}
    return {"objects": [namespace], "pod": pod(rng)}


def labels(rng: Random) -> Json:
    made: Json = {"team": "a"} if chance(rng, 0.1) else {}
    for mode, often in (("enforce", 0.9), ("warn", 0.35), ("audit", 0.35)):
        if chance(rng, often):
            made[PREFIX + mode] = rng.choice(
                (
                    "privileged",
                    *("baseline", "restricted") * 4,
                    *(["Baseline", ""][: chance(rng, 0.4)]),
                )
            )
        if chance(rng, 0.6):
            made[f"{PREFIX}{mode}-version"] = rng.choice(
                ("latest", "v1.36", "v1.99", *(f"v1.{rng.randint(0, 38)}" for _ in range(6)))
                if chance(rng, 0.96)
                else ("1.30", "v1.030", "v2.1", "v1.99999999999999999999", "", "Latest")
            )
    return made


def pod(rng: Random) -> Json:
    made: Json = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "asking", "namespace": HOME},
        "spec": {"containers": [{"name": f"c{i}"} for i in range(rng.choice((1, 1, 2, 3)))]},
    }
    if chance(rng, 0.3):
        made["spec"]["initContainers"] = [{"name": f"i{i}"} for i in range(rng.choice((1, 2)))]
    if chance(rng, 0.7):
        tidy(rng, made)
    for twist in rng.sample(TWISTS, rng.choice((0, 0, 1, 1, 2, 3, 5))):
        twist(rng, made)
    return made


def every(made: Json) -> list[Json]:
    return [*made["spec"]["containers"], *made["spec"].get("initContainers", [])]


def context(holder: Json) -> Json:
    if holder.get("securityContext") is None:
        holder["securityContext"] = {}
    found: Json = holder["securityContext"]
    return found


def tidy(rng: Random, made: Json) -> None:
    """As restricted wants it, profile and user on the pod or on each container."""
    for one in every(made):
        context(one).update(allowPrivilegeEscalation=False, capabilities={"drop": ["ALL"]})
    for name, value in (("runAsNonRoot", True), ("seccompProfile", {"type": "RuntimeDefault"})):
        for holder in [made["spec"]] if chance(rng, 0.6) else every(made):
            context(holder)[name] = value


def holders(rng: Random, made: Json) -> list[Json]:
    """The pod's spec or some containers: whoever has a security context."""
    return some(rng, [made["spec"], *every(made)], 1, 3)


def escalation(rng: Random, made: Json) -> None:
    for one in some(rng, every(made), 1, 3):
        context(one)["allowPrivilegeEscalation"] = rng.choice((True, None, False))


def armour(rng: Random, made: Json) -> None:
    for holder in holders(rng, made):
        context(holder)["appArmorProfile"] = rng.choice(({"type": rng.choice(PROFILES)}, None))
    if chance(rng, 0.6):
        values = ("unconfined", "runtime/default", "localhost/x", "", "other", "docker/default")
        notes = made["metadata"].setdefault("annotations", {})
        for name in some(rng, ["c0", "c1", "i0", "absent"], 1, 3):
            notes[APP_ARMOR + name] = rng.choice(values)


def capabilities(rng: Random, made: Json) -> None:
    for one in some(rng, every(made), 1, 3):
        own: Json = {}
        if chance(rng, 0.7):
            own["add"] = [rng.choice(CAPABILITIES) for _ in range(rng.choice((0, 1, 1, 2, 3)))]
        if chance(rng, 0.6):
            own["drop"] = rng.choice((["ALL"], ["NET_RAW", "ALL"], ["NET_RAW"], []))
        context(one)["capabilities"] = rng.choice((own, own, own, None))


def node_namespaces(rng: Random, made: Json) -> None:
    for name in some(rng, ["hostNetwork", "hostPID", "hostIPC"], 1, 3):
        made["spec"][name] = chance(rng, 0.8)


def ports(rng: Random, made: Json) -> None:
    for one in some(rng, every(made), 1, 3):
        one["ports"] = [
            {"containerPort": 80, "hostPort": rng.choice((0, 80, 8080, 443, 9))}
            for _ in range(rng.choice((1, 2, 3)))
        ]


def probes(rng: Random, made: Json) -> None:
    for one in some(rng, every(made), 1, 3):
        for name in some(rng, ["livenessProbe", "readinessProbe", "startupProbe"], 0, 3):
            one[name] = action(rng)
        if chance(rng, 0.5):
            hooks = some(rng, ["postStart", "preStop"], 0, 2)
            one["lifecycle"] = {name: action(rng) for name in hooks}


def action(rng: Random) -> Json:
    host = {"host": rng.choice(("", "127.0.0.1", "node.local", "10.0.0.9"))}
    made: Json = {"port": 80, **(host if chance(rng, 0.8) else {})}
    return rng.choice(({"httpGet": made}, {"tcpSocket": made}, {"exec": {"command": ["x"]}}))


def privileged(rng: Random, made: Json) -> None:
    for one in some(rng, every(made), 1, 3):
        context(one)["privileged"] = rng.choice((True, True, False, None))


def proc_mount(rng: Random, made: Json) -> None:
    for one in some(rng, every(made), 1, 3):
        context(one)["procMount"] = rng.choice(("Default", "Unmasked", "Unmasked", "Other", None))
    if chance(rng, 0.5):
        made["spec"]["hostUsers"] = rng.choice((True, False, False, None))


def volumes(rng: Random, made: Json) -> None:
    made["spec"]["volumes"] = [
        {"name": f"v{i}", **{kind: TYPES[kind] for kind in some(rng, list(TYPES), 0, 1)}}
        for i in range(rng.choice((1, 2, 4)))
    ]
    if chance(rng, 0.3):
        made["spec"]["volumes"][0] |= {"nfs": RESTRICTED["nfs"], "emptyDir": {}}


def permitted_volumes(rng: Random, made: Json) -> None:
    made["spec"]["volumes"] = [
        {"name": f"v{i}", kind: PERMITTED[kind]}
        for i, kind in enumerate(some(rng, list(PERMITTED), 1, 4))
    ]


def users(rng: Random, made: Json) -> None:
    for holder in holders(rng, made):
        if chance(rng, 0.6):
            context(holder)["runAsNonRoot"] = rng.choice((True, False, None))
        if chance(rng, 0.6):
            context(holder)["runAsUser"] = rng.choice((0, 0, 1000, None))
    if chance(rng, 0.3):
        made["spec"]["hostUsers"] = rng.choice((True, False, False, None))


def selinux(rng: Random, made: Json) -> None:
    types = ("", "container_t", "container_init_t", "container_engine_t", "spc_t", "other_t")
    for holder in holders(rng, made):
        own: Json = {"type": rng.choice(types), "level": "s0"}
        own |= {"user": rng.choice(("", "u"))} if chance(rng, 0.3) else {}
        own |= {"role": rng.choice(("", "r"))} if chance(rng, 0.3) else {}
        context(holder)["seLinuxOptions"] = own


def seccomp(rng: Random, made: Json) -> None:
    for holder in holders(rng, made):
        context(holder)["seccompProfile"] = rng.choice(
            ({"type": rng.choice(PROFILES)},) * 3 + (None,)
        )
    if chance(rng, 0.4):
        notes = made["metadata"].setdefault("annotations", {})
        keys = [SECCOMP + "c0", SECCOMP + "i0", SECCOMP + "absent"]
        for key in some(rng, [*keys, "seccomp.security.alpha.kubernetes.io/pod"], 1, 3):
            notes[key] = rng.choice(
                ("unconfined", "runtime/default", "docker/default", "localhost/x", "")
            )


def sysctls(rng: Random, made: Json) -> None:
    context(made["spec"])["sysctls"] = [
        {"name": name, "value": "1"} for name in some(rng, SYSCTLS, 0, 3)
    ]


def windows(rng: Random, made: Json) -> None:
    made["spec"]["os"] = {"name": rng.choice(("windows", "windows", "linux", ""))}
    for holder in holders(rng, made):
        context(holder)["windowsOptions"] = rng.choice(
            ({"hostProcess": chance(rng, 0.6)}, {}, None)
        )


def bare(rng: Random, made: Json) -> None:
    for holder in holders(rng, made):
        holder["securityContext"] = rng.choice(({}, None))


TWISTS: list[Callable[[Random, Json], None]] = [
    *(escalation, armour, capabilities, node_namespaces, ports, probes, privileged, proc_mount),
    *(volumes, permitted_volumes, users, selinux, seccomp, sysctls, windows, bare),
]


def valid(rng: Random, made: Json) -> None:
    """Settings that could be stored, so that the whole way of a request can be asked about them."""
    if chance(rng, 0.5):
        tidy(rng, made)
    for holder in holders(rng, made):
        kind = rng.choice(("RuntimeDefault", "Unconfined"))
        if chance(rng, 0.3):
            context(holder)[rng.choice(("seccompProfile", "appArmorProfile"))] = {"type": kind}
        if chance(rng, 0.3):
            context(holder)["runAsUser"] = rng.choice((0, 1000))
    for one in some(rng, every(made), 0, 2):
        context(one)["capabilities"] = {
            "drop": rng.choice((["ALL"], ["NET_RAW"])),
            "add": some(rng, ("NET_BIND_SERVICE", "CHOWN", "IPC_LOCK"), 0, 1),
        }
    if chance(rng, 0.3):
        notes = made["metadata"].setdefault("annotations", {})
        for name in some(rng, [one["name"] for one in every(made)], 1, 1):
            if not context(made["spec"]).get("appArmorProfile"):
                context(rng.choice(every(made))).pop("appArmorProfile", None)
            if not any(context(one).get("appArmorProfile") for one in every(made)):
                notes[APP_ARMOR + name] = rng.choice(("unconfined", "runtime/default"))
    if any(key.startswith(APP_ARMOR) for key in made["metadata"].get("annotations", {})):
        # annotation and field that contradict each other are refused by validation, which of
        # security settings is not ours
        for one in (made["spec"], *every(made)):
            if one.get("securityContext"):
                one["securityContext"].pop("appArmorProfile", None)
    if chance(rng, 0.3):
        made["spec"].setdefault("volumes", []).append({"name": "extra", "hostPath": {"path": "/x"}})
