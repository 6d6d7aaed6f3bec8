"""Tools: what the model may call, and the check of what it calls them with."""

from .arguments import Problem, ToolArgumentsError
from .definition import Tool, tool
from .exchange import ToolContext, ToolError, ToolResult

__all__ = ["Problem", "Tool", "ToolArgumentsError", "ToolContext", "ToolError", "ToolResult", "tool"]
