"""Claude on Amazon Bedrock, over the official SDK (extra ``bedrock``)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from mind2web2.errors import UsageError
from mind2web2.llm_client.providers import Provider
from mind2web2.llm_client.settings import (
    ADDRESS_GIVEN,
    Setting,
    check_keys,
    checked_service,
    named_endpoint,
    require_all,
    variable,
)
from mind2web2.plugins.anthropic.claude import ClaudeTransport, connected, package


def bedrock_transport(base_url: str | None, _api_key: str | None) -> ClaudeTransport:
    """Return a connection to Bedrock; keys and region come from ``AWS_...`` variables.

    Args:
        base_url: default the region's own address.

    Raises:
        UsageError: a key, the region or the optional package is missing.
    """
    keys = {name: variable(name) for name in ("AWS_ACCESS_KEY", "AWS_SECRET_KEY")}
    region = variable("AWS_REGION")
    require_all({**keys, "AWS_REGION": region})
    check_keys({"AWS_REGION": region})
    address = _address(base_url)
    session_token = variable("AWS_SESSION_TOKEN")
    check_keys({"AWS_SESSION_TOKEN": session_token})
    service = checked_service("bedrock_anthropic", address, keys)
    service = replace(service, secrets=(*service.secrets, session_token))
    anthropic = package("anthropic", "Bedrock", "bedrock")
    # It signs the requests; the SDK imports it only with the first one.
    package("boto3", "Bedrock", "bedrock")
    connect = partial(
        connected,
        anthropic.AsyncAnthropicBedrock,
        address.value,
        service.secrets,
        aws_access_key=keys["AWS_ACCESS_KEY"],
        aws_secret_key=keys["AWS_SECRET_KEY"],
        aws_session_token=session_token or None,
        aws_region=region,
    )
    try:
        return ClaudeTransport(connect, service, lists_models=False)
    except ValueError as error:  # the SDK reads a bearer token, too, and takes one of the two
        raise UsageError(
            f"unset AWS_BEARER_TOKEN_BEDROCK to use AWS_ACCESS_KEY: {error}"
        ) from error


def _address(base_url: str | None) -> Setting:
    if base_url:
        return Setting(base_url, ADDRESS_GIVEN)
    region = variable("AWS_REGION")
    address = f"https://bedrock-runtime.{region}.amazonaws.com" if region else ""
    return Setting(address, "AWS_REGION")


PROVIDER = Provider(
    connect=bedrock_transport,
    endpoint=lambda base_url: named_endpoint("bedrock_anthropic", _address(base_url)),
)
