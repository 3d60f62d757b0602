"""Building models: sizes as the sources give them, inputs they take, seeds, and what is said about a wrong argument."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from fedrela.errors import ArgumentError
from fedrela.models import MODELS, FlatModel, build, model_options, num_features
from fedrela.models.networks import Flatten
from helpers.contexts import digest

CIFAR, GREY = (3, 32, 32), (1, 28, 28)


def parameters(model: torch.nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize(
    ("name", "shape", "classes", "count"),
    [
        ("simple_cnn", CIFAR, 10, 62_006),
        ("simple_cnn", GREY, 10, 44_426),
        ("simple_cnn", CIFAR, 100, 69_656),
        ("convnet", CIFAR, 10, 797_962),
        ("convnet", GREY, 10, 573_578),
        ("convnet", CIFAR, 100, 815_332),
        ("cnn", GREY, 10, 1_663_370),  # McMahan et al. (2017), section 3
        ("resnet8", CIFAR, 10, 1_227_594),
        ("resnet8", CIFAR, 100, 1_250_724),
        ("resnet18", CIFAR, 10, 11_173_962),
        ("resnet20", CIFAR, 10, 272_474),
        ("resnet32", CIFAR, 10, 466_906),
        ("resnet34", CIFAR, 100, 21_328_292),
        ("resnet50", (3, 224, 224), 1000, 25_557_032),
        ("logistic", (64,), 10, 650),
        ("mlp", GREY, 10, 784 * 200 + 200 + 200 * 10 + 10),
        ("cnn_small", GREY, 10, 416 + 12_832 + (32 * 7 * 7 * 64 + 64) + 650),
        ("cnn_small", CIFAR, 10, 896 + 18_496 + 36_928 + (64 * 4 * 4 * 128 + 128) + 1290),
    ],
)
def test_parameter_counts(name, shape, classes, count):
    assert parameters(build(name, shape, classes)) == count


def test_projection_of_moon():
    model = build("simple_cnn", CIFAR, 10, projection=256)
    assert (parameters(model), num_features(model)) == (92_626, 256)
    assert model.features(torch.zeros(2, *CIFAR)).shape == (2, 256)


def test_buffers_of_resnet8():
    buffers = list(build("resnet8", CIFAR, 10).buffers())
    assert sum(b.numel() for b in buffers) == 2697
    assert sum(b.numel() for b in buffers if b.is_floating_point()) == 2688


SMALL = {"resnet18": {"width": 4}, "resnet34": {"width": 4}, "resnet8": {"width": 8}}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("shape", [GREY, CIFAR, (3, 64, 64), (1, 16, 20)])
def test_every_model_takes_images(name, shape):
    if name == "resnet50" and shape != (3, 64, 64):
        return  # one is enough for so large a model
    model = build(name, shape, 7, **SMALL.get(name, {}))
    x = torch.rand(2, *shape)
    features = model.eval().features(x)
    assert features.shape == (2, model.num_features)
    assert model(x).shape == (2, 7)
    assert torch.equal(model.head(features), model(x))


@pytest.mark.parametrize("shape", [(5,), (1,), (1, 8, 8), (2, 3)])
def test_tables_and_odd_shapes(shape):
    for name in ("logistic", "mlp"):
        assert build(name, shape, 3)(torch.rand(4, *shape)).shape == (4, 3)


@pytest.mark.parametrize("shape", [(1, 8, 8), (1, 1, 1), (1, 64, 64), (3, 128, 96), (2, 9, 33), (4, 12, 5)])
def test_cnn_small_takes_any_image_and_stays_small(shape):
    model = build("cnn_small", shape, 3)
    assert model(torch.rand(2, *shape)).shape == (2, 3)
    assert parameters(model) < 600_000
    assert model.num_features == (64 if shape[0] == 1 else 128)


def test_cnn_small_is_the_strided_one_of_the_benchmark():
    kinds = [str(layer) for layer in build("cnn_small", GREY, 10).body]
    assert kinds[0] == "Conv2d(1, 16, kernel_size=(5, 5), stride=(2, 2), padding=(2, 2))"
    assert kinds[2] == "Conv2d(16, 32, kernel_size=(5, 5), stride=(2, 2), padding=(2, 2))"
    strided = [str(layer) for layer in build("cnn_small", CIFAR, 10).body if "Conv" in str(layer)]
    assert [re.findall(r"\d+", text)[2:4] for text in strided] == [["32", "3"], ["64", "3"], ["64", "3"]]
    assert all("stride=(2, 2), padding=(1, 1)" in text for text in strided)


def test_group_norm_has_no_buffers_and_as_many_parameters():
    grouped = build("resnet8", CIFAR, 10, norm="group")
    assert parameters(grouped) == 1_227_594
    assert not list(grouped.buffers())
    with pytest.raises(ArgumentError, match=r"^width: expected an even number for norm = 'group'.*got 3$"):
        build("resnet8", CIFAR, 10, norm="group", width=3)


def test_the_seed_decides_everything():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = digest(FlatModel(build("mlp", (6,), 3, seed=4)))
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(99)
    assert digest(FlatModel(build("mlp", (6,), 3, seed=4))) == first
    assert digest(FlatModel(build("mlp", (6,), 3, seed=5))) != first


def test_the_state_of_the_generator_survives_an_error():
    before = torch.get_rng_state()
    with pytest.raises(ArgumentError):
        build("resnet8", CIFAR, 10, norm="none")
    assert torch.equal(torch.get_rng_state(), before)


def test_initialisation_is_the_library_s():
    """Linear weights and biases are uniform within 1/sqrt(inputs), as torch draws them."""
    layer = build("mlp", (400,), 10, hidden=[300]).body[1]
    for array in (layer.weight, layer.bias):
        assert 0.045 < array.abs().max() <= 0.05
        assert abs(array.mean()) < 0.01


def test_double_precision_starts_from_the_same_values():
    single, double = (build("cnn_small", (1, 8, 8), 3, seed=2, dtype=d) for d in (torch.float32, torch.float64))
    assert double(torch.rand(2, 1, 8, 8, dtype=torch.float64)).dtype == torch.float64
    for a, b in zip(single.parameters(), double.parameters(), strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


def test_the_table_is_sorted_and_its_options_are_known():
    assert list(MODELS) == sorted(MODELS)
    assert {name: list(model_options(name)) for name in ("cnn", "resnet20", "resnet50")} == {
        "cnn": [],
        "resnet20": ["width", "norm"],
        "resnet50": ["norm"],
    }


@pytest.mark.parametrize(
    ("arguments", "options", "start"),
    [
        (("resnet-8", CIFAR, 10), {}, "model: "),
        (("zzz", CIFAR, 10), {}, "model: "),
        (("mlp", (4,), 3), {"hiden": [3]}, "hiden: "),
        (("logistic", (4,), 3), {"hidden": [3]}, "hidden: "),
        (("mlp", (4,), 3), {"hidden": 3}, "hidden: "),
        (("mlp", (4,), 3), {"hidden": [8, 0]}, "hidden[1]: "),
        (("mlp", (4,), 3), {"hidden": [2.5]}, "hidden[0]: "),
        (("mlp", (4,), 1), {}, "num_classes: "),
        (("mlp", (0,), 2), {}, "input_shape[0]: "),
        (("mlp", 4, 2), {}, "input_shape: "),
        (("mlp", (4,), 2), {"seed": -1}, "seed: "),
        (("mlp", (4,), 2), {"seed": True}, "seed: "),
        (("mlp", (4,), 2), {"projection": -3}, "projection: "),
        (("mlp", (4,), 2), {"dtype": torch.float16}, "dtype: "),
        (("cnn", (64,), 2), {}, "cnn: "),
        (("resnet18", (64,), 2), {}, "resnet18: "),
        (("simple_cnn", (1, 8, 8), 2), {}, "simple_cnn: "),
        (("cnn", (1, 3, 8), 2), {}, "cnn: "),
        (("resnet8", CIFAR, 2), {"width": 0}, "width: "),
        (("resnet8", CIFAR, 2), {"norm": "bach"}, "norm: "),
    ],
)  # fmt: skip
def test_wrong_arguments_get_one_line(arguments, options, start):
    with pytest.raises(ArgumentError, match="^" + re.escape(start)) as caught:
        build(*arguments, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", ["cnn", "cnn_small", "convnet", "resnet8", "simple_cnn"])
def test_convolutions_see_float32_channels_last_whatever_the_layout_of_the_input(name, channels):
    seen = []
    for dtype in (torch.float32, torch.float64):
        model = build(name, (channels, 16, 16), 4, dtype=dtype)
        first = next(part for part in model.modules() if isinstance(part, torch.nn.Conv2d))
        first.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].stride()))
        x = torch.randn(2, channels, 16, 16, dtype=dtype)
        outputs = [model(x), model(x.to(memory_format=torch.channels_last))]
        if dtype == torch.float32:
            assert torch.equal(*outputs)
    last, first = (256 * channels, 1, 16 * channels, channels), (256 * channels, 256, 16, 1)
    assert seen == [last, last, first, last]


@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format])
def test_flattening_keeps_the_layout_of_gradients(layout):
    x = torch.randn(2, 3, 4, 5).contiguous(memory_format=layout).requires_grad_()
    weights = torch.randn(2, 60)
    rows, expected = Flatten()(x), torch.nn.Flatten()(x)
    assert torch.equal(rows, expected)
    (found,), (usual,) = (torch.autograd.grad((y * weights).sum(), [x]) for y in (rows, expected))
    assert torch.equal(found, usual)
    assert found.is_contiguous(memory_format=layout)
