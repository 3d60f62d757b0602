"""From a TOML file or a dictionary to a checked configuration, and back to TOML; errors are one line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from fedrela.experiment.schema import Config
from fedrela.experiment.schema.config_table import ConfigTable, Fault, comments_of, plain_table
from fedrela.experiment.schema.federation import NodeConfig
from fedrela.experiment.schema.problems import WrongConfigError, problems_of
from fedrela.experiment.toml.reader import Origin, parse_toml, read_text
from fedrela.experiment.toml.writer import as_plain, toml_key, toml_text, toml_value
from fedrela.files import digest
from fedrela.options import Options

Table = TypeVar("Table", bound=ConfigTable)


def load_config(path: str | Path) -> Config:
    r"""Read a TOML file, UTF-8, at most 1 MiB; paths inside it are relative to its folder.

    Any error is an `ArgumentError` of one line, ``file:line:column: key: what is wrong``.

    Parameters
    ----------
    path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "run.toml").write_text("seed = 3\ntrain.rounds = 20")
    ...     config = load_config(f"{folder}/run.toml")
    >>> config.seed, config.train.rounds, config.algorithm.name
    (3, 20, 'fedavg')
    """
    path = Path(path)
    return parse_config(read_text(path), name=str(path), folder=path.parent)


def parse_config(
    text_or_dict: str | Mapping[str, Any],
    *,
    name: str = "<config>",
    folder: str | Path | None = None,
    ignore: Iterable[str] = (),
) -> Config:
    r"""Check a configuration given as TOML text or as a dictionary, where a value of None counts as left out.

    Messages call it `name`. Paths inside it are relative to `folder`, by default the current one. Top-level keys that
    are in `ignore` are left out.

    >>> parse_config({"data": {"partition": {"kind": "iid", "clients": 4}}}).data.partition.clients
    4
    >>> parse_config("[data]\nsorce = 'digits'", name="run.toml")
    Traceback (most recent call last):
    ...
    fedrela.experiment.schema.problems.WrongConfigError: run.toml:2:1: data.sorce: unknown key; nearest: source
    """
    return _parse(Config, text_or_dict, name, folder or Path.cwd(), ignore)


def load_node(path: str | Path) -> NodeConfig:
    """Read a node's own file, ``node.toml``; errors are as for `load_config`."""
    path = Path(path)
    return _parse(NodeConfig, read_text(path), str(path), path.parent)


def _parse(
    kind: type[Table],
    text_or_dict: str | Mapping[str, Any],
    name: str,
    folder: str | Path,
    ignore: Iterable[str] = (),
) -> Table:
    raw, places = parse_toml(text_or_dict, name) if isinstance(text_or_dict, str) else (text_or_dict, None)
    table, not_plain = as_plain(raw)
    for key in ignore:
        table.pop(key, None)
    origin = Origin(name, places)
    if not_plain:
        raise WrongConfigError([Fault(path, what) for path, what in not_plain], origin)
    try:
        return kind.model_validate(table, context={"folder": folder, "origin": origin})
    except ValidationError as error:
        raise WrongConfigError(problems_of(error, kind), origin) from None


def config_toml(config: Config) -> str:
    """Return the full configuration as TOML text, defaults included; loading it gives an equal configuration.

    >>> print(config_toml(parse_config("seed = 3"))[:28])
    seed = 3
    <BLANKLINE>
    [data]
    source = "d
    """
    return toml_text(config.as_table())


def config_sha256(config: Config) -> str:
    """Return the digest of all that a result may depend on: the full configuration without ``[engine]``."""
    table = {key: value for key, value in config.as_table().items() if key != "engine"}
    return digest(toml_text(_sorted(table)).encode())


def _sorted(value: Any) -> Any:
    """Return tables with their keys in order, so that their order in a file does not count."""
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list | tuple) else value


WIDEST_PAIR = 36  # characters before the comments of a table, unless a pair is longer


def commented_toml(config: ConfigTable) -> str:
    """Return a configuration as text with comments; loading it gives an equal configuration.

    >>> from fedrela.experiment.schema import Config
    >>> commented_toml(Config()).splitlines()[0]
    'seed = 1        # seed of all random numbers'
    """
    return "\n".join(_commented_sections(config, ()))


def _commented_sections(table: ConfigTable | Options, path: tuple[str, ...], about: str = "") -> Iterator[str]:
    values, comments = plain_table(table), comments_of(table)
    inner = {key: value for key, value in values.items() if isinstance(value, Mapping)}
    pairs = {key: f"{toml_key(key)} = {toml_value(value)}" for key, value in values.items() if key not in inner}
    pairs |= {key: f"# {key} =" for key in comments if key not in values}
    width = max((len(pair) for pair in pairs.values() if len(pair) <= WIDEST_PAIR), default=0)
    header = f"# {about}\n[{'.'.join(map(toml_key, path))}]\n" if path else ""
    yield header + "".join(_line(pair, comments.get(key, ""), width) for key, pair in pairs.items())
    for key, value in inner.items():
        found = getattr(table, key)
        if isinstance(found, ConfigTable | Options):
            yield from _commented_sections(found, (*path, key), comments[key])
        else:
            yield f"# {comments[key]}\n{toml_text(value, (*path, key))}"


def _line(pair: str, comment: str, width: int) -> str:
    return f"{pair:<{width}}  # {comment}\n" if comment else f"{pair}\n"
