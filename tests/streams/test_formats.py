"""The registry of file formats: what it says of each format is true of its files."""

import numpy as np
import pytest
from scipy import sparse

from abstain import InvalidDataset, InvalidOutput
from abstain.streams import open_sources
from abstain.streams._formats.base import ArrayFormat, ColumnFormat
from abstain.streams._formats.registry import (
    FORMATS,
    N_SIGNATURE_BYTES,
    REGISTERED,
    find_format,
    format_by_content,
    format_called,
    format_of,
    list_endings,
    list_names,
    require_content,
)
from abstain.streams._tables import Table, read_table, write_table

P = np.random.default_rng(0).random((60, 4)).round(3)
NAMES = ("sky", "sea", "sun", "sand")


def test_every_ending_has_one_format():
    assert len(FORMATS) == sum(len(known.endings) for known in REGISTERED)
    assert list_endings() == ".csv, .csv.gz, .parquet, .arrow, .feather, .ipc, .arrows, .npy, .npz"
    assert list_names(only_streamable=True) == "csv, csv.gz, arrows"
    assert list_names(only_columns=True) == "csv, csv.gz, parquet, arrow, arrows"
    for known in REGISTERED:
        assert isinstance(known, ColumnFormat | ArrayFormat)
        assert known.endings[0] == f".{known.name}"
        assert format_called(known.name) is format_called(known.endings[-1]) is known


@pytest.mark.parametrize("ending", FORMATS)
def test_files_begin_as_the_registry_says(ending, tmp_path):
    file = tmp_path / f"P{ending.upper()}"
    write_table(Table(P, NAMES), file)
    head = file.read_bytes()[:N_SIGNATURE_BYTES]
    assert find_format(file.name) is format_of(file) is format_by_content(head) is FORMATS[ending]
    require_content(head, FORMATS[ending])
    for other in REGISTERED:
        if other is not FORMATS[ending] and FORMATS[ending].magic:
            with pytest.raises(InvalidDataset, match=f"is not {other.name}, but "):
                require_content(head, other)


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.usefixtures("small_sizes")
def test_whole_table_is_that_of_all_batches(ending, named, tmp_path):
    ids = [f"r{i}" for i in range(len(P))] if named else None
    write_table(Table(P, NAMES if named else None, ids), tmp_path / f"p{ending}")
    whole, sources = read_table(tmp_path / f"p{ending}"), open_sources(tmp_path / f"p{ending}")
    batches = list(sources.batches())
    assert len(batches) > 1
    np.testing.assert_array_equal(whole.values, P)
    np.testing.assert_array_equal(np.concatenate([batch.table.values for batch in batches]), P)
    assert whole.label_names == sources.label_names == (NAMES if named and FORMATS[ending].names_rows else None)
    if not named or not FORMATS[ending].names_rows:
        assert whole.index is None
        assert {batch.ids for batch in batches} == {None}
    else:
        assert list(whole.index) == [name for batch in batches for name in batch.ids] == ids


@pytest.mark.parametrize("ending", FORMATS)
def test_sparse_tables_stay_so_where_the_registry_says(ending, tmp_path):
    write_table(Table(sparse.csr_array(np.where(P < 0.5, 0, P)), NAMES), tmp_path / f"p{ending}")
    assert sparse.issparse(read_table(tmp_path / f"p{ending}").values) == FORMATS[ending].holds_sparse


@pytest.mark.parametrize("ending", FORMATS)
def test_tables_without_rows(ending, tmp_path):
    write_table(Table(np.empty((0, 4)), NAMES), tmp_path / f"p{ending}")
    assert read_table(tmp_path / f"p{ending}").shape == (0, 4)
    assert list(open_sources(tmp_path / f"p{ending}").batches()) == []


def test_unknown_formats():
    assert find_format("notes.txt") is None
    with pytest.raises(InvalidDataset, match=r"there is no format 'xlsx'; expected one of csv, csv\.gz, parquet"):
        format_called("xlsx")
    with pytest.raises(InvalidOutput, match="there is no format 'xlsx'"):
        format_called("xlsx", InvalidOutput)
    with pytest.raises(InvalidDataset, match=r"is not csv, but an Excel file \(\.xls\); save the table as CSV"):
        require_content(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", FORMATS[".csv"])
