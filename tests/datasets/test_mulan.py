"""MULAN's and MEKA's files as they are in the wild, what is said of broken ones, and the published ones."""

import bz2
import gzip
import pickle
import struct
import sys
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from scipy import sparse
from tests.support.data import DATA, needs_data

from abstain._utils.errors import DatasetWarning, InvalidDataset, InvalidParameter
from abstain.datasets import _arff as arff_module, _tokens, load_mulan

HEAD = "@relation r\n@attribute a numeric\n@attribute b numeric\n@attribute y {0,1}\n@data\n"


def feature(kind):
    """The header with another type for its first attribute."""
    return HEAD.replace("a numeric", f"a {kind}")


def label(kind):
    """The header with another type for its label."""
    return HEAD.replace("{0,1}", kind)


PACKERS = {"plain": bytes, "gz": gzip.compress, "bz2": bz2.compress}


def write(folder, text, name="file.arff", pack=bytes):
    path = folder / name
    path.write_bytes(pack(text if isinstance(text, bytes) else text.encode()))
    return path


def load(folder, text, labels=-1, **options):
    return load_mulan(write(folder, text), labels=labels, **options)


def dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else matrix


NAN = np.nan
TWO = ([[1.5, -2.0], [0.0, 3.0]], [[1], [0]])
WILD = {
    "plain": (HEAD + "1.5,-2,1\n0,3,0\n", *TWO),
    "no final line end": (HEAD + "1.5,-2,1\n0,3,0", *TWO),
    "blanks and tabs": (HEAD + "  1.5 -2\t1  \n\t0 , 3 ,\t0\n", *TWO),
    "trailing comma": (HEAD + "1.5,-2,1,\n0,3,0,\n", *TWO),
    "windows": ((HEAD + "1.5,-2,1\n0,3,0\n").replace("\n", "\r\n"), *TWO),
    "old mac": ((HEAD + "1.5,-2,1\n0,3,0\n").replace("\n", "\r"), *TWO),
    "mixed line ends": (HEAD.replace("\n", "\r\n") + "1.5,-2,1\r0,3,0\r\n\n", *TWO),
    "byte order mark": ("\ufeff" + HEAD + "1.5,-2,1\n0,3,0\n", *TWO),
    "upper case": (HEAD.upper().replace("NUMERIC", "Real") + "1.5,-2,1\n0,3,0\n", *TWO),
    "integer with a range": (HEAD.replace("b numeric", "b INTEGER [0,9]") + "1.5,-2,1\n0,3,0\n", *TWO),
    "no relation": (HEAD.replace("@relation r\n", "") + "1.5,-2,1\n0,3,0\n", *TWO),
    "comments": (
        "% top, with 'quotes\n\n  % more\n"
        + feature("numeric % {not, a, value}").replace("@data", "@data %")
        + "%\n1.5,-2,1 % end\n\n   \n  % between\n0,3,0% glued\n% last",
        *TWO,
    ),
    "quoted names": (HEAD.replace(" a ", " 'a {b}, %' ").replace(" b ", ' "it\'s" ') + "1.5,-2,1\n0,3,0\n", *TWO),
    "no blank before the values": (HEAD.replace("y {0,1}", "y{ 0 , 1 }") + "1.5,-2,1\n0,3,0\n", *TWO),
    "quoted numbers": (label("{'0',\"1\"}") + "'1.5',\"-2\",'1'\n0,3,0\n", *TWO),
    "reversed label": (label("{1,0}") + "1.5,-2,1\n0,3,0\n", *TWO),
    "words": (label("{TRUE, False}") + "1.5,-2,TRUE\n0,3,False\n", *TWO),
    "yes and no": (label("{no,Yes}") + "1.5,-2,Yes\n0,3,no\n", *TWO),
    "numeric label": (label("numeric") + "1.5,-2,1.0\n0,3,-0\n", *TWO),
    "missing": (HEAD + "?,-2,1\n0,?,0\n", [[NAN, -2.0], [0.0, NAN]], TWO[1]),
    "nan and inf": (HEAD + "NaN,-inf,1\n1e400,Infinity,0\n", [[NAN, -np.inf], [np.inf, np.inf]], TWO[1]),
    "sparse": (HEAD + "{0 1.5, 1 -2, 2 1}\n{1 3}\n", *TWO),
    "sparse without blanks": (HEAD + "{0 1.5,1 -2,2 1}\n{1 3}", *TWO),
    "sparse with more blanks": (HEAD + " {  0\t1.5 ,  1  -2 2 1 , } ,  % end\n{1 3 }\n", *TWO),
    "sparse with stray commas": (HEAD + "{,0 1.5,, 1 -2 ,,2 1,,}\n{ , 1 3},,\n", *TWO),
    "sparse, empty": (HEAD + "{}\n{ }\n{2 1}\n", [[0, 0], [0, 0], [0, 0]], [[0], [0], [1]]),
    "sparse, explicit zero": (HEAD + "{0 1.5, 1 -2, 2 1}\n{0 0,1 3,2 0}\n", *TWO),
    "sparse, missing": (HEAD + "{0 ?,2 1}\n{1 3}\n", [[NAN, 0], [0, 3]], TWO[1]),
    # WEKA's internal 0 is the value declared first
    "sparse, reversed label": (label("{1,0}") + "{0 1.5,1 -2}\n{1 3,2 0}\n", *TWO),
    "sparse, reversed words": (label("{yes,no}") + "{0 1.5,1 -2}\n{1 3,2 no}\n", *TWO),
    "sparse, feature filled in": (
        feature("{2,0,5}") + "{1 1}\n{0 5}\n{0 0,2 1}\n{}\n{0 ?}\n{0 2, 1 7}\n",
        [[2, 1], [5, 0], [0, 0], [2, 0], [NAN, 0], [2, 7]],
        [[0], [0], [1], [0], [0], [0]],
    ),
    "nominal numbers": (feature("{10, -2.5, 3}") + "-2.5,0,1\n10.0,3,0\n", [[-2.5, 0], [10, 3]], TWO[1]),
    "nominal codes": (
        feature("""{red, 'dark blue' , "4 o'clock",7}""") + "7,0,1\n'dark blue',1,0\nred,?,0\n'4 o\\'clock',2,1",
        [[3, 0], [1, 1], [0, NAN], [2, 2]],
        [[1], [0], [0], [1]],
    ),
    "sparse, nominal codes": (
        feature("{red,blue}") + "{0 blue}\n{0 red,2 1}\n{}\n",
        [[1, 0], [0, 0], [0, 0]],
        [[0], [1], [0]],
    ),
    "quoted question mark": (feature("{x,'?'}") + "'?',0,1\n?,0,0\n", [[1, 0], [NAN, 0]], TWO[1]),
    "numbers that are one": (feature("{1,1.0}") + "1.0,0,1\n1,0,0\n", [[1, 0], [0, 0]], TWO[1]),
    "dates": (
        feature("date").replace("b numeric", 'b DATE "dd.MM.yyyy HH:mm"')
        + "1970-01-02T00:00:01,'01.02.1970 00:30',1\n\"1969-12-31T23:59:59\",?,0\n",
        [[86401, 31 * 86400 + 1800], [-1, NAN]],
        TWO[1],
    ),
}


@pytest.mark.parametrize("chunk", [1, 64, 1 << 20])
@pytest.mark.parametrize("pack", PACKERS)
@pytest.mark.parametrize("variant", WILD)
def test_wild_variants(variant, pack, chunk, tmp_path, monkeypatch):
    monkeypatch.setattr(arff_module, "BATCH_BYTES", chunk)
    text, data, target = WILD[variant]
    bunch = load_mulan(write(tmp_path, text, pack=PACKERS[pack]), labels=-1)
    assert sparse.issparse(bunch.data) == ("sparse" in variant)
    np.testing.assert_array_equal(dense(bunch.data), np.array(data, float))
    np.testing.assert_array_equal(bunch.target, target)
    assert bunch.data.dtype == np.float64
    assert bunch.target.dtype == np.uint8
    assert bunch.target.flags.c_contiguous
    if sparse.issparse(bunch.data):
        assert bunch.data.has_canonical_format
        assert (bunch.data.data != 0).all()
    else:
        assert bunch.data.flags.c_contiguous


def test_what_comes_with_the_arrays(tmp_path):
    text = (
        "@relation 'a \\'name\\': -C 1 -split 0.5'\n@attribute 'la\\tbel' {0,1}\n@attribute file string\n"
        "@attribute colour {red,blue}\n@attribute {n} string\n"
    ).replace("{n}", "note") + "@data\n1,'it\\'s \\\\ \"x\"\\n',blue,?\n0,a\\b?,red,100\n"
    bunch = load_mulan(write(tmp_path, text))
    assert bunch.relation == "a 'name'"
    assert bunch.target_names == ["la\tbel"]
    assert bunch.feature_names == ["colour"]
    assert bunch.categories == {"colour": ("red", "blue")}
    assert {name: list(array) for name, array in bunch.strings.items()} == {
        "file": ['it\'s \\ "x"\n', "a\\b?"],
        "note": ["", "100"],
    }
    assert all(array.dtype == object for array in bunch.strings.values())


def test_a_data_set_is_shown_by_its_size(tmp_path):
    bunch = load(tmp_path, HEAD + "1,2,0\n")
    assert repr(bunch).splitlines()[0] == "MultiLabelBunch of 1 instances × 2 features × 1 labels"
    assert "target_names" in repr(bunch)
    assert repr(pickle.loads(pickle.dumps(bunch))) == repr(bunch)
    del bunch["data"]
    assert "'target_names': ['y']" in repr(bunch)


def test_text_in_sparse_rows(tmp_path):
    bunch = load(tmp_path, feature("string") + "{0 'x y',1 2}\n{2 1}\n{0 ?}\n")
    assert list(bunch.strings["a"]) == ["x y", "", ""]
    np.testing.assert_array_equal(bunch.data.toarray(), [[2], [0], [0]])


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_encodings(encoding, tmp_path):
    text = HEAD.replace(" a numeric", " 'größe' {groß,süß}").replace("b numeric", "b string") + "süß,é,1\n"
    bunch = load(tmp_path, text.encode(encoding))
    assert (bunch.feature_names, list(bunch.strings["b"]), bunch.data[0, 0]) == (["größe"], ["é"], 1)


def test_names_are_taken_as_they_stand(tmp_path):
    bunch = load(tmp_path, HEAD.replace(" a ", " TAG_m\\'usica ").replace(" b ", "\tdise\\~no,??  ") + "1,2,0\n")
    assert bunch.feature_names == ["TAG_m\\'usica", "dise\\~no,??"]


def xml_of(*names, top="labels"):
    return (
        f'<?xml version="1.0" encoding="utf-8"?>\n<{top} xmlns="http://mulan.sourceforge.net/labels">\n'
        + "".join(f'<label name="{name}"></label>\n' for name in names)
        + f"</{top}>\n"
    )


MIDDLE = "@relation '{}'\n@attribute y {{0,1}}\n@attribute a numeric\n@attribute z {{0,1}}\n@data\n1,5,0\n0,6,0\n"


@pytest.mark.parametrize(
    ("relation", "beside", "options", "expected"),
    [
        ("m", ["file.xml"], {}, ["y", "z"]),
        ("m", ["file.xml.gz"], {}, ["y", "z"]),
        ("m", ["file.xml.bz2"], {}, ["y", "z"]),
        ("m: -C 1", [], {}, ["y"]),
        ("m -C -1", [], {}, ["z"]),
        ("m:-C 1", [], {}, ["y"]),
        ("m: -x 3 -C -2 -y", [], {}, ["a", "z"]),
        ("m: -C 1", [], {"labels": -1}, ["z"]),
        ("m: -C 1", [], {"labels": np.int64(-1)}, ["z"]),
        ("m: -C 1", [], {"labels": ["z", "y"]}, ["y", "z"]),
        ("m: -C 1", ["file.xml"], {"labels": 1}, ["y"]),
        ("m: -C 1", ["other.xml"], {}, ["y"]),
        ("m: -C 1", ["other.xml"], {"xml": "other.xml"}, ["y", "z"]),
        ("m: -C 1", ["other.xml"], {"xml": "other.xml", "labels": 1}, ["y"]),
    ],
)
def test_where_the_labels_are_named(relation, beside, options, expected, tmp_path):
    for name in beside:
        write(tmp_path, xml_of("z", "y"), name, PACKERS.get(name.rpartition(".")[2], bytes))
    if "xml" in options:
        options = options | {"xml": tmp_path / options["xml"]}
    text = MIDDLE.format(relation)
    if "a" in expected:
        text = text.replace("5", "1").replace("6", "0")
    bunch = load_mulan(str(write(tmp_path, text)), **options)
    assert bunch.target_names == expected
    assert bunch.relation == "m"


MOVED = "m: -C {} -I 0-weka.filters.unsupervised.attribute.Remove-R1-2_m: -C {} -I 0"


def labels_last(relation, rows, n_features=4, n_labels=2, kind="{0,1}"):
    """Words, then labels, as in medical and slashdot."""
    words = "".join(f"@attribute word{j} {kind}\n" for j in range(n_features))
    return f"@relation '{relation}'\n{words}" + "".join(f"@attribute c{j} {{0,1}}\n" for j in range(n_labels)) + rows


def test_the_list_beside_the_file_wins_over_a_stale_count(tmp_path):
    text = labels_last(MOVED.format(2, 2), "@data\n{,0 1,4 1}\n{1 1,3 1,5 1}\n")
    write(tmp_path, xml_of("c1", "c0"), "medical.xml.gz", gzip.compress)
    arff = write(tmp_path, text, "medical.arff.gz", gzip.compress)
    with pytest.warns(DatasetWarning) as caught:
        bunch = load_mulan(arff)
    assert bunch.target_names == ["c0", "c1"]
    assert bunch.feature_names == ["word0", "word1", "word2", "word3"]
    np.testing.assert_array_equal(bunch.target, [[1, 0], [0, 1]])
    assert [str(warning.message) for warning in caught] == [
        "medical.arff.gz: the labels are 'c0', …, 'c1' (2 attributes), as medical.xml.gz lists them; -C 2 in the "
        "relation, which stands for 'word0', …, 'word1' (2 attributes), is ignored. Pass xml= or labels= to choose"
    ]
    assert caught[0].filename == __file__
    for chosen in ({"xml": tmp_path / "medical.xml.gz"}, {"labels": -2}, {"labels": ["c0", "c1"]}):
        assert load_mulan(arff, **chosen).target_names == ["c0", "c1"]


@pytest.mark.parametrize("count", [0, 1, -1, 7])
def test_whatever_the_count_the_list_wins(count, tmp_path):
    write(tmp_path, xml_of("y", "z"), "file.xml")
    with pytest.warns(DatasetWarning, match=rf"as file\.xml lists them; -C {count} in the relation"):
        assert load_mulan(write(tmp_path, MIDDLE.format(f"m: -C {count}"))).target_names == ["y", "z"]


def test_list_and_count_agree(tmp_path):
    write(tmp_path, xml_of("z"), "file.xml")
    assert load_mulan(write(tmp_path, MIDDLE.format("m: -C -1"))).target_names == ["z"]  # warnings are errors


def test_a_count_alone_is_doubted_if_columns_were_moved(tmp_path):
    text = labels_last(MOVED.format(2, 2), "@data\n{0 1,4 1}\n")
    message = r"as -C 2 in the relation says; but WEKA's filter Remove may have .*labels=-2 for the last 2 attributes"
    with pytest.warns(DatasetWarning, match=message):
        assert load_mulan(write(tmp_path, text)).target_names == ["word0", "word1"]


@pytest.mark.parametrize("kind", ["numeric", "{0,0.5}"])
def test_labels_that_are_none_name_the_remedies(kind, tmp_path):
    text = labels_last("slashdot: -C 2", "@data\n{,1 0.5,4 1}\n", kind=kind)
    with pytest.raises(InvalidDataset) as caught:
        load_mulan(write(tmp_path, text))
    assert str(caught.value).endswith(
        "; -C 2 in the relation makes it a label: if it is none, pass xml= for a list of the labels, "
        "or labels=-2 for the last 2 attributes"
    )
    with pytest.raises(InvalidDataset, match=r"labels=2 makes it a label.* or labels=-2 for the last 2"):
        load_mulan(write(tmp_path, text), labels=2)


@pytest.mark.parametrize(
    "name",
    ["set-train.arff", "set-test.arff.gz", "set.ARFF", "set-Train.arff.bz2", "set", "set_training.arff", "set.test"],
)
def test_halves_of_a_split_share_a_list(name, tmp_path):
    write(tmp_path, xml_of("z"), "set.xml")
    assert load_mulan(write(tmp_path, MIDDLE.format("m"), name)).target_names == ["z"]


def test_compression_is_told_by_the_first_bytes(tmp_path):
    write(tmp_path, xml_of("z"), "set.xml", gzip.compress)
    assert load_mulan(write(tmp_path, MIDDLE.format("m"), "set.arff.gz", bz2.compress)).target_names == ["z"]


def test_hierarchy_of_labels(tmp_path):
    xml = '<m:labels xmlns:m="u"><m:label name="z"><m:label name="y"/></m:label></m:labels>'
    write(tmp_path, xml, "file.xml")
    assert load_mulan(write(tmp_path, MIDDLE.format("m"))).target_names == ["y", "z"]


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_list_in_another_encoding_than_it_says(encoding, tmp_path):
    write(tmp_path, xml_of("größe &amp; mehr").encode(encoding), "file.xml")
    text = MIDDLE.format("m").replace(" z ", " 'größe & mehr' ")
    assert load_mulan(write(tmp_path, text)).target_names == ["größe & mehr"]


BROKEN = {
    "empty file": ("", "file.arff: there is no @data"),
    "no data": (HEAD.replace("@data\n", ""), "file.arff: there is no @data"),
    "no instances": (HEAD + "\n% none\n", "file.arff: there are no instances after @data"),
    "no attributes": ("@relation r\n@data\n1\n", "file.arff, line 2: @data, but no @attribute"),
    "not arff": ("a,b,c\n1,2,3\n", "file.arff, line 1: expected @relation, @attribute or @data, found 'a,b,c'"),
    "row in line of data": (HEAD.replace("@data", "@data 1,2,1"), "line 5: @data must stand alone"),
    "unknown type": (HEAD.replace("b numeric", "b number"), "line 3: unknown type 'number'"),
    "no type": (HEAD.replace("b numeric", "b % x"), "line 3: the type of attribute 'b' is missing"),
    "no name": (HEAD.replace("b numeric", ""), "line 3: @attribute without a name"),
    "relational": (HEAD.replace("b numeric", "b relational"), "line 3: attribute 'b' is relational, which is not"),
    "duplicate": (HEAD.replace(" b ", " 'a' "), "line 3: attribute 'a' is already declared on line 2"),
    "values not closed": (label("{0,1"), "line 4: the values of attribute 'y' are not closed"),
    "values nested": (label("{0,{1}"), "line 4: the values of attribute 'y' are not closed"),
    "no values": (label("{ }"), "line 4: attribute 'y' declares no value"),
    "value twice": (label("{0,1,'0'}"), "line 4: attribute 'y' declares the value '0' twice"),
    "quote in header": (HEAD.replace(" b ", " 'b "), "line 3: the quote 'b numeric has no end"),
    "quote in row": (HEAD + "1,2,0\n1,'2,0\n1,2,0\n", "line 7: the quote '2,0 has no end"),
    "escaped end": (HEAD + "1,2,'0\\'\n", "line 6: the quote '0\\' has no end"),
    "backslash at the end": (HEAD + "1,2,'0\\\n1,2,0'\n", "line 6: the quote '0\\ has no end"),
    "after a quote": (HEAD + "1,'2'3,0\n", "line 6: '3' follows a closing quote"),
    "empty value": (HEAD + "1,2,0\n\n1, ,0\n", "line 8: there is nothing before a comma; a missing value is written ?"),
    "leading comma": (HEAD + ",1,2,0\n", "line 6: there is nothing before a comma"),
    "too few": (HEAD + "1,2,0\n1,0\n1,2,0", "line 7: found 2 values, expected 3"),
    "too many": (HEAD + "1,2,0,0\n", "line 6: found 4 values, expected 3"),
    "cut off": (HEAD + "1,2,0\n1,", "line 7: found 1 values, expected 3"),
    "sparse, cut off": (HEAD + "{0 1}\n{0 1, 1", "line 7: the row is not closed by '}'; is the file cut off?"),
    "sparse, cut off later": (HEAD + "{0 1}\n{0 1,", "line 7: the row is not closed"),
    "dense, then sparse": (HEAD + "1,2,0\n{0 1}\n", "line 7: a sparse row, but the rows before it are dense"),
    "sparse, then dense": (HEAD + "{0 1}\r\n\r\n1,2,0\n", "line 8: a dense row, but the rows before it are sparse"),
    "weight": (HEAD + "1,2,0, {0.5}\n", "line 6: instance weights are not supported"),
    "weight, glued": (HEAD + "1,2,0{0.5}\n", "line 6: instance weights are not supported"),
    "weight, sparse": (HEAD + "{0 1}\n{0 1}, {2}\n", "line 7: instance weights are not supported"),
    "brace": (HEAD + "1,2},0\n", "line 6: unexpected '}'"),
    "brace, sparse": (HEAD + "{0 1, {1 2}}\n", "line 6: unexpected '{'"),
    "after a row": (HEAD + "{0 1} 2\n", "line 6: '2' follows the closing '}'"),
    "index no number": (HEAD + "{a 1}\n", "line 6: 'a' is not an index"),
    "index negative": (HEAD + "{-1 1}\n", "line 6: '-1' is not an index"),
    "index out of range": (
        HEAD + "{0 1}\n{0 1, 3 1}\n",
        "line 7: index 3 is out of range, there are 3 attributes (0 … 2)",
    ),
    "index huge": (HEAD + "{99999999999999999999999 1}\n", "line 6: index 99999999999999999999999 is out of range"),
    "index decreasing": (HEAD + "{1 1, 0 1}\n", "line 6: index 0 is out of order"),
    "index twice": (HEAD + "{1 1, 1 1}\n", "line 6: index 1 is out of order; indices must increase, and none"),
    "index alone": (HEAD + "{0, 1}\n", "line 6: there is no value after index 0"),
    "commas in sparse, cut off": (HEAD + "{,0 1,,", "line 6: the row is not closed by '}'; is the file cut off?"),
    "no number": (HEAD + "1,2,0\n1,two,0\n", "file.arff, line 7: attribute 'b' is 'two', expected a number"),
    "underscore": (HEAD + "1,1_0,0\n", "line 6: attribute 'b' is '1_0', expected a number"),
    "other digits": (HEAD + "1,٣,0\n", "line 6: attribute 'b' is '٣', expected a number"),
    "hexadecimal": (HEAD + "0x10,1,0\n", "line 6: attribute 'a' is '0x10', expected a number"),
    "no number, sparse": (HEAD + "{0 1}\n{}\n{1 x}\n", "line 8: attribute 'b' is 'x', expected a number"),
    "undeclared": (feature("{x,z}") + "y,1,0\n", "line 6: attribute 'a' is 'y', expected one of {x, z}"),
    "undeclared number": (feature("{3,4}") + "5,1,0\n", "line 6: attribute 'a' is '5', expected one of {3, 4}"),
    "bad date": (
        feature("date") + "1970-13-01T00:00:00,1,0\n",
        "line 6: attribute 'a' is '1970-13-01T00:00:00', expected a date as yyyy-MM-dd'T'HH:mm:ss",
    ),
    "bad date pattern": (
        feature("date 'yyyy-w'") + "1970-1,1,0\n",
        "line 2: attribute 'a': the date pattern 'yyyy-w' is not supported: 'w' is not",
    ),
    "date pattern twice": (
        feature("date 'd.d'") + "1.1,1,0\n",
        "line 2: attribute 'a': the date pattern 'd.d' is not supported: a field comes twice",
    ),
    "missing label": (HEAD + "1,2,0\n1,2,?\n", "line 7: label 'y' is missing, expected one of {0, 1}"),
    "missing label, sparse": (HEAD + "{0 1}\n{2 ?}\n", "line 7: label 'y' is missing"),
    "label of 2": (HEAD + "1,2,2\n", "line 6: label 'y' is '2', expected one of {0, 1}"),
    "numeric label of 2": (label("numeric") + "1,2,1\n1,2,2\n", "line 7: label 'y' is '2', expected 0 or 1"),
    "numeric label of 2, sparse": (
        label("numeric") + "{2 1}\n{0 1,2 2}\n",
        "line 7: label 'y' is '2', expected 0 or 1",
    ),
    "three values": (label("{0,1,2}"), "line 4: label 'y' is {0, 1, 2}; expected {0, 1}, {false, true}"),
    "mixed words": (label("{no,true}"), "line 4: label 'y' is {no, true}; expected {0, 1}"),
    "string label": (label("string"), "line 4: label 'y' is string; expected {0, 1}"),
    "first of two errors": (HEAD + "1,x,0\n1,2\n", "line 6: attribute 'b' is 'x'"),
}


@pytest.mark.parametrize("chunk", [16, 1 << 20])
@pytest.mark.parametrize("pack", PACKERS)
@pytest.mark.parametrize("case", BROKEN)
def test_broken_files(case, pack, chunk, tmp_path, monkeypatch):
    monkeypatch.setattr(arff_module, "BATCH_BYTES", chunk)
    text, message = BROKEN[case]
    with pytest.raises(InvalidDataset) as caught:
        load_mulan(write(tmp_path, text, pack=PACKERS[pack]), labels=-1)
    expected = message if message.startswith("file.arff") else f"file.arff, {message}"
    assert str(caught.value).startswith(expected)


@pytest.mark.parametrize("pack", ["gz", "bz2"])
def test_truncated_and_damaged_archives(pack, tmp_path):
    rows = "".join(f"{i},{i * i % 9973},1\n" for i in range(5000))
    whole = PACKERS[pack]((HEAD + rows).encode())
    with pytest.raises(InvalidDataset, match=r"^file\.arff: the compressed file is cut off before its end"):
        load(tmp_path, whole[: len(whole) // 2])
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 0xFF
    with pytest.raises(InvalidDataset, match=r"^file\.arff"):
        load(tmp_path, bytes(damaged))


@pytest.mark.parametrize(
    ("xml", "message"),
    [
        (xml_of("y", "Z"), "file.xml: label 'Z' is not an attribute of file.arff"),
        (xml_of("label"), "file.xml: label 'label' is not an attribute of file.arff; did you mean 'a label'?"),
        (xml_of("y", "a label", "y"), "file.xml, line 5: label 'y' is already on line 3"),
        (xml_of(), "file.xml: there is no <label> in it"),
        (xml_of("y", top="list"), "file.xml, line 2: expected <labels>, found <list>"),
        ("<labels>\n<label/></labels>", "file.xml, line 2: a <label> without a name"),
        ("<labels>\n<label name='y'>\n</labels>", "file.xml, line 3: not well-formed XML (mismatched tag)"),
        ("", "file.xml, line 1: not well-formed XML (no element found)"),
        (
            "<!DOCTYPE labels [\n<!ENTITY a 'y'>]>\n<labels><label name='&a;'/></labels>",
            "file.xml, line 2: entities are refused",
        ),
        (
            "<!DOCTYPE labels [\n<!ENTITY a SYSTEM 'file:///etc/hostname'>]>\n<labels>&a;</labels>",
            "file.xml, line 2: entities are refused",
        ),
    ],
)
def test_broken_lists(xml, message, tmp_path):
    write(tmp_path, xml, "file.xml")
    with pytest.raises(InvalidDataset) as caught:
        load_mulan(write(tmp_path, MIDDLE.format("m: -C 1").replace(" z ", " 'a label' ")))
    assert str(caught.value).startswith(message)
    assert str(caught.value).endswith(
        " (file.xml was read because it lies beside file.arff; pass xml= or labels= if its labels are not there)"
    )
    with pytest.raises(InvalidDataset, match=r"^file\.xml") as caught:
        load_mulan(tmp_path / "file.arff", xml=tmp_path / "file.xml")
    assert "lies beside" not in str(caught.value)


def test_no_list_at_all(tmp_path):
    message = (
        "set-train.arff.gz: no -C in the relation and none of set-train.xml, set-train.xml.gz, set-train.xml.bz2, "
        "set.xml, set.xml.gz, set.xml.bz2 beside it; pass xml= or labels= to name the labels"
    )
    with pytest.raises(InvalidDataset) as caught:
        load_mulan(write(tmp_path, MIDDLE.format("m"), "set-train.arff.gz"))
    assert str(caught.value) == message
    write(tmp_path, xml_of("z"), "other.xml")
    with pytest.raises(InvalidDataset, match=r"pass xml= \(other\.xml lies there\) or labels="):
        load_mulan(tmp_path / "set-train.arff.gz")


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        (0, InvalidDataset, "file.arff: labels=0 is no number of labels among 3 attributes"),
        (4, InvalidDataset, "file.arff: labels=4 is no number of labels among 3 attributes"),
        (["q"], InvalidDataset, "file.arff: label 'q' is not an attribute of file.arff"),
        ([], InvalidDataset, "file.arff: the list of labels is empty"),
        ("y", InvalidParameter, "labels is 'y'; expected a number or a list of names"),
        (True, InvalidParameter, "labels is True; expected a number or a list of names"),
    ],
)
def test_bad_labels(labels, error, message, tmp_path):
    with pytest.raises(error) as caught:
        load(tmp_path, MIDDLE.format("m"), labels=labels)
    assert str(caught.value).startswith(message)


def test_bad_count_in_the_relation(tmp_path):
    with pytest.raises(InvalidDataset, match=r"file\.arff: -C 7 in the relation is no number of labels"):
        load_mulan(write(tmp_path, MIDDLE.format("m: -C 7")))


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_mulan(tmp_path / "nowhere.arff")


@pytest.mark.parametrize(
    ("pattern", "text", "moment"),
    [
        ("yyyy-MM-dd", "2001-02-03", (2001, 2, 3)),
        ("yyyyMMdd", "20010203", (2001, 2, 3)),
        ("d/M/yy", "3/2/01", (2001, 2, 3)),
        ("d/M/yy", "3/2/69", (1969, 2, 3)),
        ("yyyy-MM-dd'T'HH:mm:ss.SSS", "2001-02-03T04:05:06.789", (2001, 2, 3, 4, 5, 6, 789000)),
        ("yyyy-MM-dd HH:mm:ssZ", "2001-02-03 04:05:06+0130", (2001, 2, 3, 2, 35, 6)),
        ("yyyy-MM-dd HH:mm:ssX", "2001-02-03 04:05:06Z", (2001, 2, 3, 4, 5, 6)),
        ("yyyy-MM-dd HH:mm z", "2001-02-03 04:05 GMT-01:00", (2001, 2, 3, 5, 5)),
        ("EEE, d MMM yyyy h:mm a", "Sat, 3 Feb 2001 12:30 AM", (2001, 2, 3, 0, 30)),
        ("MMMM d yyyy h a", "february 3 2001 11 pm", (2001, 2, 3, 23)),
        ("h 'o''clock' ''yyyy", "4 o'clock '2001", (2001, 1, 1, 4)),
        ("HH:mm", "01:02", (1970, 1, 1, 1, 2)),
    ],
)
def test_dates(pattern, text, moment, tmp_path):
    quoted = pattern.replace("'", "\\'"), text.replace("'", "\\'")
    content = HEAD.replace("a numeric", f"a date '{quoted[0]}'") + f"'{quoted[1]}',0,1\n"
    expected = datetime(*moment, tzinfo=UTC)
    assert load(tmp_path, content).data[0, 0] == expected.timestamp()
    frame = load(tmp_path, content, as_frame=True).data
    assert frame["a"][0] == pd.Timestamp(expected).tz_localize(None)


FRAME = (
    "@relation r\n@attribute when date yyyy-MM-dd\n@attribute name string\n@attribute colour {red,blue}\n"
    "@attribute size numeric\n@attribute y {0,1}\n@data\n"
)


def test_frames(tmp_path):
    bunch = load(tmp_path, FRAME + "2001-02-03,x,blue,1.5,1\n?,?,?,?,0\n", as_frame=True)
    assert list(bunch.data.columns) == bunch.feature_names == ["when", "name", "colour", "size"]
    assert bunch.data["when"].dtype.kind == "M"
    assert bunch.data["when"].isna().tolist() == [False, True]
    assert bunch.data["name"].tolist() == ["x", ""]
    assert list(bunch.data["colour"].cat.categories) == ["red", "blue"]
    assert bunch.data["colour"].isna().tolist() == [False, True]
    assert bunch.data["colour"][0] == "blue"
    assert bunch.data["size"][0] == 1.5
    pd.testing.assert_frame_equal(bunch.target, pd.DataFrame({"y": np.array([1, 0], np.uint8)}))


def test_sparse_frames(tmp_path):
    bunch = load(tmp_path, FRAME + "{1 x,2 blue,3 1.5}\n{0 1970-01-02,4 1}\n", as_frame=True)
    assert isinstance(bunch.data["size"].dtype, pd.SparseDtype)
    assert bunch.data["size"].tolist() == [1.5, 0]
    assert bunch.data["colour"].tolist() == ["blue", "red"]
    assert bunch.data["when"].tolist() == [pd.Timestamp("1970-01-01"), pd.Timestamp("1970-01-02")]
    assert bunch.data["name"].tolist() == ["x", ""]
    assert bunch.target["y"].tolist() == [0, 1]


def test_frames_need_pandas(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"as_frame needs pandas: pip install pandas"):
        load(tmp_path, HEAD + "1,2,0\n", as_frame=True)


@pytest.mark.parametrize("pack", PACKERS)
def test_progress(pack, tmp_path, capsys):
    path = write(tmp_path, HEAD + "1,2,0\n" * 1000, pack=PACKERS[pack])
    load_mulan(path, labels=-1)
    load_mulan(path, labels=-1, progress=False)
    assert capsys.readouterr().err == ""
    load_mulan(path, labels=-1, progress=True)
    shown = capsys.readouterr().err
    assert "file.arff" in shown
    assert "100%" in shown


def read_number(text):
    array = np.frombuffer(text.encode(), np.uint8)
    number, exact = _tokens.read_number(array, 0, len(array))
    return number if exact else float(text)


def same_bits(a, b):
    return struct.pack("<d", a) == struct.pack("<d", b)


SPECIAL = "1e-300 5e-324 1e400 -1e400 -0 +0 -0.0 +3 .5 5. -.5e1 1E5 1e+5 1e-5 0e0 1e22 1e23 1e-22 1e-23 123456789e-30"
SPECIAL += " 9007199254740992 9007199254740993 9007199254740993e-5 0.1 0.10000000000000000000 1.7976931348623157e308"
SPECIAL += " 2.2250738585072014e-308 00012.50 0.000000000000000000000000001 100000000000000000000000 8.5e00001 nan inf"


@pytest.mark.parametrize("text", SPECIAL.split())
def test_special_numbers(text):
    number = read_number(text)
    assert same_bits(number, float(text))


@pytest.mark.parametrize(
    "text", ["+", "-", ".", "e5", "1e", "1e+", "1e5.", "--1", "1-", "1.2.3", "1e5e5", "0x1", "1f", "-e"]
)
def test_what_is_no_number(text):
    array = np.frombuffer(text.encode(), np.uint8)
    assert not _tokens.read_number(array, 0, len(array))[1]


def random_numbers(rng, n):
    """Texts of numbers in all the ways they are written: repr, fixed, scientific, and digits at random."""
    for _ in range(n):
        yield repr(float(rng.normal() * 10.0 ** rng.integers(-30, 30)))
        yield f"{rng.normal():.{rng.integers(0, 12)}f}"
        yield f"{rng.normal():.{rng.integers(0, 18)}e}"
        digits = "".join(map(str, rng.integers(0, 10, rng.integers(1, 22))))
        point = rng.integers(0, len(digits) + 1)
        yield f"{rng.choice(['', '-', '+'])}{digits[:point]}.{digits[point:]}e{rng.integers(-40, 40)}"


def test_numbers_are_rounded_exactly():
    rng = np.random.default_rng(5)
    texts = list(random_numbers(rng, 20_000))
    arrays = [np.frombuffer(text.encode(), np.uint8) for text in texts]
    results = [_tokens.read_number(array, 0, len(array)) for array in arrays]
    exact = [same_bits(number, float(text)) for (number, known), text in zip(results, texts, strict=True) if known]
    assert all(exact)
    assert len(exact) > 20_000


def test_numbers_are_read_exactly_from_files(tmp_path):
    texts = [*SPECIAL.split(), *random_numbers(np.random.default_rng(6), 500)]
    bunch = load(tmp_path, HEAD + "".join(f"{text},{text},1\n" for text in texts))
    expected = np.array([[float(text)] * 2 for text in texts])
    np.testing.assert_array_equal(bunch.data.view(np.int64), expected.view(np.int64))


def quote(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r") + "'"


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6)
NUMBERS = st.floats(allow_nan=True, allow_infinity=True) | st.integers(-3, 3).map(float)


@st.composite
def tables(draw):
    """Names and declared values, and rows of a number, a nominal value, a text and a label."""
    n_columns = draw(st.integers(1, 4))
    names = draw(st.lists(NAMES, min_size=3 * n_columns, max_size=3 * n_columns, unique=True))
    values = draw(st.lists(NAMES.map("v".__add__), min_size=1, max_size=4, unique=True))
    cells = st.tuples(
        NUMBERS, st.sampled_from(values), st.text(NAMES.flatmap(st.sampled_from), max_size=5), st.booleans()
    )
    rows = draw(st.lists(st.lists(cells, min_size=n_columns, max_size=n_columns), min_size=1, max_size=6))
    return n_columns, names, values, rows


@given(tables(), st.booleans(), st.sampled_from([7, 50, 1 << 20]), st.sampled_from(["\n", "\r\n", "\r"]))
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_what_is_written_is_read(tmp_path, monkeypatch, table, as_sparse, chunk, line_end):
    n_columns, names, values, rows = table
    monkeypatch.setattr(arff_module, "BATCH_BYTES", chunk)
    types = ["numeric", "{" + " , ".join(map(quote, values)) + "}", "string"]
    lines = [f"@relation x -C {-n_columns}"]
    lines += [f"@attribute {quote(name)} {types[j % 3]}" for j, name in enumerate(names)]
    lines += [f"@attribute __label{j} {{0,1}}" for j in range(n_columns)] + ["@data"]
    for row in rows:
        fields = [field for x, v, s, _ in row for field in (repr(x).replace("nan", "?"), quote(v), quote(s))]
        fields += [str(int(y)) for *_, y in row]
        left_out = ("0.0", quote(values[0]), "''", "0")
        stored = [f"{j} {field}" for j, field in enumerate(fields) if field not in left_out]
        lines.append("{" + ",".join(stored) + "}" if as_sparse else ",".join(fields))
    bunch = load_mulan(write(tmp_path, line_end.join(lines)))
    assert sparse.issparse(bunch.data) == as_sparse
    expected = [[z for x, v, _, _ in row for z in (x, values.index(v))] for row in rows]
    np.testing.assert_array_equal(dense(bunch.data), np.array(expected, float))
    np.testing.assert_array_equal(bunch.target, [[y for *_, y in row] for row in rows])
    assert bunch.feature_names == [name for j, name in enumerate(names) if j % 3 != 2]
    for j in range(n_columns):
        assert list(bunch.strings[names[3 * j + 2]]) == [row[j][2] for row in rows]


# Instances, features, labels, the label cardinality as it is published, and how far that may be off: for emotions it is
# printed as 1.869, and is 1108/593 = 1.8685.
PUBLISHED = {
    "CAL500/cal500": (502, 68, 174, 26.04, 0.005),
    "emotions/emotions": (593, 72, 6, 1.869, 0.001),
    "scene/scene": (2407, 294, 6, 1.074, 0.0005),
    "yeast/yeast": (2417, 103, 14, 4.237, 0.0005),
    "bibtex/bibtex": (7395, 1836, 159, 2.40, 0.005),
    "delicious/delicious": (16105, 500, 983, 19.02, 0.005),
    "enron/enron": (1702, 1001, 53, 3.378, 0.0005),
    "birds/birds": (645, 260, 19, 1.014, 0.0005),
}


@needs_data
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_files(name):
    n, n_features, n_labels, cardinality, tolerance = PUBLISHED[name]
    bunch = load_mulan(DATA / f"{name}.arff.gz")
    assert bunch.data.shape == (n, n_features)
    assert bunch.target.shape == (n, n_labels)
    assert bunch.target.sum(1).mean() == pytest.approx(cardinality, abs=tolerance)
    assert sparse.issparse(bunch.data) == (name.partition("/")[0] in ("bibtex", "delicious", "enron"))
    assert not np.isnan(bunch.data.data if sparse.issparse(bunch.data) else bunch.data).any()


def multiset(*bunches):
    """Rows of features and labels, in an order that depends on nothing but them."""
    rows = np.concatenate([np.hstack([dense(bunch.data), bunch.target]) for bunch in bunches])
    return rows[np.lexsort(rows.T)]


@pytest.mark.slow
@needs_data
@pytest.mark.parametrize("name", [name for name in PUBLISHED if "cal500" not in name])
def test_published_splits_are_the_whole(name):
    whole, train, test = (load_mulan(DATA / f"{name}{part}.arff.gz") for part in ("", "-train", "-test"))
    assert whole.feature_names == train.feature_names == test.feature_names
    assert whole.target_names == train.target_names == test.target_names
    np.testing.assert_array_equal(multiset(train, test), multiset(whole))


@needs_data
@pytest.mark.parametrize(("name", "n"), [("small", 2500), ("reduced-train", 1500), ("reduced-test", 500)])
def test_published_samples(name, n):
    folder = DATA / "mediamill-sample"
    bunch = load_mulan(folder / f"mediamill_{name}.arff.gz", xml=folder / "mediamill.xml.gz")
    assert bunch.data.shape == (n, 120)
    assert bunch.target.shape == (n, 101)
    assert 4.2 < bunch.target.sum(1).mean() < 4.5


@needs_data
def test_published_file_whose_list_has_another_name():
    folder = DATA / "langlog"
    bunch = load_mulan(folder / "llog.arff.gz", xml=folder / "langlog.xml.gz")
    assert (*bunch.data.shape, bunch.target.shape[1]) == (1460, 1004, 75)
    assert bunch.target.sum(1).mean() == pytest.approx(1.180, abs=0.0005)
    with pytest.raises(InvalidDataset, match=r"xml= \(langlog\.xml\.gz lies there\)"):
        load_mulan(folder / "llog.arff.gz")


@needs_data
@pytest.mark.parametrize("name", ["emotions", "yeast"])
def test_against_a_naive_reader(name):
    lines = gzip.decompress((DATA / name / f"{name}.arff.gz").read_bytes()).decode().splitlines()
    names = [line.split()[1] for line in lines if line.lower().startswith("@attribute")]
    rows = [line.split(",") for line in lines if line.strip() and line[0] not in "@%"]
    table = np.array([[float(field) for field in row] for row in rows])
    bunch = load_mulan(DATA / name / f"{name}.arff.gz")
    np.testing.assert_array_equal(bunch.data, table[:, [names.index(feature) for feature in bunch.feature_names]])
    np.testing.assert_array_equal(bunch.target, table[:, [names.index(label) for label in bunch.target_names]])


@needs_data
@pytest.mark.parametrize("name", ["emotions/emotions", "bibtex/bibtex-test"])
def test_chunks_do_not_matter(name, monkeypatch):
    whole = load_mulan(DATA / f"{name}.arff.gz")
    monkeypatch.setattr(arff_module, "BATCH_BYTES", 997)
    pieces = load_mulan(DATA / f"{name}.arff.gz")
    np.testing.assert_array_equal(dense(pieces.data), dense(whole.data))
    np.testing.assert_array_equal(pieces.target, whole.target)
