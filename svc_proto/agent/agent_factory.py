"""Factory of the agent and its parts, called once at the start of a server.

    parts = build_agent(engine, AgentConfig(home=..., relay_url=..., relay_token=..., brand=...))
    outcome = yield from parts.agent.run(turn, host)

Pairing commands and `/mcp` are answered without an agent, other turns without a `model` by the built-in agent. That
agent pauses `pace` seconds between two words, so that streaming is visible.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import define, field, frozen

from svc_proto.agent import mcp_command
from svc_proto.agent.approval_memory import ApprovalMemory
from svc_proto.agent.builtin_agent import BuiltinAgent
from svc_proto.agent.interface import Agent, AgentHost, Turn, TurnOutcome
from svc_proto.agent.memory import AgentMemory
from svc_proto.agent.model_agent import ModelAgent
from svc_proto.agent.model_client import DEFAULT_MODEL_LIMITS, ModelCallLimits
from svc_proto.agent.model_profiles import ModelProfiles
from svc_proto.agent.pair_command import PairCommand
from svc_proto.agent.sentence_actions import SentenceActions
from svc_proto.agent.sentences import SentenceParser
from svc_proto.agent.skills import SkillLibrary
from svc_proto.agent.tool_selection import ToolPolicy
from svc_proto.agent.toolbox import ALL, Toolbox
from svc_proto.agent.tools.demo import demo_tools
from svc_proto.agent.tools.memory_tools import memory_tools, skill_tools
from svc_proto.agent.tools.owner_question import owner_question
from svc_proto.agent.tools.phone_tools import phone_tools
from svc_proto.basics.brand import SVC, Brand
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.service_clients.phone_control import RelayPhoneControl

if TYPE_CHECKING:
    from svc_proto.agent.mcp_servers import McpServers

__all__ = ["AgentConfig", "AgentParts", "build_agent"]


@frozen(kw_only=True)
class AgentConfig:
    """Configuration of `build_agent`: home, relay, brand, tools, limits of model calls, pace and sentences."""

    home: str  # of the service: `<home>/skills`; memory and approvals are in the runtime's state folder
    relay_url: str = "http://127.0.0.1:8767"
    relay_token: str = field(default="", repr=False)  # empty: the stored one, or pair over loopback at the first use
    brand: Brand = SVC
    tools: ToolPolicy = ALL
    pace: float = 0.02  # s between two words of the built-in agent
    limits: ModelCallLimits = DEFAULT_MODEL_LIMITS
    sentences: SentenceParser | None = None  # of the built-in agent; None: it runs commands only


@define(eq=False)
class AgentParts:
    """The agent and its parts. `servers` is None until `use_servers` is given an entry."""

    agent: Agent = field(init=False)
    toolbox: Toolbox
    memory: AgentMemory
    skills: SkillLibrary
    approvals: ApprovalMemory
    profiles: ModelProfiles
    _engine: Engine
    servers: McpServers | None = field(default=None, init=False)

    def use_servers(self, found: Mapping[str, object]) -> None:
        """Configure the MCP servers from `found`, the entries of `mcp_servers` in the configuration file.

        Without entries, servers of an earlier call are removed; if there was none, nothing is done.
        """
        if self.servers is None and found:
            from svc_proto.agent.mcp_servers import McpServers  # noqa: PLC0415, RUF100 - loaded at the first use

            self.servers = self.toolbox.dynamic_tools = McpServers(self._engine)
        if self.servers is not None:
            self.servers.configure(found)

    def stop(self) -> None:
        """Stop the MCP servers, if any are configured."""
        if self.servers is not None:
            self.servers.stop()


def build_agent(engine: Engine, config: AgentConfig) -> AgentParts:
    """Create the agent and its parts, without reading a file or connecting to a server."""
    memory = AgentMemory(engine)
    skills = SkillLibrary(engine, config.home)
    link = RelayPhoneControl(engine, config.relay_url, config.relay_token)
    own = (memory_tools(memory), skill_tools(skills), owner_question(), demo_tools(engine))
    toolsets = (phone_tools(link, config.brand), *own)
    approvals = ApprovalMemory(engine)
    toolbox = Toolbox(engine, toolsets, approvals, config.tools)
    sentences = None if config.sentences is None else SentenceActions(link, config.sentences)
    builtin = BuiltinAgent(engine, toolbox, memory, sentences, pace=config.pace)
    profiles = ModelProfiles(engine)
    model = ModelAgent(engine, toolbox, memory, skills, profiles, config.limits)
    pairing = PairCommand(engine, config.relay_url, config.brand)
    parts = AgentParts(toolbox, memory, skills, approvals, profiles, engine)
    parts.agent = _AgentSelector(model, builtin, pairing, parts)
    return parts


class _AgentSelector:
    """Agent that passes a turn to the model's agent if the turn has a model, else to the built-in one.

    The pairing command and `/mcp` are answered without either.
    """

    def __init__(self, model: ModelAgent, builtin: BuiltinAgent, pairing: PairCommand, parts: AgentParts) -> None:
        self._parts = parts
        self._pairing = pairing
        self._model = model
        self._builtin = builtin

    def run(self, turn: Turn, host: AgentHost) -> Flow[TurnOutcome]:
        """Answer one turn."""
        if self._pairing.matches(turn):
            return self._pairing.run(turn, host)
        if mcp_command.matches(turn):
            return mcp_command.run(self._parts.servers, turn, host)
        return self._builtin.run(turn, host) if turn.model is None else self._model.run(turn, host)
