"""Collections that change into others and stay what they were."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sseam._persistent import Index, Vector


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 200)), max_size=150))
def test_a_vector_behaves_as_a_list_and_keeps_its_past(steps: list[tuple[bool, int]]) -> None:
    vector: Vector[int] = Vector()
    model: list[int] = []
    past = [(vector, [])]
    for append, number in steps:
        if append or not model:
            vector, model = vector.append(number), [*model, number]
        else:
            at = number % len(model)
            vector, model = vector.replace(at, -number), [*model[:at], -number, *model[at + 1 :]]
        past.append((vector, model))
    for then, items in past:
        assert list(then) == items
        assert len(then) == len(items)
        assert [then[at] for at in range(len(items))] == items
    again: Vector[int] = Vector()
    for item in model:
        again = again.append(item)
    assert again == vector
    assert not again != vector  # noqa: SIM202
    assert hash(again) == hash(vector)
    assert vector != model


def test_an_index_forks() -> None:
    empty: Index[str] = Index()
    one = empty.add("a", 0)
    two = one.add("b", 1)
    fork = one.add("c", 1).add("b", 5)
    assert [index.get("b") for index in (empty, one, two, fork)] == [None, None, 1, 5]
    assert [index.get("a") for index in (empty, one, two, fork)] == [None, 0, 0, 0]
    assert two.get("c") is None
    again = empty.add("d", 0)  # one first map begins every stream
    assert (again.get("a"), one.get("d"), again.get("d")) == (None, None, 0)
    assert fork.get("c") == 1
    assert two != fork
    assert two == Index[str]().add("a", 0).add("b", 1)
    assert hash(two) == hash(Index[str]().add("a", 0).add("b", 1))
    assert two != {"a": 0, "b": 1}
