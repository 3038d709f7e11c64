"""Claims that are stronger than their page: of possibility, scope, time, precision and cause.

Each page says something strongly of one subject, weakly of a second, and denies it of a third. In
each category strong claims are true as often as they are false, and so are weak ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from invented.book import Book


@dataclass(frozen=True)
class Subjects:
    """Three statements on one matter, and the claims on them.

    ``{town}`` and values stand for drawn ones.

    Args:
        strong: the statement of the first subject, which supports ``strong_claim`` of it.
        weak: that of the second, which supports ``weak_claim`` and leaves ``strong_claim`` open.
        denied: that of the third, which excludes both.
        subjects: as the claims name them.
    """

    title: str
    strong: str
    weak: str
    denied: str
    subjects: tuple[str, str, str]
    strong_claim: str
    weak_claim: str


_MODALITY = (
    Subjects(
        "Noise in {town}",
        "The new asphalt reduces the noise on the ring road of {town}: it was measured before and "
        "after, by {n} decibels.",
        "The earth bank may reduce the noise on the ring road of {town}; measurements will show "
        "next year whether it does.",
        "The hedge cannot reduce the noise on the ring road of {town}: it lets all of the sound "
        "through.",
        ("new asphalt", "earth bank", "hedge"),
        "The {subject} reduces the noise on the ring road of {town}.",
        "The {subject} may reduce the noise on the ring road of {town}.",
    ),
    Subjects(
        "Flood protection in {town}",
        "The storage basin keeps the cellars of {town} dry: in each of the last {n} floods no "
        "water came in.",
        "The mobile wall could keep the cellars of {town} dry; it has not been put to the test in "
        "any flood so far.",
        "The old ditch cannot keep the cellars of {town} dry: it fills up within an hour.",
        ("storage basin", "mobile wall", "old ditch"),
        "The {subject} keeps the cellars of {town} dry in floods.",
        "The {subject} could keep the cellars of {town} dry in floods.",
    ),
)
_SCOPE = (
    Subjects(
        "Vehicles of {town} Transit",
        "All {n} buses of {town} Transit have a ramp for wheelchairs.",
        "Some of the trams of {town} Transit have a ramp for wheelchairs; the older ones have "
        "none.",
        "None of the ferries of {town} Transit has a ramp for wheelchairs.",
        ("buses", "trams", "ferries"),
        "All {subject} of {town} Transit have a ramp for wheelchairs.",
        "Some {subject} of {town} Transit have a ramp for wheelchairs.",
    ),
    Subjects(
        "Schools in {town}",
        "All {n} primary schools in {town} offer lessons in swimming.",
        "Some of the grammar schools in {town} offer lessons in swimming; others lack a pool.",
        "None of the evening schools in {town} offers lessons in swimming.",
        ("primary schools", "grammar schools", "evening schools"),
        "All {subject} in {town} offer lessons in swimming.",
        "Some {subject} in {town} offer lessons in swimming.",
    ),
)
_TIME = (
    Subjects(
        "Suppliers of the {town} Hospital",
        "The {one} dairy has supplied the {town} Hospital without a break since {year}.",
        "The {two} bakery supplied the {town} Hospital in {year}. Nothing is known of the years "
        "after it.",
        "The {three} mill has never supplied the {town} Hospital.",
        ("{one} dairy", "{two} bakery", "{three} mill"),
        "The {subject} has supplied the {town} Hospital since {year}.",
        "The {subject} supplied the {town} Hospital in {year}.",
    ),
    Subjects(
        "Festivals at the {town} Theatre",
        "The {one} Festival has been held at the {town} Theatre every year since {year}.",
        "The {two} Festival was held at the {town} Theatre in {year}. Where it went after that is "
        "not recorded.",
        "The {three} Festival has never been held at the {town} Theatre.",
        ("{one} Festival", "{two} Festival", "{three} Festival"),
        "The {subject} has been held at the {town} Theatre every year since {year}.",
        "The {subject} was held at the {town} Theatre in {year}.",
    ),
)
_PRECISION = (
    Subjects(
        "Boats in {town}",
        "In the {one} harbour of {town} the wardens counted the boats one by one: there are "
        "exactly {round}.",
        "In the {two} harbour of {town} there are about {round} boats, by an estimate from the "
        "shore.",
        "In the {three} harbour of {town} there are no boats at all, as it has fallen dry.",
        ("{one} harbour", "{two} harbour", "{three} harbour"),
        "There are exactly {round} boats in the {subject} of {town}.",
        "There are about {round} boats in the {subject} of {town}.",
    ),
    Subjects(
        "Manuscripts in {town}",
        "The {one} archive of {town} has catalogued its manuscripts: there are precisely {round}.",
        "The {two} archive of {town} owns roughly {round} manuscripts; they have not been counted.",
        "The {three} archive of {town} owns no manuscripts.",
        ("{one} archive", "{two} archive", "{three} archive"),
        "The {subject} of {town} owns precisely {round} manuscripts.",
        "The {subject} of {town} owns roughly {round} manuscripts.",
    ),
)
_CAUSE = (
    Subjects(
        "Damage to the {town} Viaduct",
        "Salt causes rust on the {town} Viaduct: in the laboratory, rails rusted with salt and "
        "did not without it.",
        "Traffic goes together with rust on the {town} Viaduct: where there is more of it, there "
        "is more rust. "
        "Whether it is the cause has not been found out.",
        "Bird droppings have nothing to do with rust on the {town} Viaduct, neither as a cause "
        "nor by their places.",
        ("salt", "traffic", "bird droppings"),
        "On the {town} Viaduct, rust is caused by {subject}.",
        "On the {town} Viaduct, rust is more frequent where there is more {subject}.",
    ),
    Subjects(
        "Fish in Lake {town}",
        "Lime raises the number of trout in Lake {town}: in a trial with {n} ponds, only those "
        "with lime had more.",
        "Shade is associated with the number of trout in Lake {town}: shady bays have more of "
        "them. The survey "
        "cannot tell whether shade is the reason.",
        "Boat traffic is unrelated to the number of trout in Lake {town}: it neither changes it "
        "nor goes with it.",
        ("lime", "shade", "boat traffic"),
        "In Lake {town}, more {subject} leads to more trout.",
        "In Lake {town}, more {subject} goes together with more trout.",
    ),
)


def _pairs(book: Book, name: str, kinds: tuple[Subjects, ...]) -> None:
    """Add three kinds of pairs.

    These are two pairs of strong twins, two of a weak claim and its strong one, and two of a strong
    claim and a weak one.
    """
    world = book.world
    # The subject and the force of the true claim and of the false one.
    twins = (((0, 0), (1, 0)), ((1, 1), (1, 0)), ((0, 0), (2, 1)))
    for number in range(2 * len(twins)):
        about = kinds[number % len(kinds)]
        drawn = {
            "town": world.place(),
            "one": world.place(),
            "two": world.place(),
            "three": world.place(),
            "n": str(world.number(11, 38)),
            "round": str(10 * world.number(21, 89)),
            "year": str(world.number(2004, 2019)),
        }
        said = [text.format(**drawn) for text in (about.strong, about.weak, about.denied)]
        url = book.page(
            f"{world.place()} Observer", about.title.format(**drawn), *world.order(said)
        )
        claims = []
        for place, weakness in twins[number % len(twins)]:
            claim = (about.strong_claim, about.weak_claim)[weakness]
            subject = about.subjects[place].format(**drawn)
            claims.append(claim.format(subject=subject, **drawn))
        shows = [said[place] for place, _ in twins[number % len(twins)]]
        true, false = claims
        book.pair(f"force: {name}", true, false, url, shows=shows)


CATEGORIES: tuple[Callable[[Book], None], ...] = tuple(
    partial(_pairs, name=name, kinds=kinds)
    for name, kinds in (
        ("may or does", _MODALITY),
        ("some or all", _SCOPE),
        ("in or since", _TIME),
        ("about or exactly", _PRECISION),
        ("goes with or causes", _CAUSE),
    )
)
