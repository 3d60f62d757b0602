"""Tables of summaries: the paper's form, and four formats that say the same."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from fedrela.report.compare_page import arms_table, compare_table, difference_table
from fedrela.report.grid_page import all_tables
from fedrela.report.page import Table
from fedrela.report.reproduction_page import doubts, reproduce_tables
from fedrela.report.sweep_page import sweep_table, wide_table
from fedrela.report.tables import csv_text, latex, latex_text, markdown
from fedrela.text import printable
from helpers.batteries import examples
from helpers.summaries import compare_summary, reproduce_summary, sweep_summary

COMMANDS = re.compile(
    r"\\(textbackslash|textasciitilde|textasciicircum|textless|textgreater|textbar|ldots)\{\}|\{\\char(34|39|96)\}"
    r"|\{[\[\]*]\}|\\[{}$&#_%]|\$(-|\\pm|\^\{\\dagger\}|\\tau|\\alpha)\$"
)


def read_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text), strict=True))


def test_the_papers_form_of_every_pair():
    table = compare_table(compare_summary())
    assert table.columns == ("baseline", "pair", "majority", "minority", "overall", "labels moved")
    assert table.rows[0] == (
        "FedAvg", "FedReLa", "88.0 (87.0) -1.0", "52.5 (77.0) +24.5", "84.0 (86.0) +2.0", "113 ± 2",
    )  # fmt: skip
    assert [row[1] for row in table.rows] == ["FedReLa", "FedReLa, lr / 10", "over random moves"]
    assert "3 seeds" in table.caption
    assert "learning rate divided by 10" in table.caption


def test_arms_and_differences():
    summary = compare_summary()
    arms = arms_table(summary)
    assert [row[1] for row in arms.rows] == [
        "baseline",
        "baseline, lr / 10",
        "FedReLa",
        "FedReLa, lr / 10",
        "random moves",
    ]
    assert arms.rows[0] == ("FedAvg", "baseline", "88.0 ± 1.0", "52.5 ± 1.0", "84.0 ± 1.0", "0")
    differences = difference_table(summary)
    assert differences.rows[0][3] == "+24.5 [+22.0, +27.0]"
    assert "Student's t" in differences.caption


def test_one_seed_has_no_spread_and_a_missing_number_is_a_hyphen():
    summary = compare_summary(seeds=1)
    baseline = summary["baselines"][0]
    baseline["arms"]["fedrela"]["minority"]["mean"] = baseline["pairs"][0]["differences"]["minority"]["mean"] = None
    assert arms_table(summary).rows[0][2] == "88.0"
    assert arms_table(summary).rows[2][3] == "-"
    assert compare_table(summary).rows[0][3] == "52.5"
    assert difference_table(summary).rows[0][2:4] == ("-1.0", "-")
    rows = read_csv(all_tables(summary)["table.csv"].decode())
    assert {row["deviation"] for row in rows} == {""}


def test_arms_without_a_pair_have_a_table_of_their_own():
    summary = compare_summary()
    summary["baselines"] = [
        {**summary["baselines"][0], "arms": {"baseline": summary["baselines"][0]["arms"]["baseline"]}, "pairs": []}
    ]
    text = all_tables(summary)["table.md"].decode()
    assert text.count("|:---|") == 1
    assert "FedReLa" not in text


def test_a_baseline_that_failed_is_left_out():
    summary = compare_summary()
    summary["baselines"].append(
        {"label": "MOON", "algorithm": "moon", "arms": {}, "pairs": [], "failed": "it diverged"}
    )
    assert all("MOON" not in row for row in arms_table(summary).rows)
    assert len(all_tables(summary)["table.csv"]) > 0


def test_the_csv_of_a_comparison_has_one_value_a_column():
    rows = read_csv(all_tables(compare_summary())["table.csv"].decode())
    assert len(rows) == 3 * (5 + 1)  # metrics of five arms, and FedReLa against two of them
    found = [row for row in rows if (row["arm"], row["metric"], row["against"]) == ("fedrela", "minority", "baseline")]
    assert [(row["mean"], row["deviation"], row["difference_mean"]) for row in found] == [("77", "1", "24.5")]
    assert (found[0]["difference_low"], found[0]["difference_high"], found[0]["seeds"]) == ("22", "27", "3")
    assert all(row["against"] or not row["difference_mean"] for row in rows)
    for row in rows:
        for name in ("mean", "deviation", "moved_mean"):
            float(row[name])


def test_the_json_is_the_summary_itself():
    for summary in (compare_summary(), sweep_summary(2), reproduce_summary()):
        assert json.loads(all_tables(summary)["table.json"]) == summary


@pytest.mark.parametrize("keys", [1, 2, 3])
def test_sweeps_long_and_wide(keys):
    summary = sweep_summary(keys)
    long = sweep_table(summary)
    assert len(long.rows) == len(summary["points"]) == 2**keys
    assert long.columns[1 : 1 + keys] == summary["keys"]
    assert long.rows[0][-1] == "10 ± 1"
    wide = wide_table(summary)
    assert (wide is None) == (keys == 3)
    if wide is not None:
        assert len(wide.rows) == 3 * 2 ** (keys - 1)  # two metrics and the labels moved
        points = {tuple(point["values"].values()): point for point in summary["points"]}
        mean = points[(0.1,) if keys == 1 else (0.05, 0.8)]["metrics"]["minority"]["mean"]
        assert wide.rows[0][-1] == f"{100 * mean:.1f} ± 1.0"
    rows = read_csv(all_tables(summary)["table.csv"].decode())
    assert [float(row["relabel.tau"]) for row in rows] == [p["values"]["relabel.tau"] for p in summary["points"]]
    assert {"minority_mean", "minority_deviation", "validation_mean", "moved_mean"} <= set(rows[0])


def test_a_point_that_was_not_run_is_a_hyphen():
    summary = sweep_summary(2)
    del summary["points"][-1]
    assert wide_table(summary).rows[1][-1] == "-"


def test_arms_of_a_sweep_have_a_column():
    summary = sweep_summary(1)
    assert "arm" not in sweep_table(summary).columns
    summary["points"][0]["arm"] = "fedrela"
    assert sweep_table(summary).columns[:2] == ["baseline", "arm"]


def test_published_and_measured_one_below_the_other():
    summary = reproduce_summary()
    (table,) = reproduce_tables(summary)
    assert table.columns == [
        "dataset", "IR", "method", "", "10%, Majority", "10%, Minority", "30%, Majority", "30%, Minority",
    ]  # fmt: skip
    assert table.rows[0] == [
        "F-MNIST", "10", "FedAvg", "published", "88.43 (87.40) -1.03", "52.50 (77.00) +24.50",
        "89.86 (90.17) +0.31†", "60.67 (70.50) +9.83†",
    ]  # fmt: skip
    assert table.rows[1] == [
        "F-MNIST",
        "10",
        "FedAvg",
        "measured",
        "80.00 (82.00) +2.00",
        "40.00 (60.00) +20.00",
        "-",
        "-",
    ]
    assert doubts(summary) == ["† F-MNIST, 10, FedAvg, 30%, +FedReLa: printed twice"]
    assert "†: doubtful" in table.caption
    parts = reproduce_tables(summary, split=True)
    assert [part.columns[4:] for part in parts] == [["Majority", "Minority"]] * 2
    assert [row[4:] for row in parts[0].rows] == [row[4:6] for row in table.rows]


def test_one_arm_a_place_and_labels_moved():
    summary = reproduce_summary()
    summary["metrics"].append({"name": "Relabeled", "of": "moved"})
    entries = [entry for entry in summary["entries"] if entry["at"]["minority share"] == "10%"]
    for entry in entries:
        entry["at"] = {"variant": f"with {entry['arm']}"}
        entry["published"]["moved"] = 1157
    summary |= {"entries": entries, "rows": ["variant"], "columns": []}
    (table,) = reproduce_tables(summary)
    assert table.rows[0] == ["with baseline", "published", "88.43", "52.50", "1,157"]
    assert table.rows[3] == ["with +FedReLa", "measured", "82.00", "60.00", "113"]
    for entry in entries:
        entry["published"] = {}
    assert [row[1] for row in reproduce_tables(summary)[0].rows] == ["measured", "measured"]


def test_the_csv_of_a_reproduction():
    rows = read_csv(all_tables(reproduce_summary())["table.csv"].decode())
    assert rows[0]["published"] == "88.43"
    assert rows[0]["measured_mean"] == "80"
    assert rows[0]["minority share"] == "10%"
    assert {row["arm"] for row in rows} == {"baseline", "FedReLa"}
    assert rows[-1]["doubtful"] == "printed twice"
    assert rows[-1]["measured_mean"] == ""


def test_markdown_tells_what_was_reduced_and_chosen():
    text = all_tables(reproduce_summary())["table.md"].decode()
    for words in (
        "## What was reduced\n\n- digits",
        "## Settings the paper does not state: ours\n\n- momentum",
        "† F-MNIST",
    ):
        assert words in text


def test_tables_word_for_word():
    table = Table(["R&D", "gain"], [["cat|dog", "-1.0"]], ["R&D"], "1. In %.")
    assert markdown([table, table], "a *", {"Notes": ["- no list"]}) == (
        "# a \\*\n\n"
        + 2 * "| R\\&D | gain |\n|:---|---:|\n| cat\\|dog | -1.0 |\n\n1\\. In %.\n\n"
        + "## Notes\n\n- \\- no list\n"
    )
    assert latex([table], "a %", {"Notes": ["$"]}).splitlines() == [
        r"% \usepackage{booktabs}", r"% a \%", r"% Notes: \$", "", r"\begin{table}", r"\centering",
        r"\caption{1. In \%.}", r"\begin{tabular}{lr}", r"\toprule", r"R\&D & gain \\", r"\midrule",
        r"cat\textbar{}dog & $-$1.0 \\", r"\bottomrule", r"\end{tabular}", r"\end{table}",
    ]  # fmt: skip


def check_latex(text: str, columns: int) -> None:
    """Nothing but known commands, balanced braces, and as many cells in every row."""
    assert text.isascii() or not set(text) - set(map(chr, range(0x180)))
    body = text[text.index(r"\toprule") : text.index(r"\bottomrule")]
    rows = [line for line in body.splitlines() if line.endswith(r"\\")]
    for row in rows:
        plain = COMMANDS.sub("", row.removesuffix(r" \\"))
        assert plain.count("&") == columns - 1
        assert not set(plain.replace(" & ", "")) & set("\\{}$#_%~^&[]*<>|\"'`")


def test_latex_of_every_kind():
    for summary in (compare_summary(), sweep_summary(2), reproduce_summary()):
        text = all_tables(summary)["table.tex"].decode()
        assert all(line.startswith("%") for line in text.split("\n\n")[0].splitlines())
        for part in text.split(r"\begin{table}")[1:]:
            columns = len(re.search(r"\\begin\{tabular\}\{([lr]+)\}", part)[1])
            check_latex(part, columns)


cells = st.lists(st.text(st.characters(codec=None), max_size=12), min_size=3, max_size=3)
rows_of_cells = st.lists(cells, min_size=1, max_size=4)


@examples(150, 5_000)
@given(rows_of_cells)
def test_any_text_survives_csv(rows):
    text = csv_text([{"a": row[0], "b": row[1], "c": -1.5} for row in rows])
    back = list(csv.reader(io.StringIO(text), strict=True))
    assert len(back) == len(rows) + 1
    for given_cells, found in zip(rows, back[1:], strict=True):
        assert found[2] == "-1.5"
        for cell, shown in zip(given_cells[:2], found[:2], strict=True):
            assert shown.removeprefix("'") == printable(cell).removeprefix("'") or shown == f"'{printable(cell)}"
            assert not shown.lstrip().startswith(("=", "+", "-", "@", "\t", "\r"))


@examples(150, 5_000)
@given(rows_of_cells)
def test_any_text_is_itself_in_markdown(rows):
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown([Table(["a", "b", "c"], rows)]))
    tags = re.findall(r"<(/?[a-z]+)", html)
    assert set(tags) <= {t for tag in ("table", "thead", "tbody", "tr", "th", "td") for t in (tag, f"/{tag}")}
    assert tags.count("td") == 3 * len(rows)


@examples(150, 5_000)
@given(rows_of_cells)
def test_any_text_is_inert_in_latex(rows):
    check_latex(latex([Table(["a", "b", "c"], rows, ["a"], "x")]), 3)


def test_letters_that_latex_has_no_font_for():
    assert latex_text("Größe 名 -1.5 ± 2 †") == r"Größe U+540D $-$1.5 $\pm$ 2 $^{\dagger}$"
