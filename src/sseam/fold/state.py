"""The state of a reducer, and the verbs that change it without touching the text of a block."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeAlias, TypeVar, cast

import msgspec

from .. import stop, toolargs
from .._enums import quick
from .._persistent import Index, Vector
from .._text import Lots, join
from ..declared import DeclaredTool, declare
from ..dialect import Dialect, Grade
from ..errors import ProtocolError
from ..events import Done, Event, Failed, Start, UsageUpdate
from ..message import Block, Message, Usage

__all__ = [
    "Events",
    "Head",
    "Kind",
    "NOWHERE",
    "Part",
    "Settings",
    "State",
    "Step",
    "W",
    "begin",
    "count",
    "focus",
    "initial",
    "is_over",
    "note",
    "open_parts",
    "parts",
    "refocus",
    "set_head",
    "set_stop",
    "set_usage",
    "set_wire",
    "settings",
    "store",
    "unfocus",
    "update",
]

W = TypeVar("W")


Events: TypeAlias = tuple[Event, ...]


@quick
class Kind(enum.Enum):
    """What a block is, to the neutral side."""

    TEXT = "text"
    THINKING = "thinking"
    REDACTED = "redacted_thinking"
    REFUSAL = "refusal"
    TOOL = "tool_use"  # a call for the client
    SERVER = "server_tool"  # run by the provider
    OPAQUE = "opaque"  # not modelled


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a parser was asked for, the same over the whole stream.

    Attributes:
        protocol: the protocol's name; title: its name in front of error texts.
        tools: declared tools by name; none: unknown, and nothing is checked against them.
        accept: neutral stop reasons taken as an end besides `stop.ALWAYS_ACCEPTED`.
        strict: refuse soft deviations that the dialect does not list.
        dialect: what the server is known for.
        grades: the protocol's deviations by code.
    """

    protocol: str
    title: str
    tools: dict[str, DeclaredTool] = {}
    accept: frozenset[str] = frozenset()
    strict: bool = False
    dialect: Dialect = Dialect(name="")
    grades: dict[str, Grade] = {}


def settings(
    protocol: str,
    title: str,
    grades: dict[str, Grade],
    dialects: Mapping[str, Dialect],
    *,
    dialect: str | Dialect | None,
    strict: bool,
    tools: Iterable[object],
    accept: Collection[str],
) -> Settings:
    """The settings of a parser, checked.

    Raises:
        TypeError, ValueError: a tool that cannot be read, a dialect that the protocol does not have,
            a stop reason that is no neutral one.
    """
    if isinstance(accept, str):
        raise TypeError(f"accept: expected a collection of stop reasons, got the single {accept!r}")
    if unknown := set(accept) - stop.NEUTRAL:
        raise ValueError(f"accept: no neutral stop reason: {sorted(unknown)}. There are {sorted(stop.NEUTRAL)}")
    if isinstance(dialect, str):
        if dialect not in dialects:
            raise ValueError(f"dialect: {protocol} has no {dialect!r}. There are {sorted(dialects)}")
        dialect = dialects[dialect]
    return Settings(
        protocol=protocol,
        title=title,
        tools=declare(tools) if tools else {},
        accept=frozenset(accept),
        strict=strict,
        dialect=dialect or Dialect(name=""),
        grades=grades,
    )


class Part(msgspec.Struct, frozen=True, gc=False, eq=False):
    """A block as it grows.

    Attributes:
        delta: the neutral class of its deltas, None once it has ended or where it has none.
        accepts: the wire's class of its deltas, as the reducer named it; None once it has ended.
        index: its neutral index; key: the wire's own index or key.
        kind: what it is; wire: the wire's word for it.
        fields: what else is known: `id`, `name`, `input` of a call, `custom` if that is free text,
            `toolset` if its tool was declared only as part of one; `signature`, `citations`, `extra`;
            `raw` of a block kept as it came.
        lots, lot, used: the fragments that its deltas gave, see `sseam._text`. While the block is
            in focus the state's `used` counts.
        block: the finished block, once it has ended and can be used.
        fault: why the call cannot be used, once it has ended so.
        started_at_end: how many blocks had started when it ended.
    """

    delta: type[Any] | None
    accepts: type[Any] | None
    index: int
    key: int | str
    kind: Kind
    wire: str
    fields: dict[str, Any]
    lots: Lots | None
    lot: list[str]
    used: int = 0
    block: Block | None = None
    fault: toolargs.BadArguments | None = None
    started_at_end: int | None = None

    @property
    def text(self) -> str:
        """The joined fragments."""
        return join(self.lots, self.lot, self.used)

    @property
    def arrived(self) -> bool:
        """Whether any fragment came at all; an empty one counts."""
        return self.lots is not None or self.used > 0

    @property
    def ended(self) -> bool:
        """Whether the block has ended, usable or not."""
        return self.started_at_end is not None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Part) and self._value() == other._value()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.index, self.used))

    def _value(self) -> tuple[object, ...]:
        shared = ("lots", "lot")
        own = (getattr(self, name) for name in self.__struct_fields__ if name not in shared)
        return (self.text, *own)


class Head(msgspec.Struct, frozen=True):
    """What concerns the message and not one block.

    Attributes:
        settings: see there.
        begun: the start event was given.
        id, model, raw: of the message, see `Message`.
        usage: token counts so far, None while none came.
        reason, raw_reason: the stop reason so far.
        deviations: how often each was seen.
        started: how many blocks started; open: how many of them have not ended; calls: how many
            ended as a call that can be used.
        call_ids: the ids of the calls so far, each with its block's index.
        fault: index of a block whose call is invalid and not yet judged.
        alternatives: the messages of further choices, set before the end.
        result: the terminal event, once there is one.
    """

    settings: Settings
    call_ids: Index[str]
    begun: bool = False
    id: str = ""
    model: str = ""
    raw: dict[str, Any] = {}
    usage: Usage | None = None
    reason: str | None = None
    raw_reason: str | None = None
    deviations: dict[str, int] = {}
    started: int = 0
    open: int = 0
    calls: int = 0
    fault: int | None = None
    alternatives: tuple[Message, ...] = ()
    result: Done | Failed | None = None


class State(msgspec.Struct, Generic[W], frozen=True, eq=False):
    """A reducer's state: the protocol's own part and the common one.

    Attributes:
        focus: the block touched last, as it was when it came into focus or last changed but by
            growing; `NOWHERE` before the first block and after the last.
        used: how many fragments of the open lot of `focus` are this state's own.
        wire: what only the protocol's reducer knows.
        head: what concerns the message.
        stored: every block by neutral index; stale at `focus.index`.
    """

    focus: Part
    used: int
    wire: W
    head: Head
    stored: Vector[Part]

    @property
    def part(self) -> Part:
        """The block in focus, with all that it has grown."""
        focus = self.focus
        return focus if focus.used == self.used else msgspec.structs.replace(focus, used=self.used)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and self._value() == cast("State[Any]", other)._value()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.focus.index, self.used))

    def _value(self) -> tuple[object, ...]:
        return (self.focus.index, self.wire, self.head, tuple(parts(self)))


Step: TypeAlias = tuple[State[W], Events]


NOWHERE = Part(None, None, -1, "", Kind.OPAQUE, "", {}, None, [], started_at_end=0)


def initial(settings: Settings, wire: W) -> State[W]:
    """The state before the first event."""
    return State(NOWHERE, 0, wire, Head(settings, Index()), Vector())


def is_over(state: State[Any]) -> bool:
    """Whether the terminal event was given."""
    return state.head.result is not None


def set_wire(state: State[W], wire: W) -> State[W]:
    """The state with another protocol part."""
    return State(state.focus, state.used, wire, state.head, state.stored)


def set_head(state: State[W], **fields: Any) -> State[W]:
    """The state with other fields of its head."""
    head = msgspec.structs.replace(state.head, **fields)
    return State(state.focus, state.used, state.wire, head, state.stored)


def begin(
    state: State[W],
    wire: W,
    *,
    id: str = "",
    model: str = "",
    raw: dict[str, Any] | None = None,
    usage: Usage | None = None,
) -> Step[W]:
    """The message begins, with token counts where it has some. `wire` is the protocol part of the next state."""
    head = msgspec.structs.replace(state.head, begun=True, id=id, model=model, raw=raw or {}, usage=usage)
    caused = (Start(id, model),) if usage is None else (Start(id, model), UsageUpdate(usage))
    return State(state.focus, state.used, wire, head, state.stored), caused


def set_usage(state: State[W], wire: W, usage: Usage) -> Step[W]:
    """Token counts came; they replace the earlier ones. `wire` is the protocol part of the next state."""
    head = msgspec.structs.replace(state.head, usage=usage)
    return State(state.focus, state.used, wire, head, state.stored), (UsageUpdate(usage),)


def count(raw: Any, key: str) -> int | None:
    """The whole number that `raw` reports under `key`, None where it reports none."""
    value: Any = raw.get(key) if type(raw) is dict else None  # pyright: ignore
    return value if type(value) is int else None  # pyright: ignore[reportUnknownArgumentType]


def set_stop(state: State[W], wire: W, reason: str, raw_reason: str) -> State[W]:
    """The stop reason came. No block is in focus any more: a delta that comes now fits none."""
    head = msgspec.structs.replace(state.head, reason=reason, raw_reason=raw_reason)
    return State(NOWHERE, 0, wire, head, store(state))


def note(state: State[W], code: str) -> State[W]:
    """Count a deviation, or refuse it: see `dialect.Grade`."""
    settings = state.head.settings
    grade = settings.grades[code]
    if code not in settings.dialect.codes:
        if grade == "gated":
            raise ProtocolError(f"deviation {code!r} is allowed only for a dialect that is known for it")
        if grade == "soft" and settings.strict:
            raise ProtocolError(f"deviation {code!r} is refused in strict mode")
    seen = state.head.deviations
    return set_head(state, deviations={**seen, code: seen.get(code, 0) + 1})


def parts(state: State[Any]) -> Iterator[Part]:
    """Every block in its newest version, by index."""
    focused = state.part
    for part in state.stored:
        yield focused if part.index == focused.index else part


def open_parts(state: State[Any]) -> Iterator[Part]:
    """The blocks that have not ended."""
    return (part for part in parts(state) if not part.ended)


def focus(state: State[W], index: int) -> State[W]:
    """The state with block `index` in focus."""
    if state.focus.index == index:
        return state
    stored = store(state)
    part = stored[index]
    return State(part, part.used, state.wire, state.head, stored)


def unfocus(state: State[W]) -> State[W]:
    """The state with no block in focus: a delta finds none that it fits."""
    return State(NOWHERE, 0, state.wire, state.head, store(state))


def store(state: State[Any]) -> Vector[Part]:
    part = state.part
    return state.stored if part is NOWHERE else state.stored.replace(part.index, part)


def refocus(state: State[W], part: Part) -> State[W]:
    """The state with `part`, a newer version of the block in focus."""
    return State(part, part.used, state.wire, state.head, state.stored)


def update(state: State[W], **fields: Any) -> State[W]:
    """The state with further `fields` of the block in focus."""
    part = state.part
    return refocus(state, msgspec.structs.replace(part, fields={**part.fields, **fields}))
