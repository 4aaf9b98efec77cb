"""The labels of tabs, which stand apart from the panels they are for. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from llm_kb.references.sources.html.tree import Element

# The panels of MkDocs Material and of sphinx-design.
_PANELS = frozenset({"tabbed-block", "sd-tab-content"})


@dataclass(slots=True)
class _Bar:
    """Labels that wait for their panels, which may be blocks of code."""

    labels: list[str]
    is_for_code: bool


class TabLabels:
    """Gives each panel its label: the one it names, else the next of the bar before it.

    Elements are shown in the order of the page; tabs may be within tabs.
    """

    def __init__(self, root: Element) -> None:
        named = (e for e in root.walk() if e.attributes.get("role") == "tab")
        self._by_id = {e.attributes["id"]: e for e in named if "id" in e.attributes}
        self._bars: list[_Bar] = []

    def take(self, element: Element) -> bool:
        """Tell whether an element is a bar of labels, and keep those for the panels that follow."""
        classes = element.classes()
        is_for_code = "tabs" in classes and any(e.tag == "label" for e in element.walk())
        if element.tag == "label" and "sd-tab-label" in classes:
            labels = [element]
        elif is_for_code or "tabbed-labels" in classes:
            labels = [e for e in element.walk() if e.tag == "label"]
        elif element.attributes.get("role") == "tablist":
            labels = [e for e in element.walk() if e.attributes.get("role") == "tab"]
        else:
            return False
        texts = [" ".join(label.text().split()) for label in labels]
        self._bars.append(_Bar(texts, is_for_code))
        return True

    def label_of(self, element: Element) -> str:
        """Return the label of a panel; empty for any other element."""
        classes = element.classes()
        is_code = any(name.startswith("language-") for name in classes)
        is_panel = element.attributes.get("role") == "tabpanel" or not _PANELS.isdisjoint(classes)
        if not is_code and not is_panel:
            return ""
        while self._bars and not self._bars[-1].labels:
            self._bars.pop()
        takes_next = self._bars and self._bars[-1].is_for_code == (not is_panel)
        next_label = self._bars[-1].labels.pop(0) if takes_next else ""
        named = self._by_id.get(element.attributes.get("aria-labelledby", ""))
        return " ".join(named.text().split()) if named else next_label
