"""A day out that must be planned in order.

Shows: a sequential root whose steps stop at the first shortfall, a PDF as a source, extra prerequisites
from another part of the tree, a sum checked without a judge, and information kept for the reader.
"""

import logging

from pydantic import BaseModel, Field

from mind2web2 import CacheFileSys, Evaluator, LLMClient
from mind2web2.eval_runner import DualSemaphore
from mind2web2.verification_tree import AggregationStrategy, VerificationNode

TASK_ID = "museum_saturday"
TASK_DESCRIPTION = """
We are two adults and a nine-year-old in Reedholm. On a Saturday in July we want to take the lake ferry to
Ottermoss, join the day's first public guided tour of the Mill Museum, and come back by ferry on the same day.
When does that tour start? Which is the last ferry from Reedholm that brings us to the landing in Ottermoss at
least twenty minutes before the tour, and how long is the crossing? What is the least that the three of us pay
for the ferry there and back, for the museum with the tour, and for both together? Please link the pages or
documents you took this from.
"""

LATEST_ARRIVAL = "10:40"


class SaturdayPlan(BaseModel):
    """The plan that the answer proposes; times as HH:MM, prices in crowns for all three together."""

    tour_start: str | None = None
    tour_urls: list[str] = Field(default_factory=list)
    ferry_departure: str | None = None
    crossing_minutes: int | None = None
    timetable_urls: list[str] = Field(default_factory=list)
    ferry_price: float | None = None
    ferry_price_urls: list[str] = Field(default_factory=list)
    museum_price: float | None = None
    museum_price_urls: list[str] = Field(default_factory=list)
    total_price: float | None = None


EXTRACT_PLAN = """
Extract the plan for the Saturday that the answer recommends: when the guided tour starts, when the
recommended ferry leaves Reedholm, how many minutes the crossing takes, and the prices in crowns that all
three people together pay for the ferry there and back, for the museum with the tour, and in total. Times as
HH:MM. For the tour, the timetable, the ferry price and the museum price, list the URLs that the answer cites
for it.
"""


async def check_tour(evaluator: Evaluator, plan: SaturdayPlan) -> None:
    """Everything else depends on the tour: a part of critical leaves only, all or nothing."""
    tour = evaluator.add_parallel("tour", "The start of the first tour is right and supported")
    evaluator.add_existence_node(
        plan.tour_urls, "tour_cited", "A page is cited for the tour", parent=tour
    )
    start = evaluator.add_leaf(
        "tour_start_supported", "A cited page supports the start", tour, critical=True
    )
    await evaluator.verify(
        claim=f"On Saturdays in July the first public guided tour of the museum starts at {plan.tour_start}.",
        node=start,
        sources=plan.tour_urls,
    )


async def check_ferry(evaluator: Evaluator, plan: SaturdayPlan) -> None:
    """The departure must exist on Saturdays, be the last in time, and the crossing be as long as said."""
    ferry = evaluator.add_parallel("ferry", "The recommended ferry is right and supported")
    evaluator.add_existence_node(
        plan.timetable_urls, "timetable_cited", "A timetable is cited", parent=ferry
    )
    departure = evaluator.add_leaf(
        "ferry_departure", "There is such a departure on Saturdays", ferry
    )
    in_time = evaluator.add_leaf("ferry_in_time", "It is the last one that is early enough", ferry)
    crossing = evaluator.add_leaf(
        "ferry_crossing", "The crossing takes as long as the answer says", ferry
    )
    await evaluator.verify(
        claim=f"On Saturdays in July a ferry leaves Reedholm for Ottermoss at {plan.ferry_departure}.",
        node=departure,
        sources=plan.timetable_urls,
        additional_instruction="Look at the column for Saturdays; departures on other days do not count.",
    )
    await evaluator.verify(
        claim="On Saturdays in July the last ferry from Reedholm that arrives in Ottermoss by "
        f"{LATEST_ARRIVAL} is the one that leaves at {plan.ferry_departure}.",
        node=in_time,
        sources=plan.timetable_urls,
        extra_prerequisites=[departure],
        additional_instruction="Add the length of the crossing to the departures to find the arrivals.",
    )
    await evaluator.verify(
        claim=f"The ferry's crossing from Reedholm to Ottermoss takes {plan.crossing_minutes} minutes.",
        node=crossing,
        sources=plan.timetable_urls,
    )


async def check_cost(evaluator: Evaluator, plan: SaturdayPlan) -> None:
    """Both prices are looked up; the total counts only on top of them."""
    cost = evaluator.add_parallel("cost", "The prices are right, supported and add up")
    evaluator.add_existence_node(
        plan.ferry_price_urls and plan.museum_price_urls,
        "prices_cited",
        "Both prices are cited",
        parent=cost,
    )
    ferry = evaluator.add_leaf("ferry_price", "The ferry price is the lowest for the three", cost)
    museum = evaluator.add_leaf(
        "museum_price", "The museum price is the lowest for the three", cost
    )
    total = evaluator.add_leaf("total_given", "The answer tells the total", cost)
    party = "two adults and a nine-year-old"
    await evaluator.batch_verify(
        [
            (
                f"The least that {party} pay for the ferry there and back is {plan.ferry_price} crowns.",
                plan.ferry_price_urls,
                ferry,
                "Compare single and return tickets with tickets for families.",
            ),
            (
                f"The least that {party} pay for museum and guided tour is {plan.museum_price} crowns.",
                plan.museum_price_urls,
                museum,
                "Compare separate tickets, with the price of the tour, with tickets for families.",
            ),
        ]
    )
    await evaluator.verify(
        claim=f"The answer gives {plan.total_price} crowns as the total for ferry and museum together.",
        node=total,
        extra_prerequisites=[ferry, museum],
    )
    adds_up = None not in (plan.ferry_price, plan.museum_price, plan.total_price) and (
        abs(plan.ferry_price + plan.museum_price - plan.total_price) < 0.005
    )
    evaluator.add_custom_node(
        adds_up, "total_adds_up", "The total is the sum of both", cost, critical=False
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
    """Score one answer: tour, ferry and cost in this order, each counting only if those before are right."""
    evaluator = Evaluator()
    root: VerificationNode = evaluator.initialize(
        task_id=TASK_ID,
        strategy=AggregationStrategy.SEQUENTIAL,
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
    plan = await evaluator.extract(
        prompt=EXTRACT_PLAN, template_class=SaturdayPlan, extraction_name="plan"
    )
    evaluator.add_custom_info({"latest_arrival": LATEST_ARRIVAL}, "assumptions")
    evaluator.add_existence_node(
        plan.tour_start and plan.ferry_departure and plan.total_price,
        "plan_complete",
        "A tour, a ferry and a total are given",
        parent=root,
    )
    # In order, so that a step whose predecessor failed is skipped without asking the judge.
    await check_tour(evaluator, plan)
    await check_ferry(evaluator, plan)
    await check_cost(evaluator, plan)
    return evaluator.get_summary()
