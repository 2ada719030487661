"""Label and field selectors of a list or watch, and a name in the path. Called by `verbs/`."""

from __future__ import annotations

from dataclasses import dataclass

from nodeward.api.errors import bad_request
from nodeward.api.scheme import Kind
from nodeward.apiserver.api import Api
from nodeward.apiserver.item import Item
from nodeward.apiserver.request import Call
from nodeward.apiserver.resources.selectable import SelectableFields
from nodeward.rules.selectors import (
    FieldSelector,
    LabelRequirements,
    SelectorError,
    parse_fields,
    parse_labels,
)


@dataclass(frozen=True, slots=True)
class Selectors:
    """Both selectors, and how to read the fields they name."""

    labels: LabelRequirements
    fields: FieldSelector
    reader: SelectableFields

    @property
    def is_everything(self) -> bool:
        return self.labels.is_everything and self.fields.is_everything

    def takes(self, item: Item) -> bool:
        return self.reader.read(item).matches(self.labels, self.fields)


def selection_of(api: Api, call: Call, kind: Kind) -> Selectors:
    """Read the selectors of a request; raises 400 for a selector that cannot be parsed."""
    reader = api.selectable_fields(kind)
    labels_text, fields_text = call.query.get("labelSelector"), call.query.get("fieldSelector")
    if not labels_text and not fields_text and not call.name:
        return Selectors(LabelRequirements(), FieldSelector(), reader)
    try:
        labels = parse_labels(labels_text)
        fields = parse_fields(fields_text, reader.paths)
    except SelectorError as error:
        raise bad_request(str(error)) from None
    if call.name:
        asked = fields.exact("metadata.name")
        if asked is not None and asked != call.name:
            raise bad_request("both a name and a field selector provided; please provide one or the other.")
        fields = FieldSelector((*fields.terms, ("metadata.name", call.name, True)))
    return Selectors(labels, fields, reader)
