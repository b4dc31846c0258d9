"""Store and read how a child workflow ended."""

from typing import Any

from horsies.codec.annotated import codec_for
from horsies.result.workflow import SubWorkflowSummary

__all__ = ["SubWorkflowSummary", "read_summary", "write_summary"]


def write_summary(summary: SubWorkflowSummary[Any], output_type: object = Any) -> str:
    """Write a summary, its output by the type of the definition; raise SerializationError."""
    return codec_for(_summary_type(output_type)).encode(summary)


def read_summary(text: str, output_type: object = Any) -> SubWorkflowSummary[Any]:
    """Read a stored summary; raise SerializationError."""
    summary = codec_for(_summary_type(output_type)).decode(text)
    assert isinstance(summary, SubWorkflowSummary)
    return summary


def _summary_type(output_type: object) -> object:
    summary: Any = SubWorkflowSummary
    return summary[output_type]
