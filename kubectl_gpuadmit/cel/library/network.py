"""Addresses, networks and URLs.

Source: k8s.io/apiserver v0.37.2 pkg/cel/library/ip.go, cidr.go, urls.go; Go net/netip (the words of
its errors), net/url. URLs beyond plain ones are not evaluated (Unsure): Go and Python read them
differently.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any

from kubectl_gpuadmit.cel.functions import Overload, declare
from kubectl_gpuadmit.cel.texts import go_quoted
from kubectl_gpuadmit.cel.values import Fail, Opaque, Unsure

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_V6 = re.compile(r"[0-9A-Fa-f:.]+")


def _address(text: str) -> _Address:
    """Raises Fail with the words of netip.ParseAddr where they are known, else Unsure."""
    said = f"IP Address {go_quoted(text)} parse error during conversion from string: "
    if "%" in text:
        head, _, zone = text.partition("%")
        if ":" in head and zone:
            raise Fail(f"IP address {go_quoted(text)} with zone value is not allowed")
        raise Unsure("an address with a zone")
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        raise Fail(said + _why_not(text)) from None
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        raise Fail(f"IPv4-mapped IPv6 address {go_quoted(text)} is not allowed")
    return found


def _why_not(text: str) -> str:
    prefix = f"ParseAddr({go_quoted(text)}): "
    if "." in text and ":" not in text.partition(".")[0]:
        return prefix + _why_not_v4(text)
    if ":" not in text:
        return prefix + "unable to parse IP"
    raise Unsure(f"why {text} is no address")


def _why_not_v4(text: str) -> str:
    fields = 0
    value = -1
    digits = 0
    for place, letter in enumerate(text):
        if "0" <= letter <= "9":
            if digits == 1 and value == 0:
                return "IPv4 field has octet with leading zero"
            value = max(value, 0) * 10 + int(letter)
            digits += 1
            if value > 255:
                return "IPv4 field has value >255"
        elif letter == ".":
            if place == 0 or place == len(text) - 1 or text[place - 1] == ".":
                return f"IPv4 field must have at least one digit (at {go_quoted(text[place:])})"
            if fields == 3:
                return "IPv4 address too long"
            fields, value, digits = fields + 1, -1, 0
        else:
            return f"unexpected character (at {go_quoted(text[place:])})"
    return "IPv4 address too short"


def _ip(text: str) -> Opaque:
    return Opaque("net.IP", _address(text))


def _holds(read: Any, text: str) -> bool:
    try:
        read(text)
    except Fail:
        return False
    except Unsure:
        # only why it is none is not known, except with zones
        if "%" in text:
            raise
        return False
    return True


def _canonical(text: str) -> bool:
    return str(_address(text)) == text


def _global_unicast(address: _Address) -> bool:
    return not (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
        or address == ipaddress.IPv4Address("255.255.255.255")
    )


def _link_local_multicast(address: _Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return address in ipaddress.IPv4Network("224.0.0.0/24")
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 2


def _network(text: str) -> tuple[_Address, int]:
    """The address as written and the length of the prefix."""
    said = "network address parse error during conversion from string: "
    quoted = f"netip.ParsePrefix({go_quoted(text)}): "
    head, slash, length = text.rpartition("/")
    if not slash:
        raise Fail(said * 2 + quoted + "no '/'")
    if "%" in head:
        raise Fail(said * 2 + quoted + "IPv6 zones cannot be present in a prefix")
    try:
        address = ipaddress.ip_address(head)
    except ValueError:
        try:
            why = _why_not(head)
        except Unsure:
            raise
        raise Fail(said * 2 + quoted + why.partition("): ")[2]) from None
    bits = 32 if isinstance(address, ipaddress.IPv4Address) else 128
    if not re.fullmatch(r"[1-9][0-9]*|0", length, re.ASCII):
        raise Fail(said * 2 + quoted + f"bad bits after slash: {go_quoted(length)}")
    if int(length) > bits:
        raise Fail(said * 2 + quoted + "prefix length out of range")
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise Fail(said + f"IPv4-mapped IPv6 address {go_quoted(text)} is not allowed")
    return address, int(length)


class _Cidr(str):
    """A network with the address as written, in Go's spelling."""

    address: _Address
    length: int

    @classmethod
    def of(cls, address: _Address, length: int) -> _Cidr:
        made = cls(f"{address}/{length}")
        made.address, made.length = address, length
        return made

    def covering(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        return ipaddress.ip_network(f"{self.address}/{self.length}", strict=False)


def _cidr(text: str) -> Opaque:
    return Opaque("net.CIDR", _Cidr.of(*_network(text)))


def _contains_ip(network: Opaque, address: Opaque | str) -> bool:
    if isinstance(address, str):
        try:
            found = _address(address)
        except Fail:
            raise Fail("no such overload") from None
    else:
        found = address.value
    return found in network.value.covering()


def _contains_cidr(network: Opaque, other: Opaque | str) -> bool:
    inner = (_cidr(other) if isinstance(other, str) else other).value
    outer = network.value
    if inner.address.version != outer.address.version or outer.length > inner.length:
        return False
    return bool(inner.covering().overlaps(outer.covering()))


def _masked(network: Opaque) -> Opaque:
    value = network.value
    return Opaque("net.CIDR", _Cidr.of(value.covering().network_address, value.length))


# -- URLs ------------------------------------------------------------------------------------------

_URL = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://"
    r"(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])?(?::(?P<port>[0-9]*))?)?"
    r"(?P<path>(?:/[A-Za-z0-9._~/$&+,:;=@-]*)?)"
    r"(?:\?(?P<query>[A-Za-z0-9._~/$&+,:=@%-]*))?"
)


class _Url(str):
    """A plain URL and its parts."""

    parts: dict[str, str]

    @classmethod
    def of(cls, text: str) -> _Url:
        match = _URL.fullmatch(text)
        if not match or not text or re.search(r"%(?![0-9A-Fa-f]{2})", text):
            raise Unsure(f"how Go reads the URL {go_quoted(text)}")
        made = cls(text)
        made.parts = {key: value or "" for key, value in match.groupdict().items()}
        if not made.parts["scheme"] and not made.parts["path"]:
            raise Unsure(f"how Go reads the URL {go_quoted(text)}")
        made.parts["colon"] = ":" if match["port"] is not None else ""
        return made


def _url(text: str) -> Opaque:
    said = "URL parse error during conversion from string: "
    if not text:
        raise Fail(f'{said}parse "": empty url')
    if _relative(text):
        raise Fail(f"{said}parse {go_quoted(text)}: invalid URI for request")
    return Opaque("kubernetes.URL", _Url.of(text))


def _relative(text: str) -> bool:
    """Neither a path nor with a scheme: what ParseRequestURI refuses."""
    return bool(re.fullmatch(r"[A-Za-z0-9._~ -]*", text)) and not re.search(
        r"[\x00-\x1f\x7f]", text
    )


def _is_url(text: str) -> bool:
    return bool(text) and not _relative(text) and bool(_Url.of(text))


def _host(url: Opaque) -> str:
    parts = url.value.parts
    return f"{parts['host']}{parts['colon']}{parts['port']}"


def _unquoted(text: str) -> str:
    """``+`` and ``%20`` are spaces."""
    octets = re.sub(
        rb"%([0-9A-Fa-f]{2})",
        lambda code: bytes([int(code[1], 16)]),
        text.replace("+", " ").encode(),
    )
    return octets.decode("utf-8", "replace")


def _query(url: Opaque) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for pair in url.value.parts["query"].split("&"):
        if pair:
            key, _, value = pair.partition("=")
            found.setdefault(_unquoted(key), []).append(_unquoted(value))
    return found


OVERLOADS: list[Overload] = [
    declare("ip(string): ip", _ip, since=30),
    declare("isIP(string): bool", lambda text: _holds(_address, text), since=30),
    declare("ip.isCanonical(string): bool", _canonical, since=30),
    declare("ip::family(): int", lambda one: one.value.version, since=30),
    declare("ip::isUnspecified(): bool", lambda one: one.value.is_unspecified, since=30),
    declare("ip::isLoopback(): bool", lambda one: one.value.is_loopback, since=30),
    declare(
        "ip::isLinkLocalMulticast(): bool",
        lambda one: _link_local_multicast(one.value),
        since=30,
    ),
    declare("ip::isLinkLocalUnicast(): bool", lambda one: one.value.is_link_local, since=30),
    declare("ip::isGlobalUnicast(): bool", lambda one: _global_unicast(one.value), since=30),
    declare("cidr(string): cidr", _cidr, since=30),
    declare("isCIDR(string): bool", lambda text: _holds(_network, text), since=30),
    declare("cidr::containsIP(string): bool", _contains_ip, since=30),
    declare("cidr::containsIP(ip): bool", _contains_ip, since=30),
    declare("cidr::containsCIDR(string): bool", _contains_cidr, since=30),
    declare("cidr::containsCIDR(cidr): bool", _contains_cidr, since=30),
    declare("cidr::ip(): ip", lambda one: Opaque("net.IP", one.value.address), since=30),
    declare("cidr::prefixLength(): int", lambda one: one.value.length, since=30),
    declare("cidr::masked(): cidr", _masked, since=30),
    declare("url(string): url", _url),
    declare("isURL(string): bool", _is_url),
    declare("url::getScheme(): string", lambda one: one.value.parts["scheme"].lower()),
    declare("url::getHost(): string", _host),
    declare("url::getHostname(): string", lambda one: one.value.parts["host"].strip("[]")),
    declare("url::getPort(): string", lambda one: one.value.parts["port"]),
    declare("url::getEscapedPath(): string", lambda one: one.value.parts["path"]),
    declare("url::getQuery(): map<string,list<string>>", _query),
]
