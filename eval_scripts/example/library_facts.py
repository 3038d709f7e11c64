"""Facts about a library on which sources disagree.

Shows: parts judged at the same time, critical gates, a claim with several sources, judging from the
answer alone, and a number compared with one read from a page.
"""

import asyncio
import logging

from pydantic import BaseModel, Field

from mind2web2 import CacheFileSys, Evaluator, LLMClient
from mind2web2.eval_runner import DualSemaphore
from mind2web2.verification_tree import AggregationStrategy

TASK_ID = "library_facts"
TASK_DESCRIPTION = """
I am writing a short portrait of the public library of Ottermoss. In which year did its main library on
Cooper's Square open to the public, and who was the architect of the house? How many items did the library
(all its buildings together) hold at the end of 2024? Which of its branches is the newest, in which year did
that branch open, and at which street address is it? Give a link to a page for every fact.
"""

OPENING_YEAR = 1911
NEWEST_BRANCH = "Harbour branch"
FIGURES_URL = "https://library.ottermoss.example/about/figures"
ROUNDING_TOLERANCE = 0.01


class CitedFact(BaseModel):
    """A fact as the answer gives it, with the pages cited for it."""

    value: str | None = None
    urls: list[str] = Field(default_factory=list)


class Branch(BaseModel):
    """The branch that the answer calls the newest."""

    name: str | None = None
    opening_year: str | None = None
    address: str | None = None
    urls: list[str] = Field(default_factory=list)


class LibraryFacts(BaseModel):
    """What the answer says about the library."""

    opening_year: CitedFact = Field(default_factory=CitedFact)
    architect: CitedFact = Field(default_factory=CitedFact)
    items_held: int | None = None
    items_held_urls: list[str] = Field(default_factory=list)
    newest_branch: Branch = Field(default_factory=Branch)


class YearlyFigure(BaseModel):
    """One line of the library's own table."""

    items_held: int | None = None


EXTRACT_FACTS = """
Extract what the answer finally says about the Ottermoss Public Library: the year in which the main library
opened to the public, its architect, the number of items held at the end of 2024 (digits only, such as
120500), and the newest branch with its name, opening year and street address. For each, list the URLs that
the answer cites for it, in the order in which they are cited.
"""
EXTRACT_FIGURE = (
    "Extract the number of items held at the end of 2024 from the table of yearly figures."
)


async def check_opening(evaluator: Evaluator, fact: CitedFact) -> None:
    """The year must be the right one before its sources are looked at."""
    opening = evaluator.add_sequential(
        "opening", "The main library's year of opening is right and supported"
    )
    correct = evaluator.add_leaf(
        "opening_year_correct",
        f"The year of opening is given as {OPENING_YEAR}",
        opening,
        critical=True,
    )
    await evaluator.verify(
        claim=f"The answer's year for the opening of the main library to the public is {OPENING_YEAR}.",
        node=correct,
        additional_instruction="1908 is the year of the foundation stone and does not count as the opening.",
    )
    # Without this gate an answer that cites nothing would be judged by its own words.
    evaluator.add_existence_node(
        fact.urls, "opening_cited", "A page is cited for the year", parent=opening
    )
    supported = evaluator.add_leaf(
        "opening_year_supported", "A cited page supports the year", opening
    )
    await evaluator.verify(
        claim=f"The main library of Ottermoss opened to the public in {fact.value}.",
        node=supported,
        sources=fact.urls,
    )


async def check_architect(evaluator: Evaluator, fact: CitedFact) -> None:
    """A name with a page that says so."""
    architect = evaluator.add_parallel("architect", "The architect is named and supported")
    evaluator.add_custom_node(
        result=fact.value and fact.urls,
        id="architect_given",
        desc="An architect and a page are given",
        parent=architect,
    )
    supported = evaluator.add_leaf(
        "architect_supported", "A cited page names this architect", architect
    )
    await evaluator.verify(
        claim=f"The architect of the main library of Ottermoss was {fact.value}.",
        node=supported,
        sources=fact.urls,
    )


async def check_holdings(evaluator: Evaluator, facts: LibraryFacts) -> None:
    """The number must agree with the library's own table, read at the time of judging."""
    holdings = evaluator.add_parallel("holdings", "The number of items is right and supported")
    figure = await evaluator.extract(
        prompt=EXTRACT_FIGURE,
        template_class=YearlyFigure,
        extraction_name="library_figure_2024",
        source=FIGURES_URL,
    )
    agrees = None not in (facts.items_held, figure.items_held) and (
        abs(facts.items_held - figure.items_held) <= ROUNDING_TOLERANCE * figure.items_held
    )
    evaluator.add_custom_node(
        agrees, "holdings_match", "Within 1% of the library's own figure", holdings
    )
    evaluator.add_existence_node(
        facts.items_held_urls,
        "holdings_cited",
        "A page is cited for the number",
        parent=holdings,
    )
    supported = evaluator.add_leaf(
        "holdings_supported", "A cited page supports the number", holdings
    )
    await evaluator.verify(
        claim=f"The Ottermoss Public Library held about {facts.items_held} items at the end of 2024.",
        node=supported,
        sources=facts.items_held_urls,
        additional_instruction="Accept a number rounded to thousands. Figures of other years do not count.",
    )


async def check_newest_branch(evaluator: Evaluator, branch: Branch) -> None:
    """The branch must be the right one; its year and address are then worth half each."""
    newest = evaluator.add_parallel("newest_branch", "The newest branch is described rightly")
    correct = evaluator.add_leaf(
        "branch_correct", f"It is the {NEWEST_BRANCH}", newest, critical=True
    )
    await evaluator.verify(
        claim=f"The library branch '{branch.name}' is the same as the '{NEWEST_BRANCH}' of Ottermoss.",
        node=correct,
        additional_instruction="Compare the names only; harmless variants of the name are the same.",
    )
    evaluator.add_existence_node(
        branch.urls, "branch_cited", "A page is cited for the branch", parent=newest
    )
    year = evaluator.add_leaf("branch_year", "A cited page supports its opening year", newest)
    address = evaluator.add_leaf("branch_address", "A cited page supports its address", newest)
    await evaluator.batch_verify(
        [
            (
                f"The {branch.name} opened in {branch.opening_year}.",
                branch.urls,
                year,
                "None",
            ),
            (
                f"The street address of the {branch.name} is {branch.address}.",
                branch.urls,
                address,
                "None",
            ),
        ]
    )


async def evaluate_answer(
    client: LLMClient,
    answer: str,
    agent_name: str,
    answer_name: str,
    cache: CacheFileSys,
    semaphore: DualSemaphore,
    logger: logging.Logger,
    model: str = "o4-mini",
) -> dict:
    """Score one answer: four facts of equal weight."""
    evaluator = Evaluator()
    evaluator.initialize(
        task_id=TASK_ID,
        strategy=AggregationStrategy.PARALLEL,
        agent_name=agent_name,
        answer_name=answer_name,
        client=client,
        task_description=TASK_DESCRIPTION,
        answer=answer,
        global_cache=cache,
        global_semaphore=semaphore,
        logger=logger,
        default_model=model,
    )
    evaluator.add_ground_truth({"opening_year": OPENING_YEAR, "newest_branch": NEWEST_BRANCH})
    facts = await evaluator.extract(
        prompt=EXTRACT_FACTS,
        template_class=LibraryFacts,
        extraction_name="library_facts",
    )
    await asyncio.gather(
        check_opening(evaluator, facts.opening_year),
        check_architect(evaluator, facts.architect),
        check_holdings(evaluator, facts),
        check_newest_branch(evaluator, facts.newest_branch),
    )
    return evaluator.get_summary()
