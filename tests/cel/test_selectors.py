"""CEL selectors of DRA: values, refusals and failures in cel-go's words, and their terms."""

from __future__ import annotations

import pytest

from kubectl_gpuadmit.cel import dra, terms
from kubectl_gpuadmit.cel.values import Unknown
from kubectl_gpuadmit.kube import quantity

DOMAIN = 'device.attributes["gpu.example.com"]'
CAPACITY = 'device.capacity["gpu.example.com"]'
HINT = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with"
    " has() for optional fields"
)

H100 = dra.Device(
    "gpu.example.com",
    {
        "productName": "H100",
        "index": 3,
        "healthy": True,
        "driverVersion": dra.Version("550.54.15"),
        "other.example.com/links": ["a", "b"],
    },
    {"memory": quantity.parse("81559Mi")},
)


def answer(expression: str, device: dra.Device = H100) -> object:
    compiled = dra.compile(expression)
    return compiled.matches(device) if isinstance(compiled, dra.Selector) else compiled


@pytest.mark.parametrize(
    "expression",
    [
        'device.driver == "gpu.example.com"',
        f'{DOMAIN}.productName == "H100"',
        f'{DOMAIN}["index"] > 2 && {DOMAIN}.healthy',
        f'{CAPACITY}.memory.isGreaterThan(quantity("40Gi"))',
        f'{CAPACITY}.memory.compareTo(quantity("80Gi")) < 0',
        f'{DOMAIN}.driverVersion.isGreaterThan(semver("550.54.14"))',
        f'{DOMAIN}.driverVersion.compareTo(semver("v550.54", true)) > 0',
        '!("absent.example.com" in device.attributes)',
        '"gpu.example.com" in device.attributes',
        "!device.allowMultipleAllocations",
        f"cel.bind(gpu, {DOMAIN}, gpu.index == 3 && gpu.healthy)",
        f'{DOMAIN}.?missing.orValue("x") == "x"',
        f"has({DOMAIN}.index) && !has({DOMAIN}.missing)",
        'device.attributes["other.example.com"].links.includes("b")',
        'device.attributes["other.example.com"].links.exists(l, l == "a")',
        f'{DOMAIN}.productName.matches("^(H|B)[0-9]{{3}}$")',
        f'{DOMAIN}.missing == 1 || {DOMAIN}.productName.startsWith("H")',
        "[3, 1, 2].sort() == [1, 2, 3] && sets.contains([1, 2], [2])",
        '"%s-%d".format(["a", 1]) == "a-1"',
    ],
)
def test_a_device_matches(expression: str) -> None:
    assert answer(expression) is True


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (f"{DOMAIN}.missing == 1", f"no such key: missing{HINT}"),
        ('device.attributes["absent.example.com"].x == 1', f"no such key: x{HINT}"),
        (f"{DOMAIN}.productName > 5", "no such overload"),
        (
            f'{DOMAIN}.productName.isGreaterThan(quantity("1"))',
            "no such overload: isGreaterThan(string, kubernetes.Quantity)",
        ),
        (
            f"{DOMAIN}.index",
            "CEL result of type int could not be converted to bool: unsupported type conversion"
            " from 'int' to bool",
        ),
        (f"{DOMAIN}.index / 0 == 1", "division by zero"),
    ],
)
def test_a_selector_that_fails_says_why_in_cel_go_s_words(expression: str, message: str) -> None:
    assert answer(expression) == dra.RuntimeProblem(message)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("1", "must evaluate to bool or the unknown type, not int"),
        (
            "device.foo",
            "compilation failed: ERROR: <input>:1:7: undefined field 'foo'\n | device.foo\n"
            " | ......^",
        ),
        (
            f"{CAPACITY}.memory > 5",
            "compilation failed: ERROR: <input>:1:43: found no matching overload for '_>_' applied"
            f" to '(kubernetes.Quantity, int)'\n | {CAPACITY}.memory > 5\n | {'.' * 42}^",
        ),
        (
            "true &&",
            "compilation failed: ERROR: <input>:1:8: Syntax error: mismatched input '<EOF>'\n"
            " | true &&\n | .......^",
        ),
        (
            "gpu == 1",
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'gpu' (in container"
            " '')\n | gpu == 1\n | ^",
        ),
    ],
)
def test_a_selector_that_is_refused_is_refused_in_the_api_server_s_words(
    expression: str, message: str
) -> None:
    assert dra.compile(expression) == dra.Problem(message)


def test_an_expression_of_more_than_ten_kibibytes_is_refused() -> None:
    found = dra.compile("true" + " " * dra.LONGEST)
    assert isinstance(found, dra.Problem)
    assert found.kind == "too-long"


def test_what_the_gates_of_the_cluster_leave_out_does_not_compile() -> None:
    found = dra.compile("device.allowMultipleAllocations", consumable_capacity=False)
    assert isinstance(found, dra.Problem)
    assert "undefined field 'allowMultipleAllocations'" in found.message
    listed = dra.compile(f"{DOMAIN}.x.exists(y, y == 1)", list_attributes=False)
    assert isinstance(listed, dra.Problem)
    assert "cannot be range of a comprehension" in listed.message
    assert isinstance(dra.compile("[1].includes(1)", kubernetes="1.35"), dra.Problem)


def test_a_version_that_is_none_ends_every_question() -> None:
    broken = dra.Device("d", {"v": dra.Version("latest")}, {})
    assert answer("true", broken) == dra.RuntimeProblem(
        "attribute v: parse semantic version: No Major.Minor.Patch elements found"
    )


def test_an_expression_that_costs_too_much_is_cancelled_in_the_scheduler_s_words() -> None:
    ten = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
    nested = f"{ten}.all(a, {ten}.all(b, {ten}.all(c, {ten}.all(d, {ten}.all(e, {ten}.all(f, "
    assert answer(nested + "true))))))") == dra.RuntimeProblem(
        "operation cancelled: actual cost limit exceeded"
    )


def test_a_value_that_is_not_known_leaves_the_answer_open_unless_another_term_decides() -> None:
    device = dra.Device("d", {"a": True}, {})
    device.variables["device"]["attributes"]["d"]["b"] = Unknown("attribute b")
    a, b = 'device.attributes["d"].a', 'device.attributes["d"].b'
    assert answer(f"{a} || {b}", device) is True
    assert answer(f"!{a} && {b}", device) is False
    found = answer(f"{a} && {b}", device)
    assert found == dra.NotEvaluable(f"attribute b ({a} && {b})")


def test_a_pattern_on_which_backtracking_would_never_end_ends_at_once() -> None:
    device = dra.Device("d", {"s": "a" * 60 + "!"}, {})
    assert answer('device.attributes["d"].s.matches("^(a+)+$")', device) is False
    assert answer('device.attributes["d"].s.matches("^(a+)+!$")', device) is True


def test_a_selector_falls_into_terms_each_with_what_it_reads() -> None:
    expression = f"""cel.bind(gpu, {DOMAIN}, gpu.index == 3 &&
        gpu.productName == "B200") && ({CAPACITY}.memory.compareTo(quantity("80Gi")) >= 0
        && (true || false))"""
    selector = dra.compile(expression)
    assert isinstance(selector, dra.Selector)
    found = terms.terms(selector, H100)
    assert [(one.text, one.answer) for one in found] == [
        ("gpu.index == 3", True),
        ('gpu.productName == "B200"', False),
        (f'{CAPACITY}.memory.compareTo(quantity("80Gi")) >= 0', False),
        ("true || false", True),
    ]
    reads = [(str(read), read.value(H100)) for one in found for read in one.reads]
    assert reads == [
        ("gpu.example.com/index", "3"),
        ("gpu.example.com/productName", "H100"),
        ("gpu.example.com/memory", "81559Mi"),
    ]


@pytest.mark.parametrize(
    "expression", [f"{DOMAIN}.healthy || false", f"{DOMAIN}.healthy ? true : false", "true"]
)
def test_a_selector_that_is_no_conjunction_is_one_term(expression: str) -> None:
    selector = dra.compile(expression)
    assert isinstance(selector, dra.Selector)
    (only,) = terms.terms(selector, H100)
    assert (only.text, only.answer) == (expression, True)
