"""The errors that users see for failed requests to a judge: one table of reasons and cures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from mind2web2.errors import (
    ContextTooLongError,
    JudgeAccessError,
    JudgeError,
    JudgeRequestError,
    JudgeUnavailableError,
)
from mind2web2.llm_client.failures import RequestFailedError
from mind2web2.llm_client.settings import Service

_SHORTER = (
    "name a model with a longer context (--judge_model), or show it less of each page: "
    "--no_screenshots, or max_text_chars in the EvaluatorConfig of the script"
)


@dataclass(frozen=True)
class _Reason:
    """A reason for which a judge refuses requests.

    Args:
        is_why: tells whether it is the reason of a failure.
        cure: what the user can do, with the names of key and address and the model.
        is_of_access: key, account, model or address are wrong; otherwise the request is.
    """

    is_why: Callable[[RequestFailedError], bool]
    cure: str
    is_of_access: bool


# The first that applies is the reason. A firewall may reject a single request with 403 or 404 for
# its content, so these do not concern all requests.
_REASONS = (
    _Reason(lambda failure: failure.is_final, "check {address}", is_of_access=True),
    _Reason(
        lambda failure: failure.status == 401, "the key is refused, check {key}", is_of_access=True
    ),
    _Reason(
        lambda failure: failure.status == 403,
        "the key has no access, or a firewall refuses the request: check {key} and the account's "
        "access to {model}",
        is_of_access=True,
    ),
    _Reason(
        lambda failure: failure.status == 404,
        "no such model or address, check the judge model and {address}",
        is_of_access=True,
    ),
    _Reason(
        lambda failure: failure.is_quota_spent,
        "the quota of {key} is spent, top up the account or use another key",
        is_of_access=True,
    ),
    _Reason(
        lambda failure: failure.status == 429,
        "one request exceeds the rate limit of {key}, raise it or use another model",
        is_of_access=False,
    ),
    _Reason(
        lambda _: True,
        "the request is refused, check the judge model and its parameters",
        is_of_access=False,
    ),
)


def judge_error(failure: RequestFailedError, service: Service, model: str) -> JudgeError:
    """Return the error for a final failure; it names the cure."""
    where = f"judge {model} at {service.shown}"
    if failure.is_too_long:
        return ContextTooLongError(f"{where}: request too long: {failure}; {_SHORTER}")
    if failure.can_pass:
        wish_s = failure.retry_after_s
        wish = "" if wish_s is None else f" (it asks to wait {wish_s:g} s)"
        text = f"{where} unavailable: {failure}{wish}; try again later"
        return JudgeUnavailableError(text, is_outage=failure.is_outage)
    reason = next(each for each in _REASONS if each.is_why(failure))
    cure = reason.cure.format(key=service.key_name, address=service.address_name, model=model)
    if failure.status == 404 and not urlsplit(service.address).path:
        cure += f" (did you mean {service.address}/v1?)"
    text = f"{where}: {cure}: {failure}"
    if reason.is_of_access:
        return JudgeAccessError(text, is_for_all=failure.is_for_all)
    return JudgeRequestError(text)
