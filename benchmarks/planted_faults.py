# ruff: noqa: E501 - scripts and rubric files as their authors write them
"""How many planted faults of rubrics a rehearsal finds, with a perfect answer and without one.

Sixty scripts and rubric files: five scripts with ten faults each, two rubric files with five. The
code of two scripts refuses made-up values. A finding is true if it names the leaf or field at
fault.

    uv run python benchmarks/planted_faults.py [-v]
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from measuring import title

from mind2web2.runs.settings import RunSettings
from mind2web2_authoring.cases import CaseHeader, case_text
from mind2web2_authoring.findings import OFTEN_WRONG
from mind2web2_authoring.rehearsal import RehearsalPlan, TaskRehearsal, rehearse_task

HEAD = """\
import re
from datetime import date
from urllib.parse import urlparse

from pydantic import BaseModel, Field

from mind2web2 import AggregationStrategy, Evaluator


class Thing(BaseModel):
    name: str | None = None
    year: int | None = None
    place: str | None = None
    price: float | None = None
    day: str | None = None
    urls: list[str] = Field(default_factory=list)


class Things(BaseModel):
    things: list[Thing] = Field(default_factory=list)


async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="o4-mini"):
    ev = Evaluator()
    root = ev.initialize("task", AggregationStrategy.PARALLEL, client=client, answer=answer,
                         task_description="TASK", global_cache=cache, global_semaphore=semaphore, logger=logger)
"""
END = "    return ev.get_summary()\n"
# The text that a fault replaces, the planted one, and the name in a true finding.
Fault = tuple[str, str, str]


@dataclass(frozen=True)
class Template:
    """A sound script or rubric file, with its perfect answer and the faults that are planted in it.

    Args:
        extract: what a judge reads from the perfect answer.
        planted: a line for each fault, ``KIND :: NAME IN A TRUE FINDING :: OLD => NEW``, or ``-``.
    """

    name: str
    question: str
    text: str
    extract: dict[str, Any]
    planted: str
    suffix: str = ".py"

    @property
    def faults(self) -> dict[str, Fault]:
        """Return the faults by kind."""
        faults = {}
        for line in self.planted.strip().splitlines():
            kind, place, texts = line.split(" :: ")
            old, new = texts.replace("\\n", "\n").split(" => ")
            faults[kind] = old, "" if new == "-" else new, place
        return faults

    def with_fault(self, kind: str | None) -> str:
        """Return the text with a fault, or the sound one."""
        text = self.text if self.suffix == ".yaml" else HEAD + self.text + END
        if kind is not None:
            old, new, _ = self.faults[kind]
            assert text.count(old) == 1, (self.name, kind)
            text = text.replace(old, new)
        return text


def _thing(name: str, year: int, place: str, price: float, day: str) -> dict[str, Any]:
    url = f"https://www.{place.lower()}.example/{name.split(maxsplit=1)[0].lower()}"
    return {"name": name, "year": year, "place": place, "price": price, "day": day, "urls": [url]}


MUSEUM = Template(
    "museum",
    "Which museum in Ottermoss is the oldest? Give its year of opening, its street and the ticket "
    "price.",
    """\
    it = await ev.extract("The museum", Thing, "museum")
    part = ev.add_parallel("museum", "The museum", root)
    ev.add_custom_node(bool(it.name and it.urls), "museum_given", "A museum and a page", part, critical=True)
    oldest = ev.add_leaf("museum_oldest", "It is the oldest", part, critical=True)
    await ev.verify(f"{it.name} is the oldest museum in Ottermoss.", oldest, it.urls)
    year = ev.add_leaf("museum_year", "The year of opening is right", part)
    await ev.verify(f"{it.name} opened in {it.year}.", year, it.urls)
    street = ev.add_leaf("museum_place", "The street is right", part)
    await ev.verify(f"{it.name} stands in {it.place}.", street, it.urls)
    price = ev.add_leaf("museum_price", "The ticket price is right", part)
    await ev.verify(f"A ticket of {it.name} costs {it.price} crowns.", price, it.urls)
    ev.add_custom_node(it.price is not None and it.price < 40, "price_low", "Under 40 crowns", part, critical=False)
""",
    {"museum": _thing("Mill Museum", 1911, "Weirside", 9.5, "2024-05-04")},
    r"""
gate off :: museum_given|museum_oldest :: part, critical=True)\n    oldest => part, critical=False)\n    oldest
sources dropped :: museum_year :: in {it.year}.", year, it.urls => in {it.year}.", year
value ignored :: year :: opened in {it.year}. => has a year of opening.
sign turned :: price_low|price :: it.price < 40 => it.price > 40
claim twice :: museum_place|museum_year|place :: stands in {it.place}." => opened in {it.year}."
missing counts :: price_low :: it.price is not None and it.price < 40 => it.price is None or it.price < 40
echo pays :: price_low :: it.price is not None and it.price < 40 => "museum" in answer.lower()
test inverted :: museum_given :: bool(it.name and it.urls) => not (it.name and it.urls)
never judged :: museum_place ::     await ev.verify(f"{it.name} stands =>     _ = (f"{it.name} stands
always passes :: price_low :: it.price is not None and it.price < 40 => it.price is not None or not it.price
""",
)
WALKS = Template(
    "walks",
    "Name three walks near Ottermoss, each with its starting place and the year in which it was "
    "marked.",
    """\
    found = await ev.extract("The walks", Things, "walks")
    walks = (found.things + [Thing()] * 3)[:3]
    seen = set()
    for n, walk in enumerate(walks):
        part = ev.add_parallel(f"walk_{n}", "A walk", root)
        given = bool(walk.name and walk.urls and walk.name not in seen)
        ev.add_custom_node(given, f"walk_given_{n}", "A further walk with a page", part, critical=True)
        seen.add(walk.name)
        near = ev.add_leaf(f"walk_near_{n}", "It is near the town", part, critical=True)
        await ev.verify(f"{walk.name} is a walk near Ottermoss.", near, walk.urls)
        start = ev.add_leaf(f"walk_place_{n}", "The start is right", part)
        await ev.verify(f"{walk.name} starts at {walk.place}.", start, walk.urls)
        year = ev.add_leaf(f"walk_year_{n}", "The year is right", part)
        await ev.verify(f"{walk.name} was marked in {walk.year}.", year, walk.urls)
""",
    {
        "walks": {
            "things": [
                _thing("Reed Loop", 1987, "Millpond", 0, "2024-05-04"),
                _thing("Bittern Walk", 1999, "Landing", 0, "2024-05-05"),
                _thing("Ridge Way", 2004, "Quarry", 0, "2024-05-06"),
            ]
        }
    },
    r"""
gate off :: walk_given|walk_near :: page", part, critical=True) => page", part, critical=False)
sources dropped :: walk_place :: starts at {walk.place}.", start, walk.urls => starts at {walk.place}.", start
value ignored :: place :: starts at {walk.place}. => has a start.
sign turned :: walk_given :: walk.name not in seen => walk.name in seen
claim twice :: walk_year|walk_place|year :: was marked in {walk.year}. => starts at {walk.place}.
missing counts :: walk_given|items|things :: given = bool(walk.name => given = not walk.name or bool(walk.name
echo pays :: walk_said ::         year = ev.add_leaf(f"walk_year_{n}" =>         ev.add_custom_node("walks" in answer, f"walk_said_{n}", "d", part, critical=False)\n        year = ev.add_leaf(f"walk_year_{n}"
test inverted :: walk_given :: given = bool(walk.name and walk.urls => given = bool(not walk.name and walk.urls
never judged :: walk_year ::         await ev.verify(f"{walk.name} was =>         _ = (f"{walk.name} was
always passes :: walk_three ::         year = ev.add_leaf(f"walk_year_{n}" =>         ev.add_custom_node(len(walks) == 3, f"walk_three_{n}", "d", part, critical=False)\n        year = ev.add_leaf(f"walk_year_{n}"
""",
)
PORTS = Template(
    "ports",
    "Which of the lake's ports has the cheapest ferry, when was its pier built, and on which day "
    "does it close?",
    """\
    it = await ev.extract("The port", Thing, "port")
    allowed = {"Reedholm", "Kettleby", "Saltmere"}
    top = ev.add_sequential("port", "The port", root)
    ev.add_custom_node(it.name in allowed, "port_known", "It is one of the lake's ports", top, critical=True)
    ev.add_custom_node(bool(it.urls), "port_page", "A page is given", top, critical=True)
    cheapest = ev.add_leaf("port_cheapest", "It has the cheapest ferry", top, critical=True)
    await ev.verify(f"{it.name} has the cheapest ferry of the lake.", cheapest, it.urls)
    rest = ev.add_parallel("rest", "Further facts", top)
    year = ev.add_leaf("pier_year", "The year of the pier is right", rest)
    await ev.verify(f"The pier of {it.name} was built in {it.year}.", year, it.urls)
    day = ev.add_leaf("closing_day", "The day is right", rest)
    await ev.verify(f"The port of {it.name} closes on {it.day}.", day, it.urls)
    is_day = re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", it.day or "")
    late = date.fromisoformat(it.day) >= date(2025, 9, 1) if is_day else False
    ev.add_custom_node(late, "day_late", "Not before September 2025", rest, critical=False)
""",
    {"port": _thing("Kettleby", 1932, "Kettleby", 3.5, "2025-10-12")},
    r"""
gate off :: address|urls|port_page|pier_year|closing_day|port_cheapest ::     ev.add_custom_node(bool(it.urls), "port_page", "A page is given", top, critical=True)\n => -
sources dropped :: closing_day :: closes on {it.day}.", day, it.urls => closes on {it.day}.", day
value ignored :: year :: was built in {it.year}. => has a year of building.
sign turned :: day_late :: >= date(2025, 9, 1) => <= date(2025, 9, 1)
claim twice :: day :: closes on {it.day}. => was built in {it.year}.
missing counts :: day_late :: if is_day else False => if is_day else True
echo pays :: says_pier ::     ev.add_custom_node(late, "day_late" =>     ev.add_custom_node("pier" in answer, "says_pier", "d", rest, critical=False)\n    ev.add_custom_node(late, "day_late"
test inverted :: port_page :: bool(it.urls) => not it.urls
never judged :: pier_year ::     await ev.verify(f"The pier =>     _ = (f"The pier
always passes :: port_page|port_cheapest :: bool(it.urls) => it.urls is not None
""",
)
OFFERS = Template(
    "offers",
    "Name four offers of the tourist board of at most 60 crowns, with the price and the day of "
    "each.",
    """\
    found = await ev.extract("The offers", Things, "offers")
    offers = found.things[:4]
    ev.add_custom_node(len(offers) == 4, "four_offers", "Four offers", root, critical=True)
    names = {offer.name for offer in offers}
    ev.add_custom_node(len(names) == len(offers) and bool(offers), "all_differ", "They differ", root, critical=True)
    for n in range(4):
        offer = offers[n] if n < len(offers) else Thing()
        part = ev.add_parallel(f"offer_{n}", "An offer", root)
        hosts = [urlparse(url).netloc for url in offer.urls]
        official = any(host.endswith("sennet-tourism.org") for host in hosts)
        ev.add_custom_node(official, f"offer_page_{n}", "A page of the board", part, critical=True)
        cheap = offer.price is not None and offer.price <= 60
        ev.add_custom_node(cheap, f"offer_cheap_{n}", "At most 60 crowns", part, critical=True)
        there = ev.add_leaf(f"offer_there_{n}", "The board offers it", part, critical=True)
        await ev.verify(f"The tourist board offers {offer.name}.", there, offer.urls)
        price = ev.add_leaf(f"offer_price_{n}", "The price is right", part)
        await ev.verify(f"{offer.name} costs {offer.price} crowns.", price, offer.urls)
        day = ev.add_leaf(f"offer_day_{n}", "The day is right", part)
        await ev.verify(f"{offer.name} takes place on {offer.day}.", day, offer.urls)
""",
    {
        "offers": {
            "things": [
                {
                    **_thing(name, 2025, "Lake", price, f"2025-06-0{n}"),
                    "urls": [f"https://www.sennet-tourism.org/{n}"],
                }
                for n, (name, price) in enumerate(
                    [
                        ("Harp Boat", 24.0),
                        ("Dawn Tour", 31.0),
                        ("Reed Dinner", 58.0),
                        ("Bell Night", 12.0),
                    ],
                    1,
                )
            ]
        }
    },
    r"""
gate off :: offer_page|offer_there :: board", part, critical=True) => board", part, critical=False)
sources dropped :: offer_day :: place on {offer.day}.", day, offer.urls => place on {offer.day}.", day
value ignored :: price :: costs {offer.price} crowns => has a price
sign turned :: offer_cheap :: offer.price <= 60 => offer.price >= 60
claim twice :: offer_day|day :: takes place on {offer.day}. => costs {offer.price} crowns.
missing counts :: offer_cheap :: offer.price is not None and offer.price <= 60 => offer.price is None or offer.price <= 60
echo pays :: offer_page :: official = any(host => official = "board" in answer or any(host
test inverted :: all_differ :: bool(offers), "all => not offers, "all
never judged :: offer_day ::         await ev.verify(f"{offer.name} takes =>         _ = (f"{offer.name} takes
always passes :: four_offers|things :: len(offers) == 4 => len(offers) <= 4
""",
)
PEOPLE = Template(
    "people",
    "Who founded the town's two mills, and in which year and place was each of the founders born?",
    """\
    async def person(key, title):
        it = await ev.extract(f"The founder of the {title}", Thing, key)
        part = ev.add_parallel(key, f"The founder of the {title}", root)
        ev.add_custom_node(bool(it.name and it.urls), f"{key}_given", "A name", part, critical=True)
        who = ev.add_leaf(f"{key}_founder", "It is the founder", part, critical=True)
        year = ev.add_leaf(f"{key}_year", "The year of birth is right", part)
        place = ev.add_leaf(f"{key}_place", "The place of birth is right", part)
        await ev.batch_verify([
            (f"{it.name} founded the {title}.", it.urls, who, None),
            (f"{it.name} was born in {it.year}.", it.urls, year, None),
            (f"{it.name} was born at {it.place}.", it.urls, place, None),
        ])
        return it
    first = await person("upper", "upper mill")
    second = await person("lower", "lower mill")
    ev.add_custom_node(
        bool(first.name and second.name) and first.name != second.name, "two_people", "Two people", root, critical=True
    )
""",
    {
        "upper": _thing("Ilvane Corrow", 1861, "Netholm", 0, "2024-01-01"),
        "lower": _thing("Tamsin Orde", 1874, "Saltby", 0, "2024-01-02"),
    },
    r"""
gate off :: upper_given|lower_given|upper_founder :: A name", part, critical=True) => A name", part, critical=False)
sources dropped :: upper_year|lower_year :: {it.year}.", it.urls, year => {it.year}.", None, year
value ignored :: place :: was born at {it.place}. => has a place of birth.
sign turned :: two_people :: first.name != second.name => first.name == second.name
claim twice :: place :: was born at {it.place}. => was born in {it.year}.
missing counts :: two_people :: bool(first.name and second.name) and first.name => not (first.name and second.name) or first.name
echo pays :: says_mills ::     ev.add_custom_node(\n =>     ev.add_custom_node("mills" in answer.lower(), "says_mills", "d", root, critical=False)\n    ev.add_custom_node(\n
test inverted :: upper_given :: bool(it.name and it.urls) => not it.name
never judged :: upper_place ::             (f"{it.name} was born at {it.place}.", it.urls, place, None),\n => -
always passes :: first_there ::     ev.add_custom_node(\n =>     ev.add_custom_node(first is not None, "first_there", "d", root, critical=False)\n    ev.add_custom_node(\n
""",
)
INN = Template(
    "inn",
    "Which inn at the lake has the most rooms, what does a night cost, and when was it built? At "
    "most 90 crowns.",
    """\
task: inn
question: Which inn at the lake has the most rooms, what does a night cost, and when was it built?
extract:
  inn:
    ask: the inn
    fields: {name: its name, price: {ask: a night in crowns, type: number}, built: its year, urls: its pages}
root:
  children:
    - {id: inn_given, desc: An inn and a page, critical: true, present: [inn.name, inn.price, inn.urls]}
    - id: inn_rooms
      desc: It has the most rooms
      claim: "{inn.name} has the most rooms of all inns at the lake."
      sources: inn.urls
    - id: inn_price
      desc: The price is right
      claim: "A night at {inn.name} costs {inn.price} crowns."
      sources: inn.urls
    - id: inn_built
      desc: The year is right
      claim: "{inn.name} was built in {inn.built}."
      sources: inn.urls
""",
    {
        "inn": {
            "name": "Heron Inn",
            "price": 72,
            "built": "1904",
            "urls": ["https://heron.example/rooms"],
        }
    },
    r"""
gate off :: inn_given :: page, critical: true => page, critical: false
sources dropped :: inn_built :: built in {inn.built}."\n      sources: inn.urls => built in {inn.built}."\n      sources: answer
value ignored :: built :: was built in {inn.built}. => has a year of building.
claim twice :: inn_built|built :: was built in {inn.built}. => has the most rooms of all inns at the lake.
always passes :: inn_cheap ::     - id: inn_built =>     - {id: inn_cheap, desc: d, equals: {field: inn.price, value: 72, compare: number, within: 5000}}\n    - id: inn_built
""",
    ".yaml",
)
HOSTELS = Template(
    "hostels",
    "Name three hostels at the lake, each with its street and its number of beds.",
    """\
task: hostels
question: Name three hostels at the lake, each with its street and its number of beds.
extract:
  hostels:
    ask: the hostels
    list: 3
    fields: {name: its name, street: its street, beds: {ask: its beds, type: integer}, urls: its pages}
root:
  children:
    - id: hostel_{number}
      desc: Hostel {number}
      for_each: hostels
      children:
        - {id: "hostel_{number}_given", desc: a, critical: true, present: [item.name, item.urls], distinct: item.name}
        - id: hostel_{number}_there
          desc: It is at the lake
          critical: true
          claim: "{item.name} is a hostel at the lake."
          sources: item.urls
        - id: hostel_{number}_street
          desc: The street is right
          claim: "{item.name} stands in {item.street}."
          sources: item.urls
        - id: hostel_{number}_beds
          desc: The number of beds is right
          claim: "{item.name} has {item.beds} beds."
          sources: item.urls
""",
    {
        "hostels": [
            {
                "name": name,
                "street": street,
                "beds": beds,
                "urls": [f"https://{name.split()[0].lower()}.example/"],
            }
            for name, street, beds in [
                ("Otter House", "Quay 4", 31),
                ("Mill Loft", "Mill Lane 9", 48),
                ("Pike Rest", "Weir 2", 12),
            ]
        ]
    },
    r"""
gate off :: hostel_\d_given :: a, critical: true => a, critical: false
sources dropped :: hostel_1_beds :: {item.beds} beds."\n          sources: item.urls => {item.beds} beds."\n          sources: answer
value ignored :: street :: stands in {item.street}. => stands in a street.
claim twice :: beds :: has {item.beds} beds. => stands in {item.street}.
missing counts :: hostels :: , distinct: item.name => -
""",
    ".yaml",
)
EVENTS = Template(
    "events",
    "Find two concerts in Kettleby within the next two months. For each give venue, date and the travel time from Mill Lane 9.",
    """\
    class Names(BaseModel):
        names: list[str] = Field(default_factory=list)
    class Where(BaseModel):
        name: str | None = None
        type: str | None = None
        venue: str | None = None
        source_urls: list[str] = Field(default_factory=list)
    class When(BaseModel):
        name: str | None = None
        date: str | None = None
        travel_time: str | None = None
    names = await ev.extract("Extract the names of all concerts.", Names, "names")
    for i in range(2):
        name = names.names[i] if i < len(names.names) else None
        where, when = Where(), When()
        if name:
            where = await ev.extract(f"For the concert '{name}' extract venue and sources.", Where, f"where_{i}")
            when = await ev.extract(f"For the concert '{name}' extract date and travel time.", When, f"when_{i}")
        event = ev.add_sequential(f"event_{i}", f"Event #{i + 1}: {name or 'Unnamed'}", root)
        essential = ev.add_parallel(f"event_{i}_essential", "Essential", event)
        ev.add_custom_node(bool(name and where.source_urls), f"event_{i}_has_info", "Name and sources are given", essential, critical=True)
        music = ev.add_leaf(f"event_{i}_is_concert", "Event is a concert", essential, critical=True)
        await ev.verify(f"The event '{name}' is a concert.", music, where.source_urls)
        soon = ev.add_leaf(f"event_{i}_soon", "Event is within the next two months", essential, critical=True)
        await ev.verify(f"The event '{name}' is scheduled between 2025-09-01 and 2025-11-01.", soon, where.source_urls)
        more = ev.add_parallel(f"event_{i}_more", "Additional information", event)
        place = ev.add_leaf(f"event_{i}_venue", "The venue is accurate", more)
        await ev.verify(f"The event '{name}' will take place at {where.venue}.", place, where.source_urls)
        date = ev.add_leaf(f"event_{i}_date", "The date is accurate", more)
        await ev.verify(f"The event '{name}' takes place on {when.date}.", date, where.source_urls)
        travel = ev.add_leaf(f"event_{i}_travel_accurate", "Travel time is reasonable", more)
        await ev.verify(f"The stated travel time of {when.travel_time} is reasonably accurate compared to the actual one of 25 minutes.", travel,
                        additional_instruction="The map says 25 minutes.")
""",
    {
        "names": {"names": ["Reed Night", "Harp Day"]},
        "where_0": {
            "name": "Reed Night",
            "type": "music",
            "venue": "Mill Hall",
            "source_urls": ["https://mill.example/reed"],
        },
        "where_1": {
            "name": "Harp Day",
            "type": "music",
            "venue": "Weir House",
            "source_urls": ["https://weir.example/harp"],
        },
        "when_0": {"name": "Reed Night", "date": "2025-09-12", "travel_time": "20 minutes"},
        "when_1": {"name": "Harp Day", "date": "2025-10-01", "travel_time": "30 minutes"},
    },
    r"""
gate off :: event_0_has_info|event_0 :: are given", essential, critical=True) => are given", essential, critical=False)
sources dropped :: event_0_soon :: 2025-11-01.", soon, where.source_urls => 2025-11-01.", soon
value ignored :: event_0_venue|venue :: will take place at {where.venue}. => will take place at a venue.
claim twice :: event_0_date|event_0_venue|date :: takes place on {when.date}.", date => will take place at {where.venue}.", date
never judged :: event_0_venue ::         await ev.verify(f"The event '{name}' will take =>         _ = (f"The event '{name}' will take
""",
)
PATENTS = Template(
    "patents",
    "Find three patents on sails that were published in 2024, with title, inventors and assignee, and a link to the register's page.",
    """\
    class Patent(BaseModel):
        title: str | None = None
        register_url: str | None = None
    class Patents(BaseModel):
        patents: list[Patent] = Field(default_factory=list)
    class Inventors(BaseModel):
        inventors: list[str] = Field(default_factory=list)
    class Assignee(BaseModel):
        assignee: str | None = None
    found = await ev.extract("Extract titles and addresses.", Patents, "patents")
    seen = set()
    for i, patent in enumerate((found.patents + [Patent()] * 3)[:3]):
        inventors, assignee = Inventors(), Assignee()
        if patent.title:
            inventors = await ev.extract(f"The inventors of '{patent.title}'.", Inventors, f"inventors_{i}")
            assignee = await ev.extract(f"The assignee of '{patent.title}'.", Assignee, f"assignee_{i}")
        part = ev.add_parallel(f"patent_{i}", f"Patent {i + 1}", root)
        given = bool(patent.title and patent.register_url) and patent.title not in seen
        seen.add(patent.title)
        ev.add_custom_node(given, f"patent_{i}_required_info", "Title and page are given", part, critical=True)
        limits = ev.add_parallel(f"patent_{i}_constraints", "Constraints", part)
        titled = ev.add_leaf(f"patent_{i}_title_url_match", "The page is that of the title", limits, critical=True)
        await ev.verify(f"This page is that of a patent with the title '{patent.title}'.", titled, patent.register_url)
        sails = ev.add_leaf(f"patent_{i}_sails", "It is on sails", limits, critical=True)
        await ev.verify("This patent is related to sails.", sails, patent.register_url)
        year = ev.add_leaf(f"patent_{i}_published_2024", "Published in 2024", limits, critical=True)
        await ev.verify("This patent was published in 2024.", year, patent.register_url)
        ev.add_custom_node(bool(inventors.inventors), f"patent_{i}_inventors_provided", "Inventors are given", limits, critical=True)
        who = ev.add_leaf(f"patent_{i}_inventors_accurate", "Inventors are accurately cited", limits)
        await ev.verify(f"The inventors {inventors.inventors} are accurate for this patent.", who, patent.register_url)
        owner = ev.add_leaf(f"patent_{i}_assignee_accurate", "Assignee is accurately cited", limits)
        await ev.verify(f"The assignee '{assignee.assignee}' is accurate for this patent.", owner, patent.register_url)
""",
    {
        "patents": {
            "patents": [
                {"title": f"{t} sail", "register_url": f"https://register.example/{t}"}
                for t in ("Wing", "Kite", "Gaff")
            ]
        },
        **{
            f"inventors_{i}": {"inventors": [f"Ann {w}", f"Bo {w}"]}
            for i, w in enumerate(("Orde", "Corrow", "Tamsin"))
        },
        **{
            f"assignee_{i}": {"assignee": f"{w} Works"}
            for i, w in enumerate(("Alba", "Corvo", "Dune"))
        },
    },
    r"""
gate off :: required_info|title_url_match :: are given", part, critical=True) => are given", part, critical=False)
sources dropped :: assignee_accurate :: accurate for this patent.", owner, patent.register_url => accurate for this patent.", owner
value ignored :: assignee :: The assignee '{assignee.assignee}' is accurate for this patent. => The assignee is accurate for this patent.
claim twice :: assignee_accurate|inventors_accurate|assignee :: The assignee '{assignee.assignee}' is accurate => The inventors {inventors.inventors} are accurate
inverted :: inventors_provided :: bool(inventors.inventors) => not inventors.inventors
""",
)
RULING = Template(
    "ruling",
    "Name a ruling of the Lake Court on fishing rights that was decided on or after January 1, 2022, with its judge and the vote.",
    """\
    class Ruling(BaseModel):
        case_name: str | None = None
        judge: str | None = None
        majority: int | None = None
        day_number: int | None = None
        urls: list[str] = Field(default_factory=list)
    it = await ev.extract("The ruling", Ruling, "ruling")
    top = ev.add_sequential("ruling", "The ruling", root)
    ev.add_custom_node(bool(it.case_name and it.urls), "ruling_given", "A ruling and a page", top, critical=True)
    known = ev.add_leaf("ruling_known", "It is the known ruling", top, critical=True)
    await ev.verify(f"The case '{it.case_name}' is Corrow v. Netholm.", known,
                    additional_instruction="Accept abbreviations of the parties.")
    late = ev.add_leaf("ruling_late", "Decided since 2022", top, critical=True)
    await ev.verify(f"The case '{it.case_name}' is on fishing rights and was decided on or after January 1, 2022.", late, it.urls)
    rest = ev.add_parallel("rest", "Further facts", top)
    who = ev.add_leaf("ruling_judge", "The judge is right", rest)
    await ev.verify(f"The ruling in '{it.case_name}' was written by {it.judge}.", who, it.urls)
    vote = ev.add_leaf("ruling_majority", "The majority is right", rest)
    await ev.verify(f"The ruling in '{it.case_name}' had a majority of {it.majority}.", vote, it.urls)
""",
    {
        "ruling": {
            "case_name": "Corrow v. Netholm",
            "judge": "Ilvane Orde",
            "majority": 7,
            "day_number": 3,
            "urls": ["https://court.example/1"],
        }
    },
    r"""
sources dropped :: ruling_late :: January 1, 2022.", late, it.urls => January 1, 2022.", late
value ignored :: judge :: was written by {it.judge}. => was written by a judge.
claim twice :: ruling_majority|ruling_judge|majority :: had a majority of {it.majority}. => was written by {it.judge}.
never judged :: ruling_judge ::     await ev.verify(f"The ruling in '{it.case_name}' was written =>     _ = (f"The ruling in '{it.case_name}' was written
""",
)
DISHES = Template(
    "dishes",
    "Name three dishes of the lake with fish, each with its ingredients and a recipe.",
    """\
    class Dish(BaseModel):
        name: str | None = None
        ingredients: list[str] = Field(default_factory=list)
        rating: str | None = None
        recipe_url: str | None = None
    class Dishes(BaseModel):
        dishes: list[Dish] = Field(default_factory=list)
    found = await ev.extract("The dishes", Dishes, "dishes")
    dishes = (found.dishes + [Dish()] * 3)[:3]
    names = [dish.name for dish in dishes if dish.name]
    apart = ev.add_leaf("dishes_distinct", "The dishes are distinct", root, critical=True)
    await ev.verify(f"These dishes are all different from each other: {', '.join(names)}.", apart,
                    additional_instruction="Two names of one dish are the same dish.")
    for i, dish in enumerate(dishes):
        part = ev.add_parallel(f"dish_{i}", f"Dish {i + 1}", root)
        ev.add_custom_node(bool(dish.name and dish.recipe_url), f"dish_{i}_exists", "A dish and a recipe", part, critical=True)
        fish = ev.add_leaf(f"dish_{i}_fish", "It has fish", part, critical=True)
        await ev.verify(f"The dish '{dish.name}' with the ingredients {dish.ingredients} has fish.", fish,
                        additional_instruction="Judge from the title and the ingredients alone.")
        lake = ev.add_leaf(f"dish_{i}_lake", "It is of the lake", part, critical=True)
        await ev.verify(f"'{dish.name}' is a dish of the lake.", lake, dish.recipe_url)
        recipe = ev.add_leaf(f"dish_{i}_ingredients", "The recipe has these ingredients", part)
        await ev.verify(f"The recipe of '{dish.name}' has the ingredients {dish.ingredients}.", recipe, dish.recipe_url)
""",
    {
        "dishes": {
            "dishes": [
                {
                    "name": n,
                    "ingredients": [f, "salt"],
                    "rating": "4",
                    "recipe_url": f"https://r.example/{f}",
                }
                for n, f in (("Pike pie", "pike"), ("Eel soup", "eel"), ("Smoked perch", "perch"))
            ]
        }
    },
    r"""
gate off :: dish_0_exists|dish_0_lake :: a recipe", part, critical=True) => a recipe", part, critical=False)
sources dropped :: dish_0_lake :: dish of the lake.", lake, dish.recipe_url => dish of the lake.", lake
value ignored :: ingredients :: has the ingredients {dish.ingredients}.", recipe => has ingredients.", recipe
claim twice :: dish_0_ingredients|dish_0_lake|ingredients :: The recipe of '{dish.name}' has the ingredients {dish.ingredients}. => '{dish.name}' is a dish of the lake.
always passes :: dish_0_exists|dish_0_lake :: bool(dish.name and dish.recipe_url) => dish is not None
""",
)
FOUNDERS = Template(
    "founders",
    "Who founded the newest mill and who the newest ferry of Kettleby, and in which year, from 2005 on? One of each.",
    """\
    class Founder(BaseModel):
        name: str | None = None
        year: str | None = None
        job_title: str | None = None
        urls: list[str] = Field(default_factory=list)
    class Founders(BaseModel):
        founders: list[Founder] = Field(default_factory=list)
    for key in ("mill", "ferry"):
        found = await ev.extract(f"The founders of the {key}", Founders, key)
        it = found.founders[0] if found.founders else Founder()
        part = ev.add_parallel(key, f"The founder of the {key}", root)
        ev.add_custom_node(bool(it.name and it.urls and it.year), f"{key}_given", "A name and a page", part, critical=True)
        recent = ev.add_leaf(f"{key}_recent", "From 2005 on", part, critical=True)
        await ev.verify(f"The year {it.year} is between 2005 and now.", recent)
        who = ev.add_leaf(f"{key}_founder", "It is the founder", part, critical=True)
        await ev.verify(f"{it.name} founded the newest {key} of Kettleby.", who, it.urls)
        year = ev.add_leaf(f"{key}_year", "The year is right", part)
        await ev.verify(f"{it.name} founded the {key} in {it.year}.", year, it.urls)
""",
    {
        "mill": {
            "founders": [
                {
                    "name": "Ann Orde",
                    "year": "2011",
                    "job_title": "miller",
                    "urls": ["https://mill.example/"],
                }
            ]
        },
        "ferry": {
            "founders": [
                {
                    "name": "Bo Corrow",
                    "year": "2011",
                    "job_title": "ferryman",
                    "urls": ["https://ferry.example/"],
                }
            ]
        },
    },
    r"""
gate off :: mill_given|mill|ferry_given :: a page", part, critical=True) => a page", part, critical=False)
sources dropped :: mill_year :: in {it.year}.", year, it.urls => in {it.year}.", year
value ignored :: year :: founded the {key} in {it.year}. => founded the {key} in some year.
claim twice :: mill_year|mill_founder|year :: founded the {key} in {it.year}. => founded the newest {key} of Kettleby.
test inverted :: mill_given :: bool(it.name and it.urls and it.year) => not (it.name and it.urls and it.year)
""",
)
TEMPLATES = (
    MUSEUM,
    WALKS,
    PORTS,
    OFFERS,
    PEOPLE,
    INN,
    HOSTELS,
    # As other hands write them: in steps of extractions, with helper fields and known answers.
    EVENTS,
    PATENTS,
    RULING,
    DISHES,
    FOUNDERS,
)


@dataclass
class Tally:
    """The findings of the rehearsals of all planted faults."""

    found: Counter[str] = field(default_factory=Counter)
    shown: int = 0
    missed: list[str] = field(default_factory=list)
    true: int = 0
    false: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    def add(self, name: str, kind: str, place: str, report: TaskRehearsal) -> None:
        """Add a rehearsal."""
        hits = [
            each
            for each in report.findings
            if each.kind != "case" and re.search(place, each.message)
        ]
        self.found[kind] += bool(hits)
        self.shown += any(each.kind not in OFTEN_WRONG for each in hits)
        self.lines += [len(hits)] if hits else []
        if not hits:
            self.missed.append(f"{name}: {kind} ({report.verdict})")
        self.true += len(hits)
        others = [each for each in report.findings if each.kind != "case" and each not in hits]
        self.false += [f"{name}, {kind}: {each.kind}: {each.message}" for each in others]


def rehearsed(
    template: Template, kind: str | None, folder: Path, *, has_perfect: bool
) -> TaskRehearsal:
    """Rehearse a template with a fault."""
    script = folder / f"{template.name}{template.suffix}"
    script.write_text(template.with_fault(kind), encoding="utf-8")
    cases = folder / "rehearsals" / template.name
    if has_perfect:
        cases.mkdir(parents=True, exist_ok=True)
        text = "\n".join(map(str, template.extract.values()))
        header = CaseHeader(expect=1.0, extract=template.extract)
        (cases / "perfect.md").write_text(case_text(header, text, "planted"), encoding="utf-8")
    plan = RehearsalPlan(
        template.name, script, template.question, cases, RunSettings(judge_model="o4-mini")
    )
    return rehearse_task(plan)


def main() -> int:
    """Print found, missed and false findings."""
    for has_perfect, target in ((True, 0.9), (False, 0.75)):
        tally, total = Tally(), 0
        for template in TEMPLATES:
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                sound = rehearsed(template, None, folder, has_perfect=has_perfect)
                tally.false += [
                    f"{template.name}, sound: {each.kind}: {each.message}"
                    for each in sound.findings
                ]
                for kind, (_, _, place) in template.faults.items():
                    report = rehearsed(template, kind, folder, has_perfect=has_perfect)
                    tally.add(template.name, kind, place, report)
                    total += 1
        found = tally.found.total()
        title(
            f"{'with' if has_perfect else 'without'} a perfect answer: {found} of {total} found "
            f"({found / total:.0%}, target {target:.0%}), {tally.shown} without -v; {tally.true} "
            "findings true, "
            f"{len(tally.false)} false "
            f"({tally.true / (tally.true + len(tally.false)):.0%} true, target 80%); "
            f"{sum(tally.lines) / max(len(tally.lines), 1):.1f} lines a fault"
        )
        if "-v" in sys.argv:
            for text in (
                *(f"missed: {each}" for each in tally.missed),
                *(f"false: {each}" for each in tally.false),
            ):
                title(f"    {text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
