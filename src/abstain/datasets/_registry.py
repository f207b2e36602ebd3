"""The published multi-label data sets: their sizes, and the URLs and checksums of their files.

The MULAN project keeps its files in its public repository; a second repository keeps copies of them (large files by
their sha256), pinned here to the commit that added them. A checksum is that of the unpacked file, so that it is the
same for every URL, packed or not.
"""

from dataclasses import dataclass
from types import MappingProxyType

MULAN = "https://raw.githubusercontent.com/tsoumakas/mulan/master/data/multi-label"
MIRROR = "https://github.com/mrapp-ke/Boomer-Datasets/raw"
OPENML = "https://www.openml.org/d"


@dataclass(frozen=True)
class File:
    """A file of a data set: its name, its sha256 and its size in bytes, if they are known, and its URLs."""

    name: str
    sha256: str | None
    size: int | None
    urls: tuple[str, ...]


@dataclass(frozen=True)
class Dataset:
    """A published multi-label data set: its size, its ARFF and XML file, and its id at OpenML if it is there too."""

    name: str
    n_instances: int
    n_features: int
    n_labels: int
    files: tuple[File, ...]
    openml: int | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """The numbers of instances, features and labels."""
        return self.n_instances, self.n_features, self.n_labels

    @property
    def urls(self) -> tuple[str, ...]:
        """The URLs of all files, in the order in which they are tried."""
        urls = tuple(url for file in self.files for url in file.urls)
        return urls if self.openml is None else (*urls, f"{OPENML}/{self.openml}")


def _dataset(
    name: str,
    shape: tuple[int, int, int],
    *,
    arff: tuple[str, int],
    commit: str,
    xml_commit: str = "main",
    xml: tuple[str, int] | tuple[None, None] = (None, None),
    mulan: tuple[str, ...] = (),
    stem: str | None = None,
    openml: int | None = None,
) -> Dataset:
    """Return a data set with copies at a commit of the mirror; `mulan` are its paths in MULAN's repository."""
    stem = stem or name.lower()
    files = []
    for suffix, (sha256, size), at in ((".arff", arff, commit), (".xml", xml, xml_commit)):
        originals = tuple(f"{MULAN}/{path}" for path in mulan if path.endswith(suffix))
        files.append(File(stem + suffix, sha256, size, (*originals, f"{MIRROR}/{at}/{stem}{suffix}")))
    return Dataset(name, *shape, tuple(files), openml)


_ALL = (
    _dataset(
        "CAL500",
        (502, 68, 174),
        arff=("cfe6097ba5fd6e8584e54911ab9783dcab34e898446b7c9370c71d477eae56d3", 492_857),
        xml=("877e128531268d7661faa3e44f7bb43cbcda829c0895e49879168775b192728c", 7_901),
        mulan=("cal500/cal500.arff", "cal500/cal500.xml"),
        commit="fb12e0c02e62e7d4a94c5f1f26ba5a66c2f3d674",
    ),
    _dataset(
        "emotions",
        (593, 72, 6),
        arff=("6f2f790047073d1293ac0872c0d55f2dc98b6177802fc96c6b66b309dfee1e4b", 380_476),
        xml=("dbce8e6ccbbb2fcbfd9e9edbb230d7ed12692c6e13f59fdbc0161fa9b6cf2dc0", 323),
        mulan=("emotions/emotions.arff", "emotions/emotions.xml"),
        commit="082dba2665d701ce74a1291ad3809da789fa5c96",
        openml=40589,
    ),
    _dataset(
        "scene",
        (2407, 294, 6),
        arff=("5905548975b69b639ab31a295f7bf1ab7379a3f016450012722d28f660f4b143", 6_210_984),
        xml=("55d8b247b949ad5c52e5a73d8c6775ec6e5469ce9682465b45b333b68ee4bcc5", 285),
        mulan=("scene/scene.arff", "scene/scene.xml"),
        commit="e9738dbfd6631fb2e3a1c51807b598c04eb38133",
        openml=40595,
    ),
    _dataset(
        "yeast",
        (2417, 103, 14),
        arff=("55c07a3b6ff885ae338fb6987a1d57f55572b29809922c2822c4885c61230dd7", 2_416_688),
        xml=("c3056cc26444b5158b1588d1b73bec9c45429e10f0957ad085903423cb81f247", 526),
        mulan=("yeast/yeast.arff", "yeast/yeast.xml"),
        commit="73db96cbcc8cc8891830fc86827617e4a8e7f033",
        openml=40597,
    ),
    _dataset(
        "mediamill",
        (43_907, 120, 101),
        arff=("ad7e629d599ac1c80dfabe32fb9f18be28accd8e902515a461497bc48760a72b", 55_708_920),
        commit="9d76f26050aea32aea6d255365146b7990db838e",
    ),
    _dataset(
        "nus-wide",
        (269_648, 128, 81),
        arff=("de774631a5404704471648c538369767390525bd791ab7a4f863f45cced81c31", 367_912_118),
        xml=("a9eea143406e7a83cdf489951d2d853a29e53beae1a1096e3d4671e81dad1e02", 2_495),
        stem="nus-wide-cvladplus",
        commit="029b0073d4591b82c219ed828600258b18e658b2",
        xml_commit="029b0073d4591b82c219ed828600258b18e658b2",
    ),
    _dataset(
        "bibtex",
        (7395, 1836, 159),
        arff=("a282a6d1fb3cdaf39bde3f81cd4e6079850a7a538a6bc44f8b4ed95dfe1e5014", 3_457_832),
        xml=("08fe20013c1e75dcf1888c185f5187c95e76495b8518ce289b4d3afce38d1232", 5_880),
        mulan=("bibtex/bibtex.arff", "bibtex/bibtex.xml"),
        commit="e925d705fe09f4ce593cf162e953862d8a0cee76",
    ),
    _dataset(
        "birds",
        (645, 260, 19),
        arff=("07c0f4f504458b8f1064371bde126371fe501886d8c684b5b5199fd9e2e1ff9a", 1_071_491),
        mulan=("birds/birds.xml",),
        commit="26b2b9064ffe1f59672cde9ad16ad813173a9f00",
        openml=40588,
    ),
    _dataset(
        "bookmarks",
        (87_856, 2150, 208),
        arff=("5ce6788f4ed7704bb9b0f474b504c840055c68380f94f2889bc1e2a36bf5efd8", 73_273_832),
        mulan=("bookmarks/bookmarks.arff", "bookmarks/bookmarks.xml"),
        commit="f63ee4f1975b4090216d4696532c843c3be226b4",
    ),
    _dataset(
        "corel5k",
        (5000, 499, 374),
        arff=("1c1a6055ca5dda024c8e88a00c68710b9f0acd54a0c1df7f2406ee2ea56565dd", 8_752_766),
        mulan=("corel5k/Corel5k.arff", "corel5k/Corel5k.xml"),
        commit="2b624ec1e489d536358c019abe1a6d9acfefee62",
    ),
    _dataset(
        "delicious",
        (16_105, 500, 983),
        arff=("b944de0bca910050c11d97eed57d17b073110ea3646a587f3d15d127cf581aab", 3_773_732),
        xml=("4e0c0f93c7d86a39b9fca4aaefaa00e9428f2c80277732dfbf03ca48e2c14da2", 34_303),
        mulan=("delicious/delicious.arff", "delicious/delicious.xml"),
        commit="db86cef9af5ef1d01f5554e689e790a3e1a0637b",
    ),
    _dataset(
        "enron",
        (1702, 1001, 53),
        arff=("d0889ef0576d4e7b5ec0df3b3e4760e476ac11a6e7d7ddeee4c4a34470dedf97", 906_705),
        mulan=("enron/enron.arff", "enron/enron.xml"),
        commit="91950e2fd9fb199df84f0c045fde589fa5ec46c5",
        openml=40590,
    ),
    _dataset(
        "flags",
        (194, 19, 7),
        arff=("d3ed8b5683f1b27e68069aad2c29388bb57d4caa5041b559e646cc3854a0cd1e", 11_281),
        mulan=("flags/flags.xml",),
        commit="3fbea72b3d39a7d1279cce111f9e80628e0f04fa",
    ),
    _dataset(
        "genbase",
        (662, 1186, 27),
        arff=("a220a552ebecdd8d965fd67c92f8499d5d6e394a0716dd92641d376684a083c3", 263_852),
        mulan=("genbase/genbase.xml",),
        commit="09993d699da741afea716cd9aba39fb8dee2804c",
        openml=40591,
    ),
    _dataset(
        "medical",
        (978, 1449, 45),
        arff=("3429996af8ffdcf1cbfc231d19a95ee2c1da036175c900d615f87e10bda22444", 240_417),
        mulan=("medical/medical.xml",),
        commit="c311f86fc23c7a5684751938ee5d32690c3ebbb6",
    ),
    _dataset(
        "tmc2007",
        (28_596, 49_060, 22),
        arff=("70751ccc3a6ac8c78f1bcd4b4442c790baefbad458bc45bae1c6deb743ec0458", 25_593_600),
        mulan=("tmc2007/tmc2007.xml",),
        commit="97af358ed2d2b31598e85473f45372122e44ef36",
    ),
)

DATASETS = MappingProxyType({dataset.name: dataset for dataset in _ALL})
"""The data sets that can be fetched, by name: the six of the paper, then others."""
