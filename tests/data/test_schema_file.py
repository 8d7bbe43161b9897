"""Schema files: what is written is read back, and every mistake is told at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.schema import READ_FROM_DATA, Attribute, Bins, Category, CodeRange, Schema
from dpsim.data.schema_file import REVIEWED, dump_schema, load_schema, parse_schema

EXAMPLE = """
[attribute]
education    = {kind = "category", values = ["Bachelors", "HS-grad"], other = true}
capital-gain = {kind = "number", bounds = [0, 100000], bins = 16, missing = "category"}
region       = {kind = "code", size = 8}
"""


def mistakes(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        parse_schema(text, "x.toml")
    return str(caught.value).splitlines()


def test_a_file_becomes_a_declared_schema(tmp_path):
    path = tmp_path / "x.schema.toml"
    path.write_text(EXAMPLE, "utf-8-sig")
    schema = load_schema(path)
    assert schema.attributes == (
        Attribute("education", Category(("Bachelors", "HS-grad"), other=True)),
        Attribute("capital-gain", Bins(0.0, 100000.0, 16), "category"),
        Attribute("region", CodeRange(8)),
    )
    assert (schema.origin, schema.reviewed, schema.is_declared) == ("declared", True, True)


def test_whole_and_decimal_bounds_mean_the_same():
    line = '[attribute]\na = {{kind = "number", bounds = [{}], bins = 2}}'
    whole, decimal = (parse_schema(line.format(b), "x") for b in ("0, 5", "0.0, 5.0"))
    assert whole.fingerprint == decimal.fingerprint


@pytest.mark.parametrize(
    ("top", "origin", "is_declared"),
    [
        ("", "declared", True),
        ("reviewed = false", "declared", False),
        ('origin = "a survey"', "a survey", True),
        (f'origin = "{READ_FROM_DATA}"', READ_FROM_DATA, False),
        (f'reviewed = false\norigin = "{READ_FROM_DATA}"', READ_FROM_DATA, False),
        (f'reviewed = true\norigin = "{READ_FROM_DATA}"', REVIEWED, True),
    ],
)
def test_only_a_person_can_vouch_for_a_schema_read_from_the_data(top, origin, is_declared):
    schema = parse_schema(f"{top}\n{EXAMPLE}", "x")
    assert (schema.origin, schema.is_declared) == (origin, is_declared)


def test_a_schema_read_from_the_data_is_marked_when_written():
    attributes = (Attribute("a", CodeRange(2)),)
    derived = dump_schema(Schema(attributes, READ_FROM_DATA, reviewed=False))
    mark = "DERIVED FROM PRIVATE DATA: check every line, then set reviewed = true"
    assert derived.splitlines()[0] == f"# {mark}"
    assert parse_schema(derived, "x").is_declared is False
    assert parse_schema(derived.replace("reviewed = false", "reviewed = true"), "x").is_declared
    assert "DERIVED" not in dump_schema(Schema(attributes))


@pytest.mark.parametrize("reviewed", [True, False])
def test_writing_and_reading_back_does_not_vouch_for_a_schema(reviewed):
    derived = Schema((Attribute("a", CodeRange(2)),), READ_FROM_DATA, reviewed)
    assert not parse_schema(dump_schema(derived), "x").is_declared


names = st.text(st.characters(exclude_categories=["C", "Z"]) | st.just(" "), min_size=1)
finite = st.floats(allow_nan=False, allow_infinity=False)
domains = st.one_of(
    st.builds(Category, st.lists(st.text(), min_size=1, unique=True).map(tuple), st.booleans()),
    st.tuples(finite, finite, st.integers(1, 99))
    .filter(lambda t: t[0] != t[1])
    .map(lambda t: Bins(min(t[:2]), max(t[:2]), t[2])),
    st.builds(CodeRange, st.integers(1, 999)),
)
attribute_lists = st.lists(
    st.builds(Attribute, names, domains, st.sampled_from(["refuse", "category"])),
    min_size=1,
    unique_by=lambda attribute: attribute.name,
)


@given(attribute_lists, st.text().filter(lambda text: text != READ_FROM_DATA), st.booleans())
def test_what_is_written_is_read_back(attributes, origin, reviewed):
    schema = Schema(tuple(attributes), origin, reviewed)
    text = dump_schema(schema)
    assert parse_schema(text, "x") == schema
    assert dump_schema(parse_schema(text, "x")) == text


def test_all_mistakes_are_told_at_once():
    text = """
reviewd = true
origin = 3
[attribute]
a = {kind = "categry", valus = ["x"]}
b = {kind = "number", bounds = [5, 1], bins = "ten", oter = true}
c = {kind = "code"}
d = 7
e = {kind = "category", values = ["x", "x"], other = 1, missing = "refuze"}
f = {kind = "code", size = 1000001}
capital.gain = {kind = "code", size = 2}
g = {size = true}
h = {kind = "category", values = []}
"""
    assert mistakes(text) == [
        "x.toml: reviewd is not a known key; did you mean 'reviewed'?",
        "x.toml: origin must be a text, got 3",
        "x.toml: attribute.a.valus is not a known key; did you mean 'values'?",
        'x.toml: attribute.a.kind must be "category" or "number" or "code", got \'categry\'; '
        "did you mean 'category'?",
        "x.toml: attribute.b.oter is not a known key; "
        "known keys are kind, bounds, bins, missing",
        "x.toml: attribute.b.bounds must be two finite numbers [low, high] with low < high, "
        "got [5, 1]",
        "x.toml: attribute.b.bins must be a whole number >= 1, got 'ten'",
        "x.toml: attribute.c.size is missing; it must be a whole number >= 1",
        'x.toml: attribute.d must be a table such as {kind = "code", size = 8}',
        "x.toml: attribute.e.values must be a list of distinct texts, got ['x', 'x']",
        "x.toml: attribute.e.other must be true or false, got 1",
        'x.toml: attribute.e.missing must be "refuse" or "category", got \'refuze\'; '
        "did you mean 'refuse'?",
        "x.toml: attribute.f: attribute 'f': the domain must have 1 to 1,000,000 values, "
        "got 1,000,001; list fewer values, or use fewer bins",
        "x.toml: attribute.capital.gain is not a known key; known keys are "
        "kind, values, other, missing, bounds, bins, size (a name with a dot needs quotes)",
        "x.toml: attribute.capital.kind is missing; "
        'it must be "category" or "number" or "code"',
        'x.toml: attribute.g.kind is missing; it must be "category" or "number" or "code"',
        "x.toml: attribute.g.size must be a whole number >= 1, got True",
        "x.toml: attribute.h: attribute 'h': the domain must have 1 to 1,000,000 values, got 0"
        "; list fewer values, or use fewer bins",
    ]


@pytest.mark.parametrize(
    "bounds", ["[nan, 1]", "[0, inf]", "[1]", "[true, 2]", '["0", 2]', "3"]
)
def test_bounds_must_be_two_finite_numbers_in_order(bounds):
    line = f'[attribute]\na = {{kind = "number", bounds = {bounds}, bins = 2}}'
    assert "attribute.a.bounds must be two finite numbers" in mistakes(line)[0]


def test_a_number_too_large_for_a_float_is_refused():
    line = f'[attribute]\na = {{kind = "number", bounds = [0, 1{"0" * 400}], bins = 2}}'
    (mistake,) = mistakes(line)
    assert "finite" in mistake
    assert len(mistake) < 200


@pytest.mark.parametrize("text", ["", "[attribute]", "attribute = 3"])
def test_a_schema_needs_attributes(text):
    (mistake,) = mistakes(text)
    assert mistake.startswith("x.toml: attribute ")
    assert "a table with a line for each attribute" in mistake


def test_a_name_must_be_printable():
    (mistake,) = mistakes('[attribute]\n"" = {kind = "code", size = 2}')
    assert "printable" in mistake


def test_a_file_that_is_not_toml_is_refused_with_its_line(tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text("[attribute]\na = {kind = \n")
    with pytest.raises(InputError, match=r"bad\.toml is not TOML: .*line 2"):
        load_schema(path)


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"cannot read the schema .*none\.toml: No such file"):
        load_schema(tmp_path / "none.toml")
    with pytest.raises(InputError, match=r"cannot read the schema .*: Is a directory"):
        load_schema(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b'origin = "\xe9"')
    with pytest.raises(InputError, match=r"latin\.toml is not UTF-8; save it as UTF-8"):
        load_schema(tmp_path / "latin.toml")
