"""What every protocol's request needs; the bodies themselves are built in `protocols/<name>/request.py`."""

from .common import (
    FunctionTool,
    data_url,
    join_url,
    merge_body,
    merge_headers,
    read_tools,
    require_declared,
    result_text,
    system_parts,
    text_of,
)

__all__ = [
    "FunctionTool",
    "data_url",
    "join_url",
    "merge_body",
    "merge_headers",
    "read_tools",
    "require_declared",
    "result_text",
    "system_parts",
    "text_of",
]
