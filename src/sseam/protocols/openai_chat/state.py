"""What the reducer of Chat Completions knows besides the common part: the calls and blocks of a choice."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, field

from ... import fold
from ..._persistent import Index, Vector
from ..._text import Text
from .scanner import Scan

__all__ = ["Call", "Calls", "Kept", "State", "Step", "Stream", "Wire", "set_calls", "set_own"]


def _no_words() -> Index[str]:
    return Index()


def _no_numbers() -> Index[int]:
    return Index()


class Call(msgspec.Struct, frozen=True, gc=False):
    """A call as its entries build it up.

    Attributes:
        number: its place among the choice's calls.
        label: the wire's index at its start, which is a label and no place; None where there was none.
        kind: "function", "custom" (free text, to which no test of JSON applies) or "legacy" (`function_call`).
        id, latest_id: the first id, which stays, and the last one seen.
        name: None until it came.
        scan: how far its JSON has come.
        held: text that its block was not given yet.
        trailing: text behind the end of its JSON value.
        block: neutral index of its block, None until it started.
        extra: fields to send back with it.
        named_again: its name came again behind its whole arguments, as the start of another like it would.
    """

    number: int
    label: int | None
    kind: Literal["function", "custom", "legacy"]
    id: str | None = None
    latest_id: str | None = None
    name: str | None = None
    scan: Scan = Scan()
    held: Text = field(default_factory=Text.empty)
    trailing: Text = field(default_factory=Text.empty)
    block: int | None = None
    extra: dict[str, Any] = {}
    named_again: bool = False

    def scanned(self, scan: Scan) -> Call:
        """This call with more of its text read."""
        return Call(
            self.number,
            self.label,
            self.kind,
            self.id,
            self.latest_id,
            self.name,
            scan,
            self.held,
            self.trailing,
            self.block,
            self.extra,
            self.named_again,
        )

    @property
    def empty(self) -> bool:
        """Whether no argument text came yet."""
        return not self.scan.begun

    @property
    def closed(self) -> bool:
        """Whether its text holds a whole JSON value."""
        return self.scan.closed


class Calls(msgspec.Struct, frozen=True, gc=False):
    """The calls of a choice, and by what an entry finds its call.

    Attributes:
        all: every call by number; stale at `focus.number`.
        focus: the call touched last, the newest version of it; None before the first.
        direct: the index that an unnamed fragment for `focus` has, None where it must be looked up.
        ids, owners: an id to its place in `owners`, which holds the numbers of the calls that had it.
        labels, latest: an index to its place in `latest`, which holds the number of its latest call.
        open: how many calls are not closed; open_sum: the sum of their numbers, so that a single
            one is known by it.
        started: how many calls have a block. They start in order.
    """

    all: Vector[Call] = Vector()
    focus: Call | None = None
    direct: int | None = None
    ids: Index[str] = field(default_factory=_no_words)
    owners: Vector[Vector[int]] = Vector()
    labels: Index[int] = field(default_factory=_no_numbers)
    latest: Vector[int] = Vector()
    open: int = 0
    open_sum: int = 0
    started: int = 0

    def __getitem__(self, number: int) -> Call:
        focus = self.focus
        return focus if focus is not None and focus.number == number else self.all[number]

    def __len__(self) -> int:
        return len(self.all)

    def having(self, id: str) -> Vector[int]:
        """Numbers of the calls that had this id."""
        place = self.ids.get(id)
        return Vector() if place is None else self.owners[place]

    def at(self, label: int | None) -> Call | None:
        """The latest call with this index."""
        place = None if label is None else self.labels.get(label)
        return None if place is None else self[self.latest[place]]

    def only_open(self) -> Call | None:
        """The one call that is not closed, None where there are none or several."""
        return self[self.open_sum] if self.open == 1 else None

    def put(self, call: Call) -> Calls:
        """These calls with a newer version of one, or a new one."""
        stored, focus = self.all, self.focus
        if call.number == len(stored):
            old_open = 0
            stored = stored.append(call)
        else:
            old_open = not self[call.number].closed
        if focus is not None and focus.number != call.number:
            stored = stored.replace(focus.number, focus)
        opened = (not call.closed) - old_open
        return msgspec.structs.replace(
            self,
            all=stored,
            focus=call,
            direct=None,
            open=self.open + opened,
            open_sum=self.open_sum + opened * call.number,
        )

    def refocus(self, call: Call) -> Calls:
        """These calls with a newer version of the one in focus, open as it was."""
        return Calls(
            self.all,
            call,
            self.direct,
            self.ids,
            self.owners,
            self.labels,
            self.latest,
            self.open,
            self.open_sum,
            self.started,
        )

    def having_extra(self, number: int, extra: dict[str, Any]) -> Calls:
        """These calls with more fields to send back with one. What is in focus stays so."""
        call = self[number]
        call = msgspec.structs.replace(call, extra={**call.extra, **extra})
        if self.focus is not None and self.focus.number == number:
            return msgspec.structs.replace(self, focus=call)
        return msgspec.structs.replace(self, all=self.all.replace(number, call))

    def having_started(self, number: int) -> Calls:
        """These calls with all up to `number` started."""
        return msgspec.structs.replace(self, started=number + 1)

    def name_by(self, id: str, number: int) -> Calls:
        """These calls with `id` known to be one of a call's."""
        place = self.ids.get(id)
        if place is None:
            place = len(self.owners)
            owners = self.owners.append(Vector[int]().append(number))
            return msgspec.structs.replace(self, ids=self.ids.add(id, place), owners=owners)
        owners = self.owners[place]
        if owners[len(owners) - 1] == number:
            return self
        return msgspec.structs.replace(self, owners=self.owners.replace(place, owners.append(number)))

    def label_as(self, label: int, number: int) -> Calls:
        """These calls with the call as the latest one at an index."""
        place = self.labels.get(label)
        if place is None:
            place = len(self.latest)
            return msgspec.structs.replace(
                self, labels=self.labels.add(label, place), latest=self.latest.append(number)
            )
        return msgspec.structs.replace(self, latest=self.latest.replace(place, number))


class Stream(msgspec.Struct, frozen=True):
    """What concerns all choices; kept with choice 0.

    Attributes:
        chunk_id: the id of the last chunk as it came, UNSET before the first.
        usage_rank: how good the place was that the usage came from, 0 while none came.
        places: the index of each other choice to its place in `others`.
        others: their indexes and states, each folded like a message of its own.
    """

    chunk_id: Any = UNSET
    usage_rank: int = 0
    places: Index[int] = field(default_factory=_no_numbers)
    others: Vector[tuple[int, fold.State[Wire]]] = Vector()

    def put(self, index: int, other: fold.State[Wire]) -> Stream:
        """This with a newer state of a choice."""
        place = self.places.get(index)
        if place is not None:
            others = self.others.replace(place, (index, other))
            return Stream(self.chunk_id, self.usage_rank, self.places, others)
        places = self.places.add(index, len(self.others))
        return Stream(self.chunk_id, self.usage_rank, places, self.others.append((index, other)))


class Kept(msgspec.Struct, frozen=True):
    """The open blocks that are kept as they come.

    Attributes:
        places: the wire's name of each to its neutral index.
        blocks: their neutral indexes, in order.
    """

    places: Index[str] = field(default_factory=_no_words)
    blocks: Vector[int] = Vector()

    def add(self, name: str, index: int) -> Kept:
        """These with one more, which started last."""
        return Kept(self.places.add(name, index), self.blocks.append(index))


class Wire(msgspec.Struct, frozen=True):
    """The reducer's own part of the state of a choice.

    Attributes:
        calls: see there.
        prose: neutral index of the open block of text, reasoning or refusal, None where there is none.
        kept: see there.
        finish: the finish reason, the worst of several.
        roles: how often a role came, up to 2.
        logprobs: the token objects of all deltas, `content` and `refusal` apart.
        stream: see there.
    """

    calls: Calls = field(default_factory=Calls)
    prose: int | None = None
    kept: Kept = field(default_factory=Kept)
    finish: str | None = None
    roles: int = 0
    logprobs: tuple[Vector[Any], Vector[Any]] = (Vector(), Vector())
    stream: Stream = field(default_factory=Stream)


State: TypeAlias = fold.State[Wire]
Step: TypeAlias = fold.Step[Wire]


def set_own(state: State, **fields: Any) -> State:
    """The state with other fields of its own part."""
    return fold.set_wire(state, msgspec.structs.replace(state.wire, **fields))


def set_calls(state: State, calls: Calls) -> State:
    """The state with other calls."""
    own = state.wire
    return fold.set_wire(state, Wire(calls, own.prose, own.kept, own.finish, own.roles, own.logprobs, own.stream))
