"""The environment every expression in Kubernetes has: cel-go's standard library and the libraries of the API server.

Other environments (`device.py`) extend it by variables. `KUBERNETES_1_36` is what an API server 1.37 accepts in new
objects, as its minimum compatibility version is 1.36; `includes` comes on top for stored ones.
"""

from __future__ import annotations

from typing import Final

from nodeward.cel import cel_types as t
from nodeward.cel.declarations import CelEnvironment, merge_functions, simple_types
from nodeward.cel.library.authorization import AUTHORIZATION
from nodeward.cel.library.lists import CEL_LISTS, INCLUDES, KUBERNETES_LISTS, SETS, TWO_VARIABLES
from nodeward.cel.library.named_formats import NAMED_FORMATS
from nodeward.cel.library.network import CIDR, IP, NETWORK
from nodeward.cel.library.optionals import OPTIONALS
from nodeward.cel.library.quantities import QUANTITIES
from nodeward.cel.library.regexes import REGEXES
from nodeward.cel.library.semvers import SEMVERS
from nodeward.cel.library.standard import CONVERSIONS, OPERATORS, TEXTS
from nodeward.cel.library.strings import STRINGS
from nodeward.cel.library.times import TIMES
from nodeward.cel.library.urls import URLS
from nodeward.cel.macros import Macros

_LIBRARIES: Final = (
    OPERATORS,
    CONVERSIONS,
    TEXTS,
    TIMES,
    URLS,
    REGEXES,
    KUBERNETES_LISTS,
    AUTHORIZATION,
    OPTIONALS,
    QUANTITIES,
    STRINGS,
    SETS,
    NETWORK,
    NAMED_FORMATS,
    TWO_VARIABLES,
    SEMVERS,
    CEL_LISTS,
)

_TYPES: Final = {
    **simple_types(),
    t.OPTIONAL_NAME: t.optional_of(t.DYN),
    IP.name: IP,
    CIDR.name: CIDR,
}

KUBERNETES_1_36: Final = CelEnvironment(
    functions=merge_functions(_LIBRARIES), types=_TYPES, macros=Macros(has_bind=False)
)
KUBERNETES_1_37: Final = KUBERNETES_1_36.extended(functions=merge_functions((*_LIBRARIES, INCLUDES)))
