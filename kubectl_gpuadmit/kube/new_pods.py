"""The fields of a pod that only its admission looks at: security contexts, probes' hosts, volumes.

A pod that is about to be created is decoded as ``NewPod``. Running pods are plain ``Pod``: nobody
asks their security contexts, and a snapshot holds tens of thousands of them.

Field names are the JSON names of Kubernetes 1.37 (k8s.io/api v0.37.2 core/v1/types.go).
"""

from __future__ import annotations

from msgspec import Struct, field

from kubectl_gpuadmit.kube.objects import Container, Pod, PodSpec, SecurityContext, Volume


class Given(Struct, frozen=True, gc=False):
    """A field of which only its presence is read: ``{}`` is present, ``null`` is not."""


class Profile(Struct, frozen=True, gc=False):
    """A seccomp or AppArmor profile."""

    type: str = ""


class SELinuxOptions(Struct, frozen=True, gc=False):
    type: str = ""
    user: str = ""
    role: str = ""


class WindowsOptions(Struct, frozen=True, gc=False):
    hostProcess: bool | None = None


class Capabilities(Struct, frozen=True, gc=False):
    add: tuple[str, ...] | None = None
    drop: tuple[str, ...] | None = None


class ContainerSecurityContext(SecurityContext, frozen=True, gc=False):
    allowPrivilegeEscalation: bool | None = None
    capabilities: Capabilities | None = None
    runAsNonRoot: bool | None = None
    runAsUser: int | None = None
    procMount: str | None = None
    seccompProfile: Profile | None = None
    appArmorProfile: Profile | None = None
    seLinuxOptions: SELinuxOptions | None = None
    windowsOptions: WindowsOptions | None = None


class Sysctl(Struct, frozen=True, gc=False):
    name: str = ""


class PodSecurityContext(Struct, frozen=True, gc=False):
    runAsNonRoot: bool | None = None
    runAsUser: int | None = None
    seccompProfile: Profile | None = None
    appArmorProfile: Profile | None = None
    seLinuxOptions: SELinuxOptions | None = None
    windowsOptions: WindowsOptions | None = None
    sysctls: tuple[Sysctl, ...] | None = None


class NetworkAction(Struct, frozen=True, gc=False):
    """An httpGet or tcpSocket: only the host that it asks."""

    host: str | None = None


class Handler(Struct, frozen=True, gc=False):
    """A probe or a lifecycle hook."""

    httpGet: NetworkAction | None = None
    tcpSocket: NetworkAction | None = None


class Lifecycle(Struct, frozen=True, gc=False):
    postStart: Handler | None = None
    preStop: Handler | None = None


class NewContainer(Container, frozen=True, gc=False):
    securityContext: ContainerSecurityContext | None = None
    livenessProbe: Handler | None = None
    readinessProbe: Handler | None = None
    startupProbe: Handler | None = None
    lifecycle: Lifecycle | None = None


class NewVolume(Volume, frozen=True, gc=False):
    projected: Given | None = None
    downwardAPI: Given | None = None
    image: Given | None = None
    gitRepo: Given | None = None
    nfs: Given | None = None
    glusterfs: Given | None = None
    flexVolume: Given | None = None
    cinder: Given | None = None
    cephfs: Given | None = None
    flocker: Given | None = None
    fc: Given | None = None
    azureFile: Given | None = None
    vsphereVolume: Given | None = None
    quobyte: Given | None = None
    azureDisk: Given | None = None
    photonPersistentDisk: Given | None = None
    portworxVolume: Given | None = None
    scaleIO: Given | None = None
    storageos: Given | None = None


class PodOS(Struct, frozen=True, gc=False):
    name: str = ""


class NewPodSpec(PodSpec, frozen=True, gc=False):
    containers: tuple[NewContainer, ...] | None = None
    initContainers: tuple[NewContainer, ...] | None = None
    volumes: tuple[NewVolume, ...] | None = None
    hostUsers: bool | None = None
    os: PodOS | None = None
    securityContext: PodSecurityContext | None = None


class NewPod(Pod, frozen=True, gc=False, kw_only=True, tag="Pod"):
    spec: NewPodSpec = field(default_factory=NewPodSpec)
