"""What `fedrela data fetch` can get, from where, and what public sources say about the bytes.

No size or digest below is from memory; each stands beside the place that states it.
"""

from __future__ import annotations

from dataclasses import dataclass

MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class RemoteFile:
    """A file at its official place.

    Attributes
    ----------
    url
        Its last component is the name of the file on disk.
    size, sha256
        As published; None where no public source states them.
    limit
        Number of bytes above which an answer is refused where the size is not known.
    """

    url: str
    size: int | None = None
    sha256: str | None = None
    limit: int = 1024 * MEBIBYTE

    @property
    def name(self) -> str:
        """Return the name of the file on disk."""
        return self.url.rsplit("/", 1)[1]


@dataclass(frozen=True)
class Dataset:
    """A data set as its authors offer it.

    Attributes
    ----------
    title
        One line for people.
    files
        What has to be downloaded.
    folder
        The one folder inside the archive, where there is an archive; the data are complete when it is unpacked.
    place
        Where the files go, below the folder of all data: where the data set's source looks for them.
    """

    title: str
    files: tuple[RemoteFile, ...]
    folder: str | None = None
    place: str = "."


# The authors' README links the files at an address without https and says that they also lie in its repository,
# under data/fashion: https://github.com/zalandoresearch/fashion-mnist#get-the-data (it gives MD5 sums).
# Sizes and SHA-256 of the same files:
# https://github.com/tensorflow/datasets/blob/333639b/tensorflow_datasets/url_checksums/fashion_mnist.txt
_FASHION_MNIST = "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/"

CATALOGUE: dict[str, Dataset] = {
    # The CIFAR page links the binary editions: https://www.cs.toronto.edu/~kriz/cifar.html (it gives MD5 sums).
    # Sizes and SHA-256 of the same files, in the folder tensorflow_datasets/url_checksums:
    # https://github.com/tensorflow/datasets/blob/333639b/tensorflow_datasets/url_checksums/cifar10.txt
    "cifar10": Dataset(
        "CIFAR-10, binary edition: 60,000 colour images of 32x32, 10 classes",
        (
            RemoteFile(
                "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                170_052_171,
                "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            ),
        ),
        folder="cifar-10-batches-bin",
    ),
    # https://github.com/tensorflow/datasets/blob/333639b/tensorflow_datasets/url_checksums/cifar100.txt
    "cifar100": Dataset(
        "CIFAR-100, binary edition: 60,000 colour images of 32x32, 100 classes",
        (
            RemoteFile(
                "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
                168_513_733,
                "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
            ),
        ),
        folder="cifar-100-binary",
    ),
    "fashion_mnist": Dataset(
        "Fashion-MNIST: 70,000 grey images of 28x28, 10 classes",
        (
            RemoteFile(
                _FASHION_MNIST + "train-images-idx3-ubyte.gz",
                26_421_880,
                "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            ),
            RemoteFile(
                _FASHION_MNIST + "train-labels-idx1-ubyte.gz",
                29_515,
                "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            ),
            RemoteFile(
                _FASHION_MNIST + "t10k-images-idx3-ubyte.gz",
                4_422_102,
                "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            ),
            RemoteFile(
                _FASHION_MNIST + "t10k-labels-idx1-ubyte.gz",
                5_148,
                "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
            ),
        ),
        place="FashionMNIST/raw",
    ),
    # The course that made it states no sum. Size and SHA-256 of the archive as others hold it:
    # https://huggingface.co/datasets/cnak47/cv-datasets/commit/6931f66584bf3a507711a644f6803fa5f419faf1
    "tiny_imagenet": Dataset(
        "Tiny-ImageNet-200: 120,000 colour images of 64x64, 200 classes",
        (
            RemoteFile(
                "https://cs231n.stanford.edu/tiny-imagenet-200.zip",
                248_100_043,
                "6198c8ae015e2b3e007c7841da39ec069199b9aa3bfa943a462022fe5e43c821",
            ),
        ),
        folder="tiny-imagenet-200",
    ),
}
