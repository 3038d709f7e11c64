"""Three items of one kind, each judged the same way.

Shows: items judged at the same time, a gate that compares the items with each other, claims about one page
judged in a batch, and links in whatever spelling the answer uses.
"""

import asyncio
import logging

from pydantic import BaseModel, Field

from mind2web2 import CacheFileSys, Evaluator, LLMClient
from mind2web2.eval_runner import DualSemaphore
from mind2web2.verification_tree import AggregationStrategy

TASK_ID = "step_free_walks"
TASK_DESCRIPTION = """
My sister uses a wheelchair, and we will spend a weekend in Ottermoss. Find three waymarked walks in the town
that are shorter than 6 km and step-free along their whole length. For each walk tell me its length, where it
starts and what its waymark looks like, and link a page of the town that describes it.
"""

NUMBER_OF_WALKS = 3
MAX_LENGTH_KM = 6
SUITABLE_WALKS = ["Reed Loop", "Millrace Path", "Bittern Boardwalk"]


class Walk(BaseModel):
    """One walk as the answer describes it."""

    name: str | None = None
    length: str | None = None
    start: str | None = None
    waymark: str | None = None
    urls: list[str] = Field(default_factory=list)


class WalkList(BaseModel):
    """The walks that the answer recommends, in its order."""

    walks: list[Walk] = Field(default_factory=list)


EXTRACT_WALKS = """
Extract the walks that the answer recommends, in its order. For each: its name, its length with the unit,
where it starts, what its waymark looks like (symbol and colour), and the URLs that the answer cites for this
walk. Leave out walks that the answer only mentions to advise against them.
"""


async def check_walk(evaluator: Evaluator, number: int, walk: Walk, earlier: list[Walk]) -> None:
    """A walk counts only if it is a new one, short and step-free; its details are then worth a third each."""
    prefix = f"walk_{number}"
    item = evaluator.add_parallel(prefix, f"Walk {number} fits and is described rightly")
    is_new = walk.name not in [other.name for other in earlier]
    evaluator.add_custom_node(
        result=walk.name and walk.urls and is_new,
        id=f"{prefix}_named",
        desc=f"Walk {number} has a name and a link and is not one of the earlier ones",
        parent=item,
    )
    short = evaluator.add_leaf(
        f"{prefix}_short", f"It is shorter than {MAX_LENGTH_KM} km", item, critical=True
    )
    await evaluator.verify(
        claim=f"The walk '{walk.name}' in Ottermoss is shorter than {MAX_LENGTH_KM} km.",
        node=short,
        sources=walk.urls,
    )
    step_free = evaluator.add_leaf(
        f"{prefix}_step_free", "It is step-free throughout", item, critical=True
    )
    await evaluator.verify(
        claim=f"The walk '{walk.name}' in Ottermoss is step-free along its whole length.",
        node=step_free,
        sources=walk.urls,
        additional_instruction="Being step-free for a part of the walk is not enough.",
    )
    # These do not depend on each other, so that one batch can ask for all of them.
    length = evaluator.add_leaf(f"{prefix}_length", "Its length is as the answer says", item)
    start = evaluator.add_leaf(f"{prefix}_start", "It starts where the answer says", item)
    waymark = evaluator.add_leaf(f"{prefix}_waymark", "Its waymark is as the answer says", item)
    await evaluator.batch_verify(
        [
            (
                f"The walk '{walk.name}' is {walk.length} long.",
                walk.urls,
                length,
                "None",
            ),
            (
                f"The walk '{walk.name}' starts at this place: {walk.start}.",
                walk.urls,
                start,
                "None",
            ),
            (
                f"The waymark of the walk '{walk.name}' is: {walk.waymark}.",
                walk.urls,
                waymark,
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
    """Score one answer: three walks of equal weight; a missing one counts as none."""
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
    evaluator.add_ground_truth({"walks": SUITABLE_WALKS}, gt_type="suitable_walks")
    found = await evaluator.extract(
        prompt=EXTRACT_WALKS,
        template_class=WalkList,
        extraction_name="walks",
        additional_instruction="A walk without a name is not a walk.",
    )
    walks = (found.walks + [Walk()] * NUMBER_OF_WALKS)[:NUMBER_OF_WALKS]
    checks = [
        check_walk(evaluator, number, walk, earlier=walks[: number - 1])
        for number, walk in enumerate(walks, start=1)
    ]
    await asyncio.gather(*checks)
    return evaluator.get_summary()
