"""What every protocol's request needs; the bodies themselves are built in `protocols/<name>/request.py`."""

from .common import (
    DECLARATIONS,
    FunctionTool,
    data_url,
    declarations,
    join_url,
    merge_body,
    merge_headers,
    output_limit,
    read_tools,
    require_declared,
    result_text,
    system_parts,
    text_of,
)

__all__ = [
    "DECLARATIONS",
    "FunctionTool",
    "data_url",
    "declarations",
    "join_url",
    "merge_body",
    "merge_headers",
    "output_limit",
    "read_tools",
    "require_declared",
    "result_text",
    "system_parts",
    "text_of",
]
