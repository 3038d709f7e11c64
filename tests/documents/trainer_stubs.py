"""The parts of NeMo Gym and OpenEnv that recipes use, with the fields of their wire forms."""

import sys
from types import ModuleType

from openai.types.responses import Response
from pydantic import BaseModel, ConfigDict


class BaseVerifyRequest(BaseModel):
    """A rollout that NeMo Gym posts to ``/verify``."""

    responses_create_params: dict
    response: Response


class BaseVerifyResponse(BaseVerifyRequest):
    """The reply: the reward must be a number."""

    reward: float
    mask_sample: bool = False
    failure_kind: str | None = None
    failure_reason: str | None = None


class SimpleResourcesServer:
    """Serves ``verify`` in NeMo Gym."""


class Action(BaseModel):
    """An action that OpenEnv's server has read; it refuses other fields."""

    model_config = ConfigDict(extra="forbid")


class Observation(BaseModel):
    """An observation of OpenEnv, whose reward may be missing."""

    model_config = ConfigDict(extra="forbid")
    done: bool = False
    reward: float | None = None

    def wire(self):
        """Return the reply to ``/step``: reward and end stand beside the observation."""
        fields = self.model_dump(exclude={"done", "reward"})
        return {"observation": fields, "reward": self.reward, "done": self.done}


class State(BaseModel):
    """The state of an episode."""

    episode_id: str | None = None


class Environment:
    """An environment that OpenEnv serves."""


def create_app(environment, action, observation, env_name):
    """Return what the server would serve."""
    return environment, action, observation, env_name


def install(monkeypatch):
    """Let recipes import the stubs by the names of the packages."""
    modules = {
        "nemo_gym.base_resources_server": (
            BaseVerifyRequest,
            BaseVerifyResponse,
            SimpleResourcesServer,
        ),
        "openenv.core.env_server": (Action, Environment, Observation, State, create_app),
    }
    for name, members in modules.items():
        module = ModuleType(name)
        for member in members:
            setattr(module, member.__name__, member)
        packages = name.split(".")
        for depth in range(1, len(packages)):
            package = ".".join(packages[:depth])
            monkeypatch.setitem(sys.modules, package, ModuleType(package))
        monkeypatch.setitem(sys.modules, name, module)
