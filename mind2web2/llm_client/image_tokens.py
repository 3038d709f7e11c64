"""How many tokens an image costs, by the rules that providers publish for high detail."""

from __future__ import annotations

import math

# Models that count patches of 32 px, 1,536 at most, times a factor.
_PATCH_FACTORS = {
    "gpt-4.1-mini": 1.62,
    "gpt-4.1-nano": 2.46,
    "gpt-5-mini": 1.62,
    "gpt-5-nano": 2.46,
    "o4-mini": 1.72,
}
_PATCH_PX = 32
_MOST_PATCHES = 1536
# Models that count tiles of 512 px: tokens for the image and for each tile. The longest fitting name counts.
_TILE_PRICES = {"gpt-4o-mini": (2833, 5667), "gpt-5": (70, 140), "o1": (75, 150), "o3": (75, 150)}
_USUAL_TILE_PRICE = (85, 170)
_TILE_PX = 512
_TILED_LONG_SIDE_PX = 2048
_TILED_SHORT_SIDE_PX = 768
# Claude counts pixels.
_CLAUDE_LONG_SIDE_PX = 1568
_CLAUDE_PX_A_TOKEN = 750


def image_tokens(model_name: str, width_px: int, height_px: int) -> int:
    """Return the tokens of an image of this size; a model without a rule counts tiles as GPT-4o does."""
    # Routers put names in front: openai/gpt-4o, us.anthropic.claude-...
    name = model_name.rpartition("/")[2]
    if "claude" in name:
        return _claude_tokens(width_px, height_px)
    patched = [model for model in _PATCH_FACTORS if name.startswith(model)]
    if patched:
        return _patch_tokens(width_px, height_px, _PATCH_FACTORS[patched[0]])
    tiled = sorted((model for model in _TILE_PRICES if name.startswith(model)), key=len)
    whole, tile = _TILE_PRICES[tiled[-1]] if tiled else _USUAL_TILE_PRICE
    return whole + tile * _tiles(width_px, height_px)


def _claude_tokens(width_px: int, height_px: int) -> int:
    scale = min(1.0, _CLAUDE_LONG_SIDE_PX / max(width_px, height_px))
    return math.ceil(width_px * scale * height_px * scale / _CLAUDE_PX_A_TOKEN)


def _patch_tokens(width_px: int, height_px: int, factor: float) -> int:
    patches = math.ceil(width_px / _PATCH_PX) * math.ceil(height_px / _PATCH_PX)
    return math.ceil(min(patches, _MOST_PATCHES) * factor)


def _tiles(width_px: int, height_px: int) -> int:
    scale = min(1.0, _TILED_LONG_SIDE_PX / max(width_px, height_px))
    scale *= min(1.0, _TILED_SHORT_SIDE_PX / (min(width_px, height_px) * scale))
    # rounded, as 767.9999 px and 768 px are one
    return math.ceil(round(width_px * scale) / _TILE_PX) * math.ceil(round(height_px * scale) / _TILE_PX)
