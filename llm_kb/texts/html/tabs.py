"""Tabs in a web page: which label belongs to which panel. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from llm_kb.texts.html.tree import TEXT, Element

_REFERENCES = ("aria-controls", "data-bs-target", "data-target", "href")
_TAB = re.compile(r"(?:^|[-_ ])tab(?:-?(?:link|button|btn|label)s?)?(?: |$)", re.IGNORECASE)
_MAX_CLIMB = 5
"""How far around a list of labels, and how deep behind it, their panels are looked for."""


@dataclass(slots=True)
class Tabs:
    """The labels of tabs, each above its panel."""

    labels: dict[int, list[str]] = field(default_factory=dict)
    """The texts of the labels, by the identity of the panel."""
    placed: set[int] = field(default_factory=set)
    """The identities of the elements of these labels."""
    loose: set[int] = field(default_factory=set)
    """Those of labels whose panels were not found: they stay where they are."""


def find_tabs(root: Element) -> Tabs:
    """Return the tabs of a page: by roles, by references, or by radio buttons with labels."""
    tabs = Tabs()
    radios = {
        e.attributes["id"]
        for e in root.find("input")
        if e.attributes.get("type", "").lower() == "radio" and e.attributes.get("id")
    }
    if not any(_is_label(element, radios) for element in root.all_elements()):
        return tabs
    around = _Surroundings.of(root, radios)
    for key, group in around.groups.items():
        by_order = _find_in_order(around.lists[key], group, around)
        panels = [around.find_panel(label) or next(by_order, None) for label in group]
        if len(group) > 1 and len(set(map(id, panels))) == 1 and panels[0] is not None:
            tabs.placed |= set(map(id, group))  # filters of one list
            continue
        for label, panel in zip(group, panels, strict=True):
            if panel is None or not panel.holds({TEXT}):
                tabs.loose.add(id(label))
                continue
            tabs.labels.setdefault(id(panel), []).append(label.peek())
            tabs.placed.add(id(label))
            # VuePress repeats it in the panel.
            tabs.placed |= {id(e) for e in panel.elements()[:1] if e.peek() == label.peek()}
    return tabs


@dataclass(slots=True)
class _Surroundings:
    """The labels of tabs in a page, and what is around them."""

    siblings: dict[int, tuple[Sequence[Element], int]] = field(default_factory=dict)
    """The elements beside each element and itself, and its place among them."""
    parents: dict[int, Element] = field(default_factory=dict)
    named: dict[str, Element] = field(default_factory=dict)
    """Elements by their ids."""
    labelled: dict[str, Element] = field(default_factory=dict)
    """Panels by the ids of their labels."""
    groups: dict[int, list[Element]] = field(default_factory=dict)
    """Labels by the identity of their list."""
    lists: dict[int, Element] = field(default_factory=dict)

    @classmethod
    def of(cls, root: Element, radios: set[str]) -> _Surroundings:
        found = cls()
        stack: list[tuple[Element, Element, Element | None]] = [(root, root, None)]
        while stack:
            element, parent, labels = stack.pop()
            attributes = element.attributes
            found.parents[id(element)] = parent
            if name := attributes.get("id"):
                found.named.setdefault(name, element)
            if attributes.get("role") == "tablist":
                labels = element
            if _is_label(element, radios) and element.peek():
                place = labels or parent
                found.groups.setdefault(id(place), []).append(element)
                found.lists[id(place)] = place
            elif by := attributes.get("aria-labelledby"):
                found.labelled.setdefault(by, element)
            children = element.elements()
            found.siblings.update({id(e): (children, at) for at, e in enumerate(children)})
            stack.extend((child, element, labels) for child in reversed(children))
        return found

    def find_panel(self, label: Element) -> Element | None:
        """Return the panel that a label refers to, or that refers to the label."""
        for name in _REFERENCES:
            value = label.attributes.get(name, "").strip()
            if value and (name == "aria-controls" or value.startswith("#")):
                found = self.named.get(value.lstrip("#"))
                if found is not None and found is not label:
                    return found
        return self.labelled.get(label.attributes.get("id", "")) if label.attributes else None


def _is_label(element: Element, radios: set[str]) -> bool:
    attributes = element.attributes
    return (
        attributes.get("role") == "tab"
        or (element.tag == "label" and attributes.get("for") in radios)
        or (element.tag == "button" and _TAB.search(attributes.get("class", "")) is not None)
        or attributes.get("data-toggle", attributes.get("data-bs-toggle")) in {"tab", "pill"}
    )


def _find_in_order(
    place: Element, group: Sequence[Element], around: _Surroundings
) -> Iterator[Element]:
    """Yield the panels of labels that refer to none: as many elements behind the labels."""
    parents = around.parents
    parent = parents[id(group[0])]
    if all(parents[id(label)] is parent for label in group):
        siblings = [e for e in parent.elements() if e.tag != "input"]
        yield from _find_beside(siblings, group)
        if len(siblings) > len(group):
            return
    for _ in range(_MAX_CLIMB):
        if id(place) not in around.siblings:
            return
        elements, at = around.siblings[id(place)]
        behind = elements[at + 1 : at + 2 * len(group) + 3]
        if panels := _match(behind, len(group)):
            yield from panels
            return
        if _with_text(behind):
            return
        place = parents[id(place)]


def _find_beside(siblings: Sequence[Element], group: Sequence[Element]) -> Iterator[Element]:
    """Yield the panels among the siblings of labels: one behind each, or all behind the last."""
    labels = {id(label) for label in group}
    if [id(e) for e in siblings[: len(group)]] == [id(label) for label in group]:
        yield from _match(siblings[len(group) :], len(group))
        return
    is_due = False
    for element in siblings:
        if id(element) in labels:
            is_due = True
        elif is_due and element.holds({TEXT}):
            yield element
            is_due = False


def _match(elements: Sequence[Element], count: int) -> Sequence[Element]:
    """Return as many elements as there are labels: these, or those inside the first."""
    filled = _with_text(elements)
    for _ in range(_MAX_CLIMB):
        inner = _with_text(filled[0].elements()) if filled else []
        if len(inner) == count > 1:
            return inner
        if len(filled) >= count:
            return filled[:count]
        if len(inner) != 1:
            return ()
        filled = inner
    return ()


def _with_text(elements: Sequence[Element]) -> list[Element]:
    return [e for e in elements if e.holds({TEXT})]
