"""OpenAPI: what `kubectl explain`, client-side apply and generated clients read to know the kinds served here.

Everything follows from the descriptions of the kinds; nothing is written by hand for one of them. `OpenApi` holds
the documents of a server and makes each when it is first asked for.
"""

from nodeward.api.openapi.documents import (
    IMMUTABLE,
    JSON,
    PROTOBUF_V2,
    PROTOBUF_V2_OLD_NAME,
    OpenApi,
    OpenApiDocument,
)

__all__ = ["IMMUTABLE", "JSON", "PROTOBUF_V2", "PROTOBUF_V2_OLD_NAME", "OpenApi", "OpenApiDocument"]
