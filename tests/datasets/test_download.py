"""Fetching data sets, from a real server that behaves in all the ways servers do."""

import dataclasses
import gc
import gzip
import hashlib
import json
import logging
import multiprocessing
import re
import sys
import threading
import time
from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import pandas as pd
import pooch
import pytest
from scipy import sparse
from sklearn.utils import Bunch
from tests.support.data import DATA, needs_data

from abstain._utils.errors import DownloadFailed, InvalidDataset, InvalidParameter
from abstain.datasets import _download
from abstain.datasets._download import fetch
from abstain.datasets._registry import DATASETS, Dataset, File

ARFF = (
    b"@relation tiny\n@attribute x numeric\n@attribute y numeric\n@attribute sky {0,1}\n@attribute sea {0,1}\n@data\n"
)
ARFF += b"0.5,1,1,0\n0.25,2,0,1\n0.125,3,1,1\n" + b"% padding, so that there is something to break off\n" * 2000
XML = (
    b'<labels xmlns="http://mulan.sourceforge.net/labels"><label name="sky"></label><label name="sea"></label></labels>'
)
FILES = {"tiny.arff": ARFF, "tiny.xml": XML}


OPENML_ARFF = ARFF.replace(b"{0,1}", b"{FALSE,TRUE}").split(b"@data")[0]
OPENML_ARFF += b"@data\n0.5,1,TRUE,FALSE\n0.25,2,FALSE,TRUE\n0.125,3,TRUE,TRUE\n"


def feature(index, name, kind, is_target):
    flags = {"is_target": is_target, "is_ignore": "false", "is_row_identifier": "false"}
    return {"index": str(index), "name": name, "data_type": kind, "number_of_missing_values": "0", **flags}


OPENML = {
    "/openml/api/v1/json/data/12345": {
        "data_set_description": {
            "id": "12345",
            "name": "tiny",
            "version": "1",
            "description": "",
            "format": "ARFF",
            "status": "active",
            "url": "https://www.openml.org/data/v1/download/1/tiny.arff",
            "file_id": "1",
            "md5_checksum": hashlib.md5(OPENML_ARFF).hexdigest(),
        }
    },
    "/openml/api/v1/json/data/features/12345": {
        "data_features": {
            "feature": [
                *(feature(j, name, "numeric", "false") for j, name in enumerate(["x", "y"])),
                *(feature(j, name, "nominal", "true") for j, name in enumerate(["sky", "sea"], 2)),
            ]
        }
    },
    "/openml/api/v1/json/data/qualities/12345": {
        "data_qualities": {"quality": [{"name": "NumberOfInstances", "value": "3.0"}]}
    },
}


class Handler(BaseHTTPRequestHandler):
    """The first part of the path says how to behave, the last which file is meant."""

    def do_GET(self):
        self.server.requests.append(self.path)
        if self.path.startswith("/openml/"):
            self.answer_as_openml()
            return
        _, how, file = self.path.split("/")
        body = FILES[file]
        if how == "redirected":
            self.send_response(302)
            self.send_header("Location", f"/good/{file}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if how in ("missing", "busy") or (how == "moody" and len(self.server.requests) == 1):
            self.send_error(404 if how == "missing" else 503)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if how == "corrupted":
            body = body.replace(b"0", b"1").replace(b"sky", b"sly")
        if how in ("truncated", "stalled", "interrupted"):
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            if how == "stalled":
                self.server.released.wait(20)
            return
        self.wfile.write(body)

    def answer_as_openml(self):
        if self.path not in OPENML and not self.path.endswith(".arff"):
            self.send_error(503)
            return
        body = json.dumps(OPENML[self.path]).encode() if self.path in OPENML else OPENML_ARFF
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.requests, running.released = [], threading.Event()
        running.url = f"http://127.0.0.1:{running.server_address[1]}"
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield running
        running.released.set()
        running.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(_download, "RETRY_DELAY", 0.01)
    for variable in ("ABSTAIN_DATA", "ABSTAIN_CACHE"):
        monkeypatch.delenv(variable, raising=False)


def tiny(*servers, hashed=True, openml=None, name="tiny"):
    files = tuple(
        File(
            file,
            hashlib.sha256(body).hexdigest() if hashed else None,
            len(body),
            tuple(f"{server}/{file}" for server in servers),
        )
        for file, body in FILES.items()
    )
    return Dataset(name, 3, 2, 2, files, openml)


@pytest.fixture
def offer(monkeypatch):
    """Make the tiny data set the only one, on these servers."""

    def register(*servers, **options):
        dataset = tiny(*servers, **options)
        monkeypatch.setattr(_download, "DATASETS", {dataset.name: dataset})
        return dataset

    return register


def require_tiny(bunch):
    np.testing.assert_array_equal(bunch.data, [[0.5, 1], [0.25, 2], [0.125, 3]])
    np.testing.assert_array_equal(bunch.target, [[1, 0], [0, 1], [1, 1]])
    assert bunch.target.dtype == np.uint8
    assert list(bunch.feature_names) == ["x", "y"]
    assert list(bunch.target_names) == ["sky", "sea"]


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("how", ["good", "redirected", "moody"])
@pytest.mark.parametrize("progress", [None, True])
def test_fetched_once_then_kept(how, progress, server, offer, tmp_path, capfd):
    offer(f"{server.url}/{how}")
    require_tiny(fetch("tiny", folder=tmp_path, progress=progress))
    assert files_in(tmp_path) == ["tiny/tiny.arff", "tiny/tiny.xml"]
    asked = len(server.requests)
    require_tiny(fetch("tiny", folder=tmp_path))
    assert len(server.requests) == asked
    assert ("100%" in capfd.readouterr().err) == bool(progress)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "reason", "asked"),
    [
        ("missing", "answered 404 Not Found", 1),
        ("busy", "answered 503 Service Unavailable", 3),
        ("corrupted", "has another file: its sha256 is not [0-9a-f]{64}", 1),
        ("truncated", "the connection failed .*IncompleteRead", 3),
        ("stalled", "no answer within 0.2 s", 3),
    ],
)
def test_bad_home(how, reason, asked, server, offer, tmp_path, monkeypatch):
    monkeypatch.setattr(_download, "TIMEOUT", 0.2)
    dataset = offer(f"{server.url}/{how}")
    with pytest.raises(
        DownloadFailed, match=f"tiny.arff could not be fetched:\n  {server.url}/{how}/tiny.arff: {reason}"
    ):
        fetch("tiny", folder=tmp_path)
    assert len(server.requests) == asked
    assert files_in(tmp_path) == []
    with pytest.raises(DownloadFailed, match=re.escape(str(tmp_path / "tiny" / "tiny.arff"))):
        fetch("tiny", folder=tmp_path)
    offer(*(url.removesuffix("/tiny.arff") for url in dataset.files[0].urls), f"{server.url}/good")
    require_tiny(fetch("tiny", folder=tmp_path))


def test_without_a_known_checksum_a_broken_off_file_is_noticed_all_the_same(server, offer, tmp_path):
    offer(f"{server.url}/truncated", f"{server.url}/good", hashed=False)
    require_tiny(fetch("tiny", folder=tmp_path))


@pytest.mark.parametrize("how", ["good", "busy"])
def test_attempts_are_not_announced_one_by_one(how, server, offer, tmp_path):
    said = []
    handler = logging.Handler()
    handler.emit = said.append
    logger = pooch.get_logger()
    level = logger.level
    logger.addHandler(handler)
    offer(f"{server.url}/{how}", hashed=False)
    with nullcontext() if how == "good" else pytest.raises(DownloadFailed):
        fetch("tiny", folder=tmp_path)
    logger.removeHandler(handler)
    assert said == []
    assert logger.level == level


def test_server_gone(server, offer, tmp_path):
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as closed:
        gone = f"http://127.0.0.1:{closed.server_address[1]}"
    offer(gone)
    with pytest.raises(DownloadFailed, match="the connection failed"):
        fetch("tiny", folder=tmp_path)
    offer(gone, f"{server.url}/good")
    require_tiny(fetch("tiny", folder=tmp_path))


def test_interrupted_download_leaves_nothing(server, offer, tmp_path, monkeypatch):
    import pooch

    real = pooch.HTTPDownloader.__call__

    def interrupted(self, url, output_file, *arguments, **options):
        Path(output_file).write_bytes(ARFF[:100])
        raise KeyboardInterrupt

    offer(f"{server.url}/good")
    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch("tiny", folder=tmp_path)
    assert files_in(tmp_path) == []
    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", real)
    require_tiny(fetch("tiny", folder=tmp_path))


def _fetch_elsewhere(home, folder, results):
    _download.DATASETS = {"tiny": tiny(home)}
    results.put(fetch("tiny", folder=folder).target.sum())


@pytest.mark.slow
def test_two_processes_at_once(server, tmp_path):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    both = [context.Process(target=_fetch_elsewhere, args=(f"{server.url}/good", tmp_path, results)) for _ in range(2)]
    for process in both:
        process.start()
    assert [int(results.get(timeout=600)) for _ in both] == [4, 4]
    for process in both:
        process.join()
    assert files_in(tmp_path) == ["tiny/tiny.arff", "tiny/tiny.xml"]


@pytest.mark.slow
def test_killed_process_leaves_no_half_file(server, offer, tmp_path):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    process = context.Process(target=_fetch_elsewhere, args=(f"{server.url}/stalled", tmp_path, results))
    process.start()
    while not any(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()):
        time.sleep(0.02)
        assert process.is_alive()
    process.kill()
    process.join()
    assert "tiny/tiny.arff" not in files_in(tmp_path)
    offer(f"{server.url}/good")
    require_tiny(fetch("tiny", folder=tmp_path))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("variable", [None, "ABSTAIN_CACHE", "ABSTAIN_DATA"])
def test_files_put_there_by_hand(packed, variable, offer, tmp_path, monkeypatch):
    offer()
    folder = tmp_path / "TINY"
    folder.mkdir()
    for file, body in FILES.items():
        (folder / (file.upper() + ".gz" if packed else file)).write_bytes(gzip.compress(body) if packed else body)
    if variable is not None:
        monkeypatch.setenv(variable, str(tmp_path))
    require_tiny(
        fetch("tiny", folder=None if variable == "ABSTAIN_CACHE" else tmp_path if variable is None else "void")
    )


@pytest.mark.parametrize("packed", [False, True])
def test_wrong_file_in_the_folder_is_refused(packed, server, offer, tmp_path):
    dataset = offer(f"{server.url}/good")
    file = tmp_path / "tiny" / ("tiny.arff.gz" if packed else "tiny.arff")
    file.parent.mkdir()
    wrong = ARFF + b"1,1,1,1\n"
    file.write_bytes(gzip.compress(wrong) if packed else wrong)
    found, expected = hashlib.sha256(wrong).hexdigest(), dataset.files[0].sha256
    with pytest.raises(InvalidDataset, match=f"{re.escape(str(file))}: .* {found}, expected {expected}; delete it"):
        fetch("tiny", folder=tmp_path)
    file.write_bytes(file.read_bytes()[:60])
    with pytest.raises(InvalidDataset, match=f"{re.escape(str(file))}: .*; delete it"):
        fetch("tiny", folder=tmp_path)
    assert server.requests == []
    file.unlink()
    require_tiny(fetch("tiny", folder=tmp_path))


def test_another_list_of_labels_is_noticed(server, offer, tmp_path, monkeypatch):
    offer(f"{server.url}/good", hashed=False)
    monkeypatch.setitem(FILES, "tiny.xml", XML.replace(b'<label name="sea"></label>', b""))
    with pytest.raises(InvalidDataset, match=r"tiny\.xml: gives tiny \(3, 1\) instances × labels, expected \(3, 2\)"):
        fetch("tiny", folder=tmp_path)


@pytest.fixture
def openml(server, monkeypatch):
    """scikit-learn takes our server for OpenML's."""

    def here(request, *arguments, **options):
        return urlopen(re.sub(r"https?://[^/]+", f"{server.url}/openml", request.full_url), *arguments, **options)

    monkeypatch.setattr("sklearn.datasets._openml.urlopen", here)


@pytest.mark.parametrize("as_frame", [False, True])
def test_openml_when_nothing_else_answers(as_frame, server, openml, offer, tmp_path):
    offer(f"{server.url}/missing", openml=12345)
    for _ in range(2):
        bunch = fetch("tiny", folder=tmp_path, as_frame=as_frame)
        assert isinstance(bunch.target, pd.DataFrame) == as_frame
        require_tiny(Bunch(**(bunch | {"data": np.asarray(bunch.data), "target": np.asarray(bunch.target)})))
    assert server.requests.count("/openml/data/v1/download/1/tiny.arff") == 1


def test_another_data_set_at_openml_is_noticed(server, openml, offer, tmp_path, monkeypatch):
    dataset = offer(f"{server.url}/missing", openml=12345)
    monkeypatch.setattr(_download, "DATASETS", {"tiny": dataclasses.replace(dataset, n_labels=3)})
    with pytest.raises(InvalidDataset, match=r"https://www.openml.org/d/12345: gives tiny \(3, 2\)"):
        fetch("tiny", folder=tmp_path)


@pytest.mark.slow
def test_openml_fails_too(server, openml, offer, tmp_path):
    offer(f"{server.url}/missing", openml=54321)
    with pytest.raises(DownloadFailed) as caught:
        fetch("tiny", folder=tmp_path)
    gc.collect()  # what is left open would be noticed here
    lines = str(caught.value).splitlines()
    assert lines[0] == "tiny: tiny.arff could not be fetched:"
    assert lines[1] == f"  {server.url}/missing/tiny.arff: answered 404 Not Found"
    assert lines[2] == "  https://www.openml.org/d/54321: HTTP Error 503: Service Unavailable"
    assert lines[3].endswith(str(tmp_path / "tiny" / "tiny.arff"))


def test_names(server, offer, tmp_path):
    offer(f"{server.url}/good", name="Tiny-Set")
    for name in ("tiny-set", "TINY_SET", "Tiny-Set"):
        require_tiny(fetch(name, folder=tmp_path))
    with pytest.raises(InvalidParameter, match=r"there is no data set 'tinny-set'; did you mean 'Tiny-Set'\?"):
        fetch("tinny-set")
    with pytest.raises(InvalidParameter, match="there is no data set 7 \\(there are Tiny-Set"):
        fetch(7)


def test_without_pooch(offer, tmp_path, monkeypatch):
    offer("http://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "pooch", None)
    for folder in (tmp_path, None):
        with pytest.raises(ImportError, match=r"pip install pooch"):
            fetch("tiny", folder=folder)


def test_registry_is_sound():
    assert list(DATASETS)[:6] == ["CAL500", "emotions", "scene", "yeast", "mediamill", "nus-wide"]
    for name, dataset in DATASETS.items():
        assert dataset.name == name
        assert [Path(file.name).suffix for file in dataset.files] == [".arff", ".xml"]
        assert all(url.startswith("https://") for url in dataset.urls)
        assert len(set(dataset.urls)) == len(dataset.urls)
        arff, xml = dataset.files
        assert re.fullmatch("[0-9a-f]{64}", arff.sha256)
        assert xml.sha256 is None or re.fullmatch("[0-9a-f]{64}", xml.sha256)
        with pytest.raises(dataclasses.FrozenInstanceError):
            dataset.name = "other"


@needs_data
@pytest.mark.parametrize("name", ["CAL500", "emotions", "scene", "yeast", "bibtex", "delicious"])
def test_registry_agrees_with_the_published_files(name, tmp_path, monkeypatch):
    monkeypatch.setenv("ABSTAIN_DATA", str(DATA))
    dataset, bunch = DATASETS[name], fetch(name, folder=tmp_path)
    assert bunch.data.shape == (dataset.n_instances, dataset.n_features)
    assert bunch.target.shape == (dataset.n_instances, dataset.n_labels)
    assert sparse.issparse(bunch.data) == (name in ("bibtex", "delicious"))
    for file in dataset.files:
        (path,) = _download._matching_files(DATA, dataset, file)
        assert len(gzip.decompress(path.read_bytes())) == file.size
