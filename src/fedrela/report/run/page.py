"""The page of one run: its sections in their order."""

from __future__ import annotations

from fedrela.report.page.parts import Page
from fedrela.report.run.accuracy import by_class, confusion, over_rounds
from fedrela.report.run.clients import lost, who_has_what
from fedrela.report.run.cost import cost
from fedrela.report.run.gallery import gallery
from fedrela.report.run.moves import scores, where_labels_went
from fedrela.report.run.settings import settings
from fedrela.report.run.story import Story
from fedrela.report.run.summary import lead, opening, title
from fedrela.runfolder import RunFolder


def run_page(folder: RunFolder, *, samples: bool = True) -> Page:
    """Return the page of a run, whether it has finished or not.

    Parameters
    ----------
    folder
        The run. Nothing else is read, and where the folder lies does not matter.
    samples
        With False no sample is shown.
    """
    story = Story.read(folder, samples=samples)
    sections = [
        opening(story),
        over_rounds(story),
        by_class(story),
        confusion(story),
        where_labels_went(story),
        gallery(story, samples=samples),
        who_has_what(story),
        scores(story),
        cost(story),
        lost(story),
        settings(story),
    ]
    foot = f"Made by fedrela {story.manifest.version} from the run folder alone."
    return Page(title(story), lead(story), sections, foot)
