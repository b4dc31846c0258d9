"""WorkflowDefinition: a workflow as a class, found again by its key.

Workers rebuild sub-workflows from it, so `build_with` must be deterministic.
"""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast, get_args, get_origin

from horsies.codes import ErrorCode
from horsies.errors import WorkflowValidationError
from horsies.workflows.builders import SpecApp, make_spec
from horsies.workflows.nodes import (
    NODE_CLASSES,
    UNKNOWN_TYPE,
    AnyNode,
    Node,
    OnError,
    SuccessPolicy,
)
from horsies.workflows.spec import (
    WorkflowSpec,
    next_serial_number,
    no_definition_key,
    rename_spec,
    was_made_since,
)
from horsies.workflows.validate import is_text, output_problems, raise_problems

T = TypeVar("T")

# Class bodies run before any app exists, so their keys are known per process.
_definitions: dict[str, "type[WorkflowDefinition[Any]]"] = {}


def find_definition(key: str) -> "type[WorkflowDefinition[Any]] | None":
    """Return the definition of a key, if this process has imported it."""
    return _definitions.get(key)


def definition_keys() -> list[str]:
    """The keys of all definitions that this process has imported."""
    return sorted(_definitions)


class WorkflowDefinition(Generic[T]):
    """A workflow whose nodes are class attributes; `T` is the type of its output.

    Set `name` and `definition_key`; a nested `class Meta` may set `output`, `on_error` and
    `success_policy`. Override `build_with(cls, app, *, ...)` to take parameters.
    """

    name: ClassVar[str]
    definition_key: ClassVar[str]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.get_workflow_nodes()
        key = cls.get_own_key()
        if key is not None:
            _register(key, cls)
        own = vars(cls).get("build_with")
        if own is not None:
            cls.build_with = _guarded(own, cls)  # type: ignore[method-assign]

    @classmethod
    def build(cls, app: SpecApp) -> WorkflowSpec[T]:
        """Make a new spec from the class's nodes, which stay as they are."""
        name = getattr(cls, "name", None)
        if not is_text(name):
            raise WorkflowValidationError(
                f"{cls.__qualname__} must define a 'name'",
                ErrorCode.WORKFLOW_NO_NAME,
                help_text='name = "import"',
            )
        key = cls.get_own_key()
        if key is None:
            raise no_definition_key(cls.__qualname__)
        nodes = cls.get_workflow_nodes()
        if not nodes:
            raise WorkflowValidationError(
                f"{cls.__qualname__} has no TaskNode",
                ErrorCode.WORKFLOW_NO_NODES,
                help_text="give the class node attributes: load = TaskNode(fn=load_rows)",
            )
        meta: Any = getattr(cls, "Meta", None)
        output: Node[T] | str | None = getattr(meta, "output", None)
        if isinstance(output, str):
            # The body of Meta cannot see the attributes around it, so their names will do.
            output = cast("Node[T] | None", getattr(cls, output, output))
        on_error: OnError = getattr(meta, "on_error", OnError.FAIL)
        policy: SuccessPolicy | None = getattr(meta, "success_policy", None)
        return make_spec(
            app,
            keeps_originals=True,
            name=cast("str", name),
            tasks=nodes,
            on_error=on_error,
            output=output,
            success_policy=policy,
            definition_key=key,
            workflow_def_cls=cls,
        )

    if TYPE_CHECKING:
        # Overrides declare parameters of their own; of all signatures only this one lets them.
        @classmethod
        def build_with(cls, *args: Any, **params: Any) -> WorkflowSpec[T]: ...
    else:

        @classmethod
        def build_with(cls, app: SpecApp, **params: Any) -> WorkflowSpec[T]:
            """Make the spec for the given parameters; by default they do not matter."""
            return cls.build(app)

    @classmethod
    def get_workflow_nodes(cls) -> list[AnyNode]:
        """Return the nodes among the attributes, in the order of their definition."""
        attributes: dict[str, object] = {}
        for base in reversed(cls.__mro__):
            attributes |= vars(base)
        nodes: dict[AnyNode, None] = {}
        for name, value in attributes.items():
            if isinstance(value, NODE_CLASSES):
                nodes[value] = None
                if value.node_id is None:
                    value.node_id = name
        return list(nodes)

    @classmethod
    def get_own_key(cls) -> str | None:
        """Return the key declared on this very class; an inherited one names another workflow."""
        key = vars(cls).get("definition_key")
        return key if is_text(key) else None

    @classmethod
    def get_ok_type(cls) -> Any:
        """Return `T` as the class declares it, or `UNKNOWN_TYPE`."""
        declared = _declared_parameter(cls)
        return UNKNOWN_TYPE if isinstance(declared, TypeVar) else declared

    @classmethod
    def takes_parameters(cls) -> bool:
        """Whether `build_with` is overridden anywhere."""
        return any("build_with" in vars(base) for base in cls.__mro__ if base is not _ROOT)


_ROOT = WorkflowDefinition


def _register(key: str, definition: "type[WorkflowDefinition[Any]]") -> None:
    known = _definitions.get(key)
    if known is not None and _place(known) != _place(definition):
        raise WorkflowValidationError(
            f"definition_key {key!r} is already used by {'.'.join(_place(known))}",
            ErrorCode.WORKFLOW_DUPLICATE_DEFINITION_KEY,
            notes=[f"now also by {'.'.join(_place(definition))}"],
            help_text="give each definition its own key",
        )
    _definitions[key] = definition


def _place(definition: type) -> tuple[str, str]:
    # A reloaded module makes its classes anew under the same name.
    return definition.__module__, definition.__qualname__


def _guarded(own: Any, definition: type) -> Any:
    """Let an overridden `build_with` return only a spec that it has made itself."""
    if not isinstance(own, classmethod):
        raise WorkflowValidationError(
            f"{definition.__qualname__}.build_with must be a classmethod",
            ErrorCode.WORKFLOW_SUBWORKFLOW_BUILD_WITH_BINDING,
            help_text="@classmethod\ndef build_with(cls, app, *, ...): ...",
        )
    function: Callable[..., Any] = own.__func__

    @functools.wraps(function)
    def build_with(cls: type[WorkflowDefinition[Any]], *args: Any, **kwargs: Any) -> Any:
        started = next_serial_number()
        spec = function(cls, *args, **kwargs)
        if not isinstance(spec, WorkflowSpec) or not was_made_since(spec, started):
            raise WorkflowValidationError(
                f"{cls.__qualname__}.build_with returned a spec not constructed during this call",
                notes=[f"returned {spec!r:.200}"],
                help_text="return app.workflow(...) or cls.build(app)",
            )
        rename_spec(spec, cls.get_own_key(), cls)
        raise_problems(output_problems(cls, spec.output))
        return spec

    return classmethod(build_with)


def _declared_parameter(definition: type) -> Any:
    """Follow T from a class up to WorkflowDefinition; a TypeVar is still open in this class."""
    if definition is WorkflowDefinition:
        return T
    for base in vars(definition).get("__orig_bases__", definition.__bases__):
        origin = get_origin(base) or base
        if not (isinstance(origin, type) and issubclass(origin, WorkflowDefinition)):
            continue
        inherited = _declared_parameter(origin)
        if not isinstance(inherited, TypeVar):
            return inherited
        parameters: tuple[Any, ...] = getattr(origin, "__parameters__", ())
        given: dict[Any, Any] = dict(zip(parameters, get_args(base), strict=False))
        return given.get(inherited, UNKNOWN_TYPE)
    return UNKNOWN_TYPE
