"""Random CEL selectors and a random device: mostly well typed, for others are soon refused.

A case holds a handful of expressions of one device in ``pod``: that is where the referee looks.
"""

from __future__ import annotations

from random import Random

from tests.differential.vocabulary import Json, chance, some

DOMAINS = ("gpu.example.com", "other.example.com", "absent.example.com")
STRINGS = ("", "H100", "A100-SXM4-80GB", "mig", "a.b.c", "Füß", "x1y2", "NVIDIA H100", "1.2.3", "8")
VERSIONS = ("1.0.0", "1.2.3", "2.0.0-rc.1", "550.54.15", "0.0.1", "1.0.0+build")
QUANTITIES = ("0", "1", "80Gi", "1500m", "40Gi", "81920Mi", "1.5Gi", "1e3", "-1", "0.1", "100k")
IDS = ("name", "index", "healthy", "version", "missing", "names", "numbers", "memory", "flags")
PATTERNS = (
    *("^H", "[0-9]+", "^(a|b)+c$", "SXM.*GB$", "^$", "(?i)h100", "x?y*", r"\d+\.\d+", "("),
    *("^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", "[[:upper:]]{2,}"),
    *("a**", "(?:A100|H100)", r"\bH100\b", "[^A-Z ]+", "(a*)*", "(|a)+b"),
)
ADDRESSES = ("10.0.0.1", "::1", "10.0.0.300", "fe80::1", "224.0.0.1", "::ffff:1.2.3.4", "0.0.0.0")
NETWORKS = ("10.0.0.0/8", "10.1.0.0/16", "fe80::/10", "10.0.0.1/24", "1.2.3.4", "::/0")
URLS = (
    *("https://example.com:8080/a/b?x=1&y=2&x=3", "http://[::1]/", "not a url", ""),
    *("http://example.com?q", "/a/b", "http://example.com"),
)
NAMED = (
    *("dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName", "labelValue", "uuid"),
    *("byte", "dns1123LabelPrefix", "dns1123SubdomainPrefix", "dns1035LabelPrefix"),
)
"""Without what is said to be unknown anyway: odd URLs, and the formats uri, date and datetime."""


def case(rng: Random) -> Json:
    maker = _Maker(rng)
    return {
        "objects": [],
        "pod": {
            "driver": rng.choice(("gpu.example.com", "gpu.example.com", "other.example.com")),
            "device": device(rng),
            "new": chance(rng, 0.3),
            "features": {
                "EnableConsumableCapacity": chance(rng, 0.7),
                "EnableListTypeAttributes": chance(rng, 0.5),
            },
            "expressions": [maker.selector() for _ in range(6)],
        },
    }


def device(rng: Random) -> Json:
    attributes: Json = {}
    kinds: dict[str, list[Json]] = {
        "name": [{"string": one} for one in STRINGS],
        "index": [{"int": one} for one in (0, 1, 7, -3, 2**63 - 1)],
        "healthy": [{"bool": one} for one in (True, False)],
        "version": [{"version": one} for one in VERSIONS],
        "names": [{"strings": some(rng, STRINGS, 1, 3)}],
        "numbers": [{"ints": some(rng, (1, 2, 3, 10), 1, 3)}],
        "flags": [{"bools": [True, False]}],
    }
    for key, values in kinds.items():
        if chance(rng, 0.8):
            name = rng.choice((key, f"gpu.example.com/{key}", f"other.example.com/{key}"))
            attributes[name] = rng.choice(values)
    if chance(rng, 0.15) and attributes:  # an attribute of another type than its name says
        attributes[rng.choice(list(attributes))] = rng.choice(rng.choice(list(kinds.values())))
    capacity = {
        rng.choice((key, f"other.example.com/{key}")): {"value": rng.choice(QUANTITIES)}
        for key in some(rng, ("memory", "cores"), 0, 2)
    }
    made: Json = {"name": "gpu-0", "attributes": attributes, "capacity": capacity}
    if chance(rng, 0.3):
        made["allowMultipleAllocations"] = chance(rng, 0.5)
    return made


class _Maker:
    """Expressions by type. ``dyn`` is an attribute, whose type nobody knows before it is read."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self._names: list[tuple[str, str]] = []
        self._count = 0

    def selector(self) -> str:
        self._names = []
        if chance(self.rng, 0.02):
            return self.rng.choice(
                ("?!", "1", "'x'", "device", "true &&", "foo(1)", "a.b", "[1][0]")
            )
        return self.make("bool", self.rng.randint(1, 4))

    def make(self, kind: str, depth: int) -> str:
        rng = self.rng
        if chance(rng, 0.03):
            kind = rng.choice(("bool", "int", "string", "dyn", "quantity", "strings"))
        known = [name for name, one in self._names if one == kind]
        if known and chance(rng, 0.4):
            return rng.choice(known)
        if depth <= 0:
            return self.leaf(kind)
        options = getattr(self, f"_{kind}")
        return str(options(depth - 1))

    def leaf(self, kind: str) -> str:
        rng = self.rng
        if kind == "bool":
            return rng.choice(("true", "false", self.attribute("healthy")))
        if kind == "int":
            return rng.choice(("0", "1", "2", "-1", "7", "9223372036854775807"))
        if kind == "double":
            return rng.choice(("0.5", "1.0", "-2.25", "1e3", "3.0"))
        if kind == "uint":
            return rng.choice(("0u", "1u", "7u"))
        if kind == "string":
            return quoted(rng.choice(STRINGS))
        if kind == "quantity":
            return rng.choice((self.capacity(), f"quantity({quoted(rng.choice(QUANTITIES))})"))
        if kind == "semver":
            return f"semver({quoted(rng.choice(VERSIONS))})"
        if kind == "ints":
            return rng.choice(("[1, 2, 3]", "[5]", "[3, 1, 2, 3]", "[7]", "[]"))
        if kind == "strings":
            return rng.choice(("['a', 'b']", "['H100', 'mig']", "['c']", "['b', 'a', 'b']", "[]"))
        if kind == "duration":
            return rng.choice(("duration('1h')", "duration('90s')", "duration('1.5h')"))
        if kind == "timestamp":
            return rng.choice(
                ("timestamp('2024-02-29T12:30:45.123Z')", "timestamp('2023-01-01T00:00:00+02:00')")
            )
        if kind == "mapping":
            return rng.choice(("{'a': 1, 'b': 2}", "{'x': 7}", "{'a': 3}", "{}"))
        return self.attribute(rng.choice(IDS))

    def attribute(self, key: str) -> str:
        rng = self.rng
        domain = rng.choice(DOMAINS[:2]) if chance(rng, 0.93) else DOMAINS[2]
        if chance(rng, 0.85):
            return f"device.attributes[{quoted(domain)}].{key}"
        return f"device.attributes[{quoted(domain)}][{quoted(key)}]"

    def capacity(self) -> str:
        key = self.rng.choice(("memory", "memory", "cores"))
        return f"device.capacity[{quoted(self.rng.choice(DOMAINS[:2]))}].{key}"

    def _pick(self, depth: int, *options: str) -> str:
        """One of the patterns with ``{kind}`` filled in."""
        pattern = self.rng.choice(options)
        out, rest = "", pattern
        while "<" in rest:
            head, _, tail = rest.partition("<")
            kind, close, after = tail.partition(">")
            if not close or not kind.isalpha():
                out += head + "<"
                rest = tail
                continue
            out += head + self.make(kind, depth)
            rest = after
        return out + rest

    def _bool(self, depth: int) -> str:
        rng = self.rng
        roll = rng.random()
        if roll < 0.2:
            terms = [self.make("bool", depth) for _ in range(rng.randint(2, 3))]
            return "(" + rng.choice((" && ", " || ")).join(terms) + ")"
        if roll < 0.4:
            sign = rng.choice(("==", "!=", "<", "<=", ">", ">="))
            kind = rng.choice(("int", "double", "string", "dyn", "uint", "duration", "timestamp"))
            other = rng.choice((kind, kind, "dyn", "int"))
            if kind == "bool":
                sign = rng.choice(("==", "!="))
            return f"{self.make(kind, depth)} {sign} {self.make(other, depth)}"
        if roll < 0.5:
            return self._quantified(depth)
        if roll < 0.56:
            return self._bound(depth, "bool")
        if roll < 0.62:
            return self._addresses()
        return self._pick(
            depth,
            "!(<bool>)",
            "(<bool> ? <bool> : <bool>)",
            "<int> in <ints>",
            "<string> in <strings>",
            "<dyn> in <strings>",
            "<dyn> in <ints>",
            "<string> in <mapping>",
            "'gpu.example.com' in device.attributes",
            "'absent.example.com' in device.attributes",
            "'name' in device.attributes['gpu.example.com']",
            "has(device.attributes['gpu.example.com'].index)",
            "has(device.attributes['absent.example.com'].index)",
            "<quantity>.isGreaterThan(<quantity>)",
            "<quantity>.isLessThan(<quantity>)",
            "<quantity> == <quantity>",
            "<quantity> != <quantity>",
            "<quantity>.isInteger()",
            "isQuantity(<string>)",
            "isSemver(<string>)",
            "isSemver(<string>, true)",
            "<semver>.isGreaterThan(<semver>)",
            "<dyn>.isGreaterThan(<semver>)",
            "<dyn>.isLessThan(<quantity>)",
            "<semver> == <semver>",
            "<dyn> == <semver>",
            "<string>.contains(<string>)",
            "<string>.startsWith(<string>)",
            "<string>.endsWith(<string>)",
            "<dyn>.contains(<string>)",
            "<dyn>.startsWith('H')",
            f"<string>.matches({quoted(rng.choice(PATTERNS))})",
            f"<dyn>.matches({quoted(rng.choice(PATTERNS))})",
            "<ints>.isSorted()",
            "<strings>.isSorted()",
            "sets.contains(<ints>, <ints>)",
            "sets.intersects(<strings>, <strings>)",
            "sets.equivalent(<ints>, <ints>)",
            "<dyn>.includes(<string>)",
            "<dyn>.includes(<int>)",
            "device.attributes['gpu.example.com'].?healthy.orValue(<bool>)",
            "device.attributes['gpu.example.com'][?'name'].hasValue()",
            "device.attributes['gpu.example.com'].?index.optMap(v, v > 0).orValue(<bool>)",
            "optional.of(<int>) == optional.of(<int>)",
            "optional.none() == optional.ofNonZeroValue(<int>)",
            "device.driver == <string>",
            "device.allowMultipleAllocations",
            "<mapping> == <mapping>",
            "<ints> == <ints>",
            "type(<dyn>) == string",
            "type(<int>) == int",
            "<dyn>",
            "bool(<string>)",
            "<timestamp>.getFullYear() == 2024",
            "<duration>.getHours() > 0",
        )

    def _variable(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def _quantified(self, depth: int) -> str:
        rng = self.rng
        over, element = rng.choice(
            (("ints", "int"), ("strings", "string"), ("mapping", "string"), ("dyn", "dyn"))
        )
        holder = self.make(over, depth)
        if chance(rng, 0.1):
            holder = rng.choice(("device.attributes", "device.attributes['gpu.example.com']"))
            element = "string"
        first = self._variable()
        two = chance(rng, 0.25)
        second = self._variable() if two else ""
        kept = list(self._names)
        if two:
            value = {"ints": "int", "strings": "string", "mapping": "int"}.get(over, "dyn")
            self._names += [(first, "int" if over in ("ints", "strings") else "string")]
            self._names += [(second, value)]
        else:
            self._names.append((first, element))
        ones = ("existsOne", "exists_one") if two else ("exists_one",)
        loop = rng.choice(("all", "exists", rng.choice(ones)))
        body = self.make("bool", depth)
        self._names = kept
        names = f"{first}, {second}" if two else first
        return f"{holder}.{loop}({names}, {body})"

    def _bound(self, depth: int, kind: str) -> str:
        inner = self.rng.choice(("int", "string", "dyn", "bool"))
        value = self.make(inner, depth)
        name = self._variable()
        kept = list(self._names)
        self._names.append((name, inner))
        body = self.make(kind, depth)
        self._names = kept
        return f"cel.bind({name}, {value}, {body})"

    def _addresses(self) -> str:
        rng = self.rng
        address, network = quoted(rng.choice(ADDRESSES)), quoted(rng.choice(NETWORKS))
        url, named = quoted(rng.choice(URLS)), rng.choice(NAMED)
        text = quoted(rng.choice((*STRINGS, *URLS, *VERSIONS, "a-b", "aGVsbG8=", "2024-01-01")))
        return rng.choice(
            (
                f"isIP({address})",
                f"ip({address}).family() == 4",
                f"ip({address}).isLoopback()",
                f"ip({address}).isGlobalUnicast()",
                f"ip({address}).isLinkLocalUnicast()",
                f"ip.isCanonical({address})",
                f"string(ip({address})) == {address}",
                f"isCIDR({network})",
                f"cidr({network}).containsIP({address})",
                f"cidr({network}).containsCIDR({quoted(rng.choice(NETWORKS))})",
                f"cidr({network}).masked() == cidr({network})",
                f"cidr({network}).prefixLength() == 8",
                f"isURL({url})",
                f"url({url}).getHost() == 'example.com:8080'",
                f"url({url}).getHostname() == 'example.com'",
                f"url({url}).getPort() == '8080'",
                f"url({url}).getEscapedPath() == '/a/b'",
                f"url({url}).getScheme() == 'https'",
                f"url({url}).getQuery()['x'] == ['1', '3']",
                f"!format.{named}().validate({text}).hasValue()",
                f"format.{named}().validate({text}) == optional.of(['invalid'])",
            )
        )

    def _int(self, depth: int) -> str:
        sign = self.rng.choice("+-*/%")
        return self._pick(
            depth,
            f"(<int> {sign} <int>)",
            "size(<strings>)",
            "<string>.size()",
            "<mapping>.size()",
            "<ints>.sum()",
            "<ints>.max()",
            "<ints>.min()",
            "<ints>.indexOf(<int>)",
            "<strings>.lastIndexOf(<string>)",
            "<string>.indexOf(<string>)",
            "<string>.lastIndexOf(<string>)",
            "<ints>[<int>]",
            "int(<double>)",
            "int(<string>)",
            "<quantity>.asInteger()",
            "<quantity>.compareTo(<quantity>)",
            "<semver>.compareTo(<semver>)",
            "<semver>.major()",
            "sign(<quantity>)",
            "-(<int>)",
            "(<bool> ? <int> : <int>)",
            "<mapping>['a']",
            "<timestamp>.getDayOfWeek()",
            "<timestamp>.getHours('+02:00')",
            "<duration>.getSeconds()",
            "<ints>.first().orValue(<int>)",
            "<mapping>.?b.orValue(<int>)",
        )

    def _double(self, depth: int) -> str:
        sign = self.rng.choice("+-*/")
        return self._pick(
            depth, f"(<double> {sign} <double>)", "double(<int>)", "<quantity>.asApproximateFloat()"
        )

    def _uint(self, depth: int) -> str:
        return self._pick(depth, "(<uint> + <uint>)", "uint(<int>)", "(<uint> - <uint>)")

    def _string(self, depth: int) -> str:
        pattern = quoted(self.rng.choice(PATTERNS))
        return self._pick(
            depth,
            "(<string> + <string>)",
            "<string>.lowerAscii()",
            "<string>.upperAscii()",
            "<string>.replace('1', <string>)",
            "<string>.substring(<int>)",
            "<string>.substring(0, <int>)",
            "<string>.trim()",
            "<string>.charAt(<int>)",
            "<strings>.join(',')",
            f"<string>.find({pattern})",
            f"<string>.findAll({pattern}).join('|')",
            "string(<int>)",
            "string(<double>)",
            "string(<bool>)",
            "string(<timestamp>)",
            "string(<duration>)",
            "'%s-%d'.format([<string>, <int>])",
            "'%s %s'.format([<strings>, <double>])",
            "(<bool> ? <string> : <string>)",
            "<strings>[<int>]",
            "strings.quote(<string>)",
            "device.driver",
        )

    def _quantity(self, depth: int) -> str:
        return self._pick(
            depth,
            "<quantity>.add(<quantity>)",
            "<quantity>.sub(<quantity>)",
            "<quantity>.add(<int>)",
            "quantity(<string>)",
            "(<bool> ? <quantity> : <quantity>)",
        )

    def _semver(self, depth: int) -> str:
        return self._pick(depth, "semver(<string>)", "semver(<string>, true)")

    def _ints(self, depth: int) -> str:
        name = self._variable()
        return self._pick(
            depth,
            "(<ints> + <ints>)",
            f"<ints>.map({name}, {name} + 1)",
            f"<ints>.filter({name}, {name} > <int>)",
            f"<ints>.map({name}, {name} != 2, {name} * 2)",
            f"<ints>.transformList({name}, w{name}, w{name} > 1, {name})",
            "[<int>, <int>]",
            "<ints>.distinct()",
            "<ints>.sort()",
            "<ints>.reverse()",
            "<ints>.slice(0, <int>)",
            "lists.range(3)",
            "[[1], <ints>].flatten()",
            f"<ints>.sortBy({name}, -{name})",
        )

    def _strings(self, depth: int) -> str:
        name = self._variable()
        return self._pick(
            depth,
            "<string>.split('.')",
            "<string>.split(' ', 2)",
            f"<strings>.map({name}, {name} + 'x')",
            f"<strings>.filter({name}, {name} == <string>)",
            "<strings>.sort()",
            "[<string>, ?optional.of(<string>)]",
            "<string>.findAll('[a-z]')",
            "<strings>.distinct()",
        )

    def _mapping(self, depth: int) -> str:
        name = self._variable()
        return self._pick(
            depth,
            "{'a': <int>, <string>: <int>}",
            f"<strings>.transformMapEntry({name}, w{name}, {{w{name}: {name}}})",
            f"<mapping>.transformMap({name}, w{name}, w{name} + 1)",
            "{?'o': optional.of(<int>)}",
        )

    def _duration(self, depth: int) -> str:
        return self._pick(depth, "(<duration> + <duration>)", "(<timestamp> - <timestamp>)")

    def _timestamp(self, depth: int) -> str:
        return self._pick(depth, "(<timestamp> + <duration>)", "timestamp(<int>)")

    def _dyn(self, depth: int) -> str:
        return self.leaf("dyn")


def quoted(text: str) -> str:
    """A string literal of CEL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
