"""Class folders, Tiny-ImageNet's layout and list files, made with Pillow; and images that must be refused."""

from __future__ import annotations

import os

import numpy as np
import pytest
from PIL import Image

from fedrela.data.sources import image_folder, load
from fedrela.errors import ArgumentError, DataError


def put(path, pixels, **how):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **how)
    return pixels


@pytest.fixture
def folders(tmp_path, noise):
    """Two classes, three training images and one test image each, 8x8 PNG; returns root and pixels by path."""
    root = tmp_path / "set"
    kept = {}
    for part, number in (("train", 3), ("val", 1)):
        for name in ("cat", "dog"):
            for i in range(number):
                path = root / part / name / f"{i}.png"
                kept[path.relative_to(root).as_posix()] = put(path, noise(8, 8, 3))
    return root, kept


def channels_first(pixels):
    return pixels.transpose(2, 0, 1)


def test_class_folders(folders):
    root, pixels = folders
    source = load("image_folder", root, size=8)
    assert source.class_names == ("cat", "dog")
    assert source.y_train.tolist() == [0, 0, 0, 1, 1, 1]
    assert source.y_test.tolist() == [0, 1]
    assert np.array_equal(source.x_train[4], channels_first(pixels["train/dog/1.png"]))
    assert np.array_equal(source.x_test[1], channels_first(pixels["val/dog/0.png"]))
    assert isinstance(source.x_train, np.memmap)


def test_images_are_named_by_their_files(folders):
    root, pixels = folders
    source = load("image_folder", root, size=8)
    for ids, x in ((source.ids_train, source.x_train), (source.ids_test, source.x_test)):
        for name, image in zip(ids, x, strict=True):
            assert np.array_equal(image, channels_first(pixels[name]))


def test_a_labelled_test_folder_goes_before_val_and_can_be_named(folders, noise):
    root, _ = folders
    shown = put(root / "test" / "cat" / "a.png", noise(8, 8, 3))
    assert np.array_equal(load("image_folder", root, size=8).x_test[0], channels_first(shown))
    assert len(load("image_folder", root, size=8, test="val").y_test) == 2


def test_decoded_once(folders, monkeypatch):
    root, _ = folders
    load("image_folder", root, size=8)
    monkeypatch.setattr(image_folder, "decode_image", lambda *_: pytest.fail("decoded again"))
    load("image_folder", root, size=8)
    with pytest.raises(BaseException, match="decoded again"):
        load("image_folder", root, size=4)


def test_a_changed_image_is_decoded_again(folders, noise):
    root, _ = folders
    load("image_folder", root, size=8)
    other = put(root / "train" / "cat" / "0.png", noise(8, 8, 3))
    assert np.array_equal(load("image_folder", root, size=8).x_train[0], channels_first(other))


def test_tiny_imagenet(tmp_path, noise):
    base = tmp_path / "tiny-imagenet-200"
    for name in ("n02", "n01"):
        for i in range(2):
            put(base / "train" / name / "images" / f"{name}_{i}.JPEG", noise(64, 64, 3), quality=95)
        (base / "train" / name / f"{name}_boxes.txt").write_text("boxes\n")
    first = put(base / "val" / "images" / "val_0.png", noise(64, 64, 3))
    put(base / "val" / "images" / "val_1.png", noise(64, 64, 3))
    put(base / "test" / "images" / "test_0.JPEG", noise(64, 64, 3))
    lines = "val_0.png\tn02\t0\t0\t62\t62\nval_1.png\tn01\t0\t0\t62\t62\n"
    (base / "val" / "val_annotations.txt").write_text(lines)
    steps = []
    source = load("tiny_imagenet", tmp_path, progress=lambda *step: steps.append(step))
    assert source.class_names == ("n01", "n02")
    assert source.y_train.tolist() == [0, 0, 1, 1]
    assert source.y_test.tolist() == [1, 0]
    assert np.array_equal(source.x_test[0], channels_first(first))
    assert (4, 4, "decoding tiny_imagenet train") in steps
    for wrong, message in (
        ("../../x.png\tn01\n", "not a plain path below"),
        ("val_0.png\tn09\n", "a class of the training set"),
        ("val_0.png n01\n", "a tab"),
        ("", "names no image"),
    ):
        (base / "val" / "val_annotations.txt").write_text(wrong)
        with pytest.raises(DataError, match=message):
            load("tiny_imagenet", tmp_path)


def test_missing_sets_say_what_to_put_where(tmp_path):
    with pytest.raises(DataError, match="fedrela data fetch tiny_imagenet"):
        load("tiny_imagenet", tmp_path)
    with pytest.raises(DataError, match="train/CLASS/"):
        load("image_folder", tmp_path)
    with pytest.raises(DataError, match=r"ImageNet_LT_train\.txt is missing"):
        load("imagenet_lt", tmp_path)


def put_lists(root, train, test):
    (root / "ImageNet_LT_train.txt").write_text(train)
    (root / "ImageNet_LT_test.txt").write_text(test)


GOOD_TRAIN = "train/dog/0.png 1\ntrain/cat/2.png 0\n\ntrain/cat/1.png 0\n"
GOOD_TEST = "val/cat/0.png 0\n"


def test_list_files_in_their_order(folders):
    root, pixels = folders
    put_lists(root, GOOD_TRAIN, GOOD_TEST)
    source = load("imagenet_lt", root, size=8)
    assert source.y_train.tolist() == [1, 0, 0]
    assert source.class_names == ("cat", "dog")
    assert np.array_equal(source.x_train[1], channels_first(pixels["train/cat/2.png"]))
    named = {"train_list": "ImageNet_LT_train.txt", "test_list": "ImageNet_LT_test.txt"}
    assert np.array_equal(load("image_folder", root, size=8, **named).x_train, source.x_train)


def test_classes_without_a_folder_of_their_own_are_called_by_number(folders):
    root, _ = folders
    put_lists(root, "train/cat/0.png 0\ntrain/cat/1.png 1\n", GOOD_TEST)
    assert load("imagenet_lt", root, size=8).class_names == ("0", "1")


ESCAPES = [
    "../secret.png",
    "/secret.png",
    "train/../../secret.png",
    "train//cat/0.png",
    "..\\secret.png",
    "C:x.png",
    "./x",
]
WRONG_LISTS = {
    "no label": ("train/cat/0.png\n", "expected a path and a label"),
    "text label": ("train/cat/0.png cat\n", "expected a path and a label"),
    "negative label": ("train/cat/0.png -1\n", "expected a path and a label"),
    "gap in labels": ("train/cat/0.png 0\ntrain/dog/0.png 2\n", "class 1 has no image"),
    "empty": ("\n", "names no image"),
    "not there": ("train/cat/9.png 0\n", r"train/cat/9\.png: cannot be read"),
} | {
    f"escape {path}": (f"train/cat/0.png 0\n{path} 0\n", r"train\.txt:2: .* is not a plain path below")
    for path in ESCAPES
}


@pytest.mark.parametrize("case", WRONG_LISTS)
def test_wrong_lists(folders, case):
    root, _ = folders
    put(root.parent / "secret.png", np.zeros((8, 8, 3), np.uint8))
    text, message = WRONG_LISTS[case]
    put_lists(root, text, GOOD_TEST)
    with pytest.raises(DataError, match=message) as caught:
        load("imagenet_lt", root, size=8)
    assert "\n" not in str(caught.value)


def test_a_test_label_beyond_the_training_labels(folders):
    root, _ = folders
    put_lists(root, GOOD_TRAIN, "val/cat/0.png 2\n")
    with pytest.raises(DataError, match="label 2, but the largest training label is 1"):
        load("imagenet_lt", root, size=8)


def test_lists_come_in_pairs_and_options_in_range(folders):
    root, _ = folders
    for options in ({"train_list": "a"}, {"size": 0}, {"size": 5000}, {"channels": 2}):
        with pytest.raises(ArgumentError):
            load("image_folder", root, **options)


BROKEN = {
    "no image": b"hello",
    "empty": b"",
    "svg": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
    "postscript": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n",
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_images_are_named(folders, case, own_cache):
    root, _ = folders
    (root / "train" / "dog" / "2.png").write_bytes(BROKEN[case])
    with pytest.raises(DataError, match=r"train/dog/2\.png: not a readable image") as caught:
        load("image_folder", root, size=8)
    assert "\n" not in str(caught.value)
    assert not list(own_cache.glob("*.npy"))
    assert not list(own_cache.glob(".*"))


@pytest.mark.parametrize("name", ["a.png", "a.jpg"])
def test_a_truncated_image_is_named(folders, noise, name):
    root, _ = folders
    path = root / "train" / "dog" / name
    put(path, noise(64, 64, 3))
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(DataError, match=name):
        load("image_folder", root, size=8)


def test_a_decompression_bomb_is_an_error(folders, monkeypatch):
    root, _ = folders
    monkeypatch.setattr(image_folder, "MAX_PIXELS", 63)
    with pytest.raises(DataError, match="expected at most 63 pixels, got 8x8"):
        load("image_folder", root, size=8)
    monkeypatch.undo()
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
    with pytest.raises(DataError, match="DecompressionBomb"):
        load("image_folder", root, size=8)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 40)  # where Pillow would only warn
    monkeypatch.setattr(image_folder, "MAX_PIXELS", 63)
    with pytest.raises(DataError, match="expected at most 63 pixels, got 8x8"):
        load("image_folder", root, size=8)


@pytest.mark.parametrize("place", ["train/cat/4.png", "train/zebra", "val"])
def test_links_out_of_the_folder_are_refused_and_links_inside_it_are_not(folders, tmp_path, noise, place):
    root, _ = folders
    put(tmp_path / "other" / "cat" / "1.png", noise(8, 8, 3))
    (root / "val").rename(root / "held")
    (root / "val").symlink_to("held")
    (root / "train" / "dog" / "again.png").symlink_to("../cat/0.png")
    assert len(load("image_folder", root, size=8).y_train) == 7
    (root / "val").unlink()
    (root / "held").rename(root / "val")
    source = {"train/cat/4.png": "other/cat/1.png", "train/zebra": "other/cat", "val": "other"}[place]
    if place == "val":
        (root / "val").rename(root / "held")
    (root / place).symlink_to(tmp_path / source)
    with pytest.raises(DataError, match="a link points out of"):
        load("image_folder", root, size=8)


def test_a_list_below_a_link_out_of_the_folder_is_refused(folders, tmp_path):
    root, _ = folders
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "t.txt").write_text(GOOD_TRAIN)
    (root / "sub").symlink_to(tmp_path / "outside")
    with pytest.raises(DataError, match=r"sub/t\.txt: a link leads out of .*; put the list itself there$"):
        load("image_folder", root, train_list="sub/t.txt", test_list="sub/t.txt", size=8)
    own = str(tmp_path / "outside" / "t.txt")  # a list elsewhere that the user names is no link
    assert load("image_folder", root, train_list=own, test_list=own, size=8).y_train.tolist() == [1, 0, 0]


def test_annotations_that_are_a_pipe_are_not_passed_over(folders):
    root, _ = folders
    os.mkfifo(root / "val" / "val_annotations.txt")
    with pytest.raises(DataError, match=r"val_annotations\.txt: expected a list, found a folder, a pipe or a device$"):
        load("image_folder", root, size=8)


@pytest.mark.parametrize("by_link", [False, True])
def test_pipes_and_devices_are_refused_and_not_waited_for(folders, tmp_path, by_link):
    root, _ = folders
    os.mkfifo(root / "pipe" if by_link else root / "train" / "cat" / "4.png")
    if by_link:
        (root / "train" / "cat" / "4.png").symlink_to("../../pipe")
    with pytest.raises(DataError, match="got a folder, a pipe or a device"):
        load("image_folder", root, size=8)
    os.mkfifo(root / "list.txt")
    with pytest.raises(DataError, match=r"list\.txt: expected a list, found a folder, a pipe or a device"):
        load("image_folder", root, size=8, train_list="list.txt", test_list="list.txt")


@pytest.mark.parametrize("name", ["list.txt", "val/val_annotations.txt"])
def test_a_list_is_no_link_out_of_the_folder(tmp_path, noise, name):
    root, outside, inside = tmp_path / "set", tmp_path / "outside.txt", tmp_path / "set" / "inside.txt"
    for place in ("train/a", "train/b", "val/images"):
        put(root / place / "0.png", noise(8, 8))
    options = {"train_list": name, "test_list": name} if name == "list.txt" else {}
    text = "train/a/0.png 0\ntrain/b/0.png 1\n" if options else "0.png\ta\n"
    for target in (outside, inside):
        target.write_text(text)
    (root / name).symlink_to(outside)
    with pytest.raises(DataError, match=r"\.txt: a link leads out of .*set; put the list itself there"):
        load("image_folder", root, size=8, **options)
    (root / name).unlink()
    (root / name).symlink_to(inside)
    assert load("image_folder", root, size=8, **options).num_classes == 2


def test_sixteen_bits_are_refused(folders):
    root, _ = folders
    put(root / "train" / "dog" / "deep.png", np.full((8, 8), 40_000, np.uint16))
    with pytest.raises(DataError, match=r"deep\.png: expected 8 bits per channel, got mode I;16"):
        load("image_folder", root, size=8)


def test_grey_palette_and_transparent_images_become_colour(tmp_path, noise):
    grey = noise(8, 8)
    put(tmp_path / "train" / "a" / "grey.png", grey)
    colour = noise(8, 8, 4)
    put(tmp_path / "train" / "b" / "see-through.png", colour)
    palette = Image.fromarray(noise(8, 8, 3)).quantize(16)
    palette.save(tmp_path / "train" / "b" / "palette.png", transparency=bytes(16))
    put(tmp_path / "val" / "a" / "x.png", grey)
    source = load("image_folder", tmp_path, size=8)
    assert np.array_equal(source.x_train[0], np.stack([grey] * 3))
    assert np.array_equal(source.x_train[2], channels_first(colour[:, :, :3]))
    assert np.array_equal(source.x_train[1], channels_first(np.asarray(palette.convert("RGB"))))
    assert load("image_folder", tmp_path, size=8, channels=1).x_test[0, 0].tolist() == grey.tolist()


@pytest.mark.parametrize(("height", "width"), [(24, 12), (12, 24), (12, 12), (48, 24), (4, 8)])
def test_the_shorter_side_is_resized_and_the_centre_cropped(tmp_path, noise, height, width):
    path = tmp_path / "a.png"
    picture = Image.fromarray(put(path, noise(height, width, 3)))
    scale = 4 / min(height, width)
    whole = picture.resize((round(width * scale), round(height * scale)), Image.Resampling.BILINEAR)
    left, top = (whole.width - 4) // 2, (whole.height - 4) // 2
    expected = np.asarray(whole.crop((left, top, left + 4, top + 4)))
    assert np.abs(image_folder.decode_image(path, 4, 3).astype(int) - channels_first(expected)).max() <= 1


def test_a_picture_like_a_thread_does_not_explode(tmp_path, noise):
    put(tmp_path / "a.png", noise(1, 9000, 3))
    assert image_folder.decode_image(tmp_path / "a.png", 1024, 3).shape == (3, 1024, 1024)


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 3)])
def test_a_picture_is_encoded_and_read_back(tmp_path, noise, shape):
    pixels = noise(*shape)
    (tmp_path / "a.png").write_bytes(image_folder.encode_png(pixels))
    with Image.open(tmp_path / "a.png") as image:
        assert np.array_equal(np.asarray(image), pixels)


def test_a_large_jpeg_keeps_its_picture(tmp_path):
    ramp = np.linspace(0, 255, 640).astype(np.uint8)
    put(tmp_path / "a.jpg", np.repeat(np.tile(ramp, (640, 1))[:, :, None], 3, axis=2), quality=95)
    small = image_folder.decode_image(tmp_path / "a.jpg", 32, 3)
    expected = np.linspace(0, 255, 640).reshape(32, 20).mean(axis=1)
    assert np.abs(small - expected).max() < 4


def test_stray_folders_and_classes(folders):
    root, _ = folders
    (root / "train" / ".hidden").mkdir()
    (root / "train" / "cat" / "notes.txt").write_text("x")
    assert load("image_folder", root, size=8).class_names == ("cat", "dog")
    (root / "val" / "bird").mkdir()
    with pytest.raises(DataError, match="has no class of this name"):
        load("image_folder", root, size=8)
    os.rmdir(root / "val" / "bird")
    (root / "train" / "empty").mkdir()
    with pytest.raises(DataError, match="no image of this class"):
        load("image_folder", root, size=8)


@pytest.mark.parametrize("stray", ["scan.tif", "patient7", "images"])
def test_no_image_of_a_class_folder_is_passed_over(folders, stray):
    root, _ = folders
    place = root / "train" / "cat" / stray
    place.write_bytes(b"II*") if stray.endswith(".tif") else place.mkdir()
    with pytest.raises(DataError, match=rf"{stray}: expected images as \.bmp, .*, none in subfolders; convert, move"):
        load("image_folder", root, size=8)
