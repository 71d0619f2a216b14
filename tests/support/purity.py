"""Checks of the core's source text: no waiting, no IO, no clocks, no unordered iteration.

Rules
  async        no `async def`, `await`, `async for`, `async with`, asynchronous comprehension
  builtin      no call of a builtin that does IO, depends on an address or a hash seed, or runs text as code
  import       no import of a module that reaches the outside (those of the `forbidden` contract over `svc_proto`), and
               no `__import__` or `import_module`
  clock        no `now`, `utcnow` or `today` of the datetime types, and no time zone of the host
  global       no `global` statement, no call of `getLogger`
  unordered    no iteration over a set whose result depends on the order, and no `pop` of a set: the same facts have to
               give the same commands on every run. Lengths, membership, `sorted`, sums and set algebra are fine.

Types are not inferred. A set is recognized within one module: displays, comprehensions, `set(...)`
and `frozenset(...)`, algebra on those, names and attributes bound to one or annotated as one, values of mappings
annotated with sets as values, and calls of functions annotated to return one. Names differ by function; attributes by
name, over the whole module.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TypeAlias

from attrs import define, field, frozen

FORBIDDEN_BUILTINS = frozenset({"breakpoint", "eval", "exec", "hash", "id", "input", "open", "print"})
CLOCK_READS = frozenset({"now", "today", "utcnow"})
CLOCK_TYPES = frozenset({"date", "datetime", "dt"})

# Builtins that iterate over an argument with a result that depends on the order; methods and itertools likewise.
ORDERED_BUILTINS = frozenset(
    {"dict", "enumerate", "filter", "iter", "list", "map", "repr", "reversed", "str", "tuple", "zip"}
)
ORDERED_METHODS = frozenset(
    {"accumulate", "chain", "cycle", "extend", "extendleft", "from_iterable", "fromkeys", "islice"}
)
ORDERED_METHODS |= {"OrderedDict", "deque", "join"}
# Callables for which the order of a comprehension does not matter.
ORDER_FREE_CALLS = frozenset({"all", "any", "frozenset", "len", "max", "min", "set", "sorted", "sum"})
ORDER_FREE_CALLS |= {"difference_update", "intersection_update", "symmetric_difference_update"}
SET_TYPES = frozenset({"AbstractSet", "FrozenSet", "MutableSet", "Set", "frozenset", "set"})
SET_ALGEBRA = frozenset({"copy", "difference", "intersection", "symmetric_difference", "union"})
MAPPING_TYPES = frozenset({"DefaultDict", "Dict", "Mapping", "MutableMapping", "OrderedDict", "defaultdict", "dict"})

LEAVES = (ast.Constant, ast.expr_context)  # nodes that no rule is about
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@frozen
class PurityBreach:
    """Breach of a rule of this module: `rule` is its word in the list above, `detail` names the code."""

    path: str
    line: int
    rule: str
    detail: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.detail}"


def violations(tree: ast.Module, *, path: str, forbidden_modules: Collection[str]) -> list[PurityBreach]:
    """Return the breaches in one module, by line."""
    nodes = [node for node in ast.walk(tree) if not isinstance(node, LEAVES)]
    found = [
        *_plain_breaches(nodes, forbidden_modules),
        *((line, "unordered", detail) for line, detail in _unordered(tree, nodes)),
    ]
    return [PurityBreach(path, line, rule, detail) for line, rule, detail in sorted(found)]


# --- the rules that look at one node ------------------------------------------------------------------------------


def _plain_breaches(nodes: Iterable[ast.AST], forbidden_modules: Collection[str]) -> Iterator[tuple[int, str, str]]:
    for node in nodes:
        yield from _import_breaches(node, forbidden_modules)
        match node:
            case ast.AsyncFunctionDef() | ast.AsyncFor() | ast.AsyncWith() | ast.Await():
                yield node.lineno, "async", type(node).__name__
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                if any(generator.is_async for generator in node.generators):
                    yield node.lineno, "async", "async for in a comprehension"
            case ast.Global(names=names):
                yield node.lineno, "global", ", ".join(names)
            case ast.Call(func=ast.Attribute(attr="getLogger") | ast.Name(id="getLogger")):
                yield node.lineno, "global", "a logger: records are `Log` commands"
            case ast.Call(func=ast.Name(id=name)) if name in FORBIDDEN_BUILTINS:
                yield node.lineno, "builtin", f"{name}()"
            case ast.Attribute(value=owner, attr=attr) if attr in CLOCK_READS and _last_name(owner) in CLOCK_TYPES:
                yield node.lineno, "clock", f"{_last_name(owner)}.{attr}"
            case ast.Call(func=ast.Attribute(attr="fromtimestamp"), args=[_], keywords=[]):
                yield node.lineno, "clock", "fromtimestamp() in the time zone of the host"
            case ast.Call(func=ast.Attribute(attr="astimezone"), args=[], keywords=[]):
                yield node.lineno, "clock", "astimezone() to the time zone of the host"


def _import_breaches(node: ast.AST, forbidden_modules: Collection[str]) -> Iterator[tuple[int, str, str]]:
    match node:
        case ast.Import(names=aliases):
            modules = [alias.name for alias in aliases]
        case ast.ImportFrom(module=str(module), names=aliases):
            modules = [f"{module}.{alias.name}" for alias in aliases]
        case ast.Call(func=ast.Name(id="__import__" | "import_module") | ast.Attribute(attr="import_module")):
            yield node.lineno, "import", "one that the layers cannot see"
            return
        case _:
            return
    for name in modules:
        if any(f"{name}.".startswith(f"{module}.") for module in forbidden_modules):
            yield node.lineno, "import", name


def _last_name(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


# --- unordered iteration ------------------------------------------------------------------------------------------


@define
class _Sets:
    """Names and attributes that are known to be sets: the names of a scope, the attributes of the module.

    The `*_of_sets` members are mappings whose values are sets.
    """

    names: frozenset[str] = frozenset()
    names_of_sets: frozenset[str] = frozenset()
    attributes: set[str] = field(factory=set)
    attributes_of_sets: set[str] = field(factory=set)
    returning: set[str] = field(factory=set)  # functions annotated to return a set

    def is_set(self, node: ast.AST) -> bool:
        """Report whether an expression is known to be a set, or has a branch or operand that is known to be one."""
        match node:
            case ast.Set() | ast.SetComp():
                return True
            case ast.Name(id=name):
                return name in self.names
            case ast.Attribute(attr=attr):
                return attr in self.attributes
            case ast.Subscript(value=value):
                return self.is_mapping_of_sets(value)
            case ast.NamedExpr(value=value):
                return self.is_set(value)
            case ast.IfExp(body=body, orelse=orelse):
                return self.is_set(body) or self.is_set(orelse)
            case ast.BoolOp(values=values):
                return any(self.is_set(value) for value in values)
            case ast.BinOp(op=ast.BitOr() | ast.BitAnd() | ast.Sub() | ast.BitXor(), left=left, right=right):
                return any(self.is_set(side) or _is_view(side) for side in (left, right))
            case ast.Call(func=ast.Name(id=name)):
                return name in {"set", "frozenset"} or name in self.returning
            case ast.Call(func=ast.Attribute(value=value, attr=attr)):
                if attr in SET_ALGEBRA:
                    return self.is_set(value)
                return attr in self.returning or (attr in {"get", "pop"} and self.is_mapping_of_sets(value))
            case _:
                return False

    def is_mapping_of_sets(self, node: ast.AST) -> bool:
        """Report whether an expression is known to be a mapping whose values are sets."""
        match node:
            case ast.Name(id=name):
                return name in self.names_of_sets
            case ast.Attribute(attr=attr):
                return attr in self.attributes_of_sets
            case _:
                return False

    def inside(self, bindings: Mapping[str, str]) -> _Sets:
        """Return a copy for an inner scope, whose bindings hide those of the outer one."""
        hidden = frozenset(bindings)
        return _Sets(
            names=(self.names - hidden) | {name for name, kind in bindings.items() if kind == "set"},
            names_of_sets=(self.names_of_sets - hidden) | {name for name, kind in bindings.items() if kind == "sets"},
            attributes=self.attributes,
            attributes_of_sets=self.attributes_of_sets,
            returning=self.returning,
        )


def _unordered(tree: ast.Module, nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    sets = _Sets()
    _learn_attributes(nodes, sets)
    yield from _scan_scope(tree, tree.body, sets)


def _learn_attributes(nodes: Iterable[ast.AST], sets: _Sets) -> None:
    """Collect attributes that are annotated as a set or a mapping of sets, or assigned a set, and functions.

    A function counts if its return annotation is a set; a property counts as an attribute.
    """
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name, returns=ast.expr() as returns) if _kind_of_annotation(returns) == "set":
                # A property is read like an attribute, everything else is called.
                is_property = any("property" in _last_name(decorator) for decorator in node.decorator_list)
                (sets.attributes if is_property else sets.returning).add(name)
            case ast.ClassDef(body=body):
                for statement in body:
                    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                        _learn_attribute(sets, statement.target.id, statement.annotation)
            case ast.AnnAssign(target=ast.Attribute(attr=attr), annotation=annotation):
                _learn_attribute(sets, attr, annotation)
            case ast.Assign(targets=[ast.Attribute(attr=attr)], value=value) if sets.is_set(value):
                sets.attributes.add(attr)


def _learn_attribute(sets: _Sets, name: str, annotation: ast.expr) -> None:
    match _kind_of_annotation(annotation):
        case "set":
            sets.attributes.add(name)
        case "sets":
            sets.attributes_of_sets.add(name)


def _kind_of_annotation(annotation: ast.expr) -> str:
    """Return the kind of an annotation: `set`, `sets` (a mapping whose values are sets) or `other`."""
    match annotation:
        case ast.Constant(value=str(text)):
            return _kind_of_annotation(ast.parse(text, mode="eval").body)
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            kinds = (_kind_of_annotation(left), _kind_of_annotation(right))
            return next((kind for kind in kinds if kind != "other"), "other")
        case ast.Subscript(value=owner, slice=inner) if _last_name(owner) in {"ClassVar", "Final", "Optional"}:
            return _kind_of_annotation(inner)
        case ast.Subscript(value=owner, slice=ast.Tuple(elts=[_, item])) if _last_name(owner) in MAPPING_TYPES:
            return "sets" if _kind_of_annotation(item) == "set" else "other"
        case ast.Subscript(value=owner):
            return "set" if _last_name(owner) in SET_TYPES else "other"
        case _:
            return "set" if _last_name(annotation) in SET_TYPES else "other"


def _scan_scope(
    owner: ast.Module | ast.ClassDef | Function, body: Iterable[ast.AST], outer: _Sets
) -> Iterator[tuple[int, str]]:
    """Yield line and text of the `unordered` breaches in a function, class body or module, and its inner scopes."""
    own: list[ast.AST] = []
    _collect_scope(body, own)
    sets = outer.inside(_bindings(owner, own, outer))
    allowed = _order_free(own)
    for node in own:
        for walked in _walked_in_order(node, allowed):
            if sets.is_set(walked):
                yield walked.lineno, f"iterates over the set `{ast.unparse(walked)}`"
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr="pop"), args=[], keywords=[]) if sets.is_set(value):
                yield node.lineno, f"takes any member of the set `{ast.unparse(value)}`"
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                # Names of a class body are not visible inside its methods.
                yield from _scan_scope(node, node.body, outer if isinstance(owner, ast.ClassDef) else sets)
            case ast.Lambda():
                yield from _scan_scope(node, [node.body], sets)


def _collect_scope(body: Iterable[ast.AST], found: list[ast.AST]) -> None:
    """Append the nodes of a scope to `found`; of inner functions and classes only decorators, defaults and bases."""
    for node in body:
        if isinstance(node, LEAVES):
            continue
        found.append(node)
        match node:
            case ast.Name():
                continue
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                inner: Iterable[ast.AST] = [
                    *node.decorator_list,
                    *node.args.defaults,
                    *filter(None, node.args.kw_defaults),
                ]
            case ast.ClassDef():
                inner = [*node.decorator_list, *node.bases]
            case ast.Lambda():
                inner = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
            case _:
                inner = ast.iter_child_nodes(node)
        _collect_scope(inner, found)


def _bindings(owner: ast.AST, own: Iterable[ast.AST], outer: _Sets) -> dict[str, str]:
    """Return the kind of each name that a scope's parameters, assignments and loops bind: `set`, `sets` or `other`.

    The first kind other than `other` that a name is bound to counts throughout.
    """
    kinds: dict[str, str] = {}

    def bind(name: str, kind: str) -> None:
        if kinds.get(name, "other") == "other":
            kinds[name] = kind

    if isinstance(owner, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        _bind_parameters(owner.args, bind)
    binding = (ast.AnnAssign, ast.Assign, ast.NamedExpr, ast.For, ast.comprehension)
    for node in own:
        known = outer.inside(kinds) if isinstance(node, binding) else outer
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                bind(name, _kind_of_annotation(annotation))
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    if isinstance(target, ast.Name):
                        bind(target.id, "set" if known.is_set(value) else "other")
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                bind(name, "set" if known.is_set(value) else "other")
            case ast.For(target=target, iter=iterated) | ast.comprehension(target=target, iter=iterated):
                _bind_loop(target, iterated, known, bind)
            case ast.Name(id=name, ctx=ast.Store()):
                bind(name, "other")
    return kinds


def _bind_parameters(arguments: ast.arguments, bind: Callable[[str, str], None]) -> None:
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        bind(argument.arg, _kind_of_annotation(argument.annotation) if argument.annotation else "other")
    for star in filter(None, (arguments.vararg, arguments.kwarg)):
        bind(star.arg, "other")


def _bind_loop(target: ast.expr, iterated: ast.expr, known: _Sets, bind: Callable[[str, str], None]) -> None:
    """Bind `v` of `for v in m.values()` and `for k, v in m.items()`: as a set, if `m` is a mapping of sets."""
    match iterated, target:
        case ast.Call(func=ast.Attribute(value=owner, attr="values")), ast.Name(id=name):
            bind(name, "set" if known.is_mapping_of_sets(owner) else "other")
        case ast.Call(func=ast.Attribute(value=owner, attr="items")), ast.Tuple(elts=[_, ast.Name(id=name)]):
            bind(name, "set" if known.is_mapping_of_sets(owner) else "other")


def _is_view(node: ast.expr) -> bool:
    """Report whether an expression calls `keys()` or `items()`; set operations on these views give sets."""
    match node:
        case ast.Call(func=ast.Attribute(attr="keys" | "items"), args=[]):
            return True
        case _:
            return False


def _order_free(nodes: Iterable[ast.AST]) -> set[ast.AST]:
    """Return comprehensions that are arguments of order-free calls, and starred items of set displays."""
    found: set[ast.AST] = set()
    for node in nodes:
        match node:
            case ast.Call(func=function, args=arguments) if _last_name(function) in ORDER_FREE_CALLS:
                found.update(node for node in arguments if isinstance(node, ast.GeneratorExp | ast.ListComp))
            case ast.Set(elts=items):
                found.update(node for node in items if isinstance(node, ast.Starred))
    return found


def _walked_in_order(node: ast.AST, allowed: Collection[ast.AST]) -> Iterator[ast.expr]:
    """Yield the expressions that a node, unless it is in `allowed`, iterates over in a visible order."""
    if node in allowed:
        return
    match node:
        case ast.For(iter=walked) | ast.YieldFrom(value=walked) | ast.FormattedValue(value=walked):
            yield walked
        case ast.Starred(value=walked, ctx=ast.Load()):
            yield walked
        case ast.ListComp() | ast.DictComp() | ast.GeneratorExp():
            for generator in node.generators:
                yield generator.iter
        case ast.Assign(targets=[ast.Tuple(elts=items) | ast.List(elts=items)], value=walked):
            if len(items) > 1 or any(isinstance(item, ast.Starred) for item in items):
                yield walked
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in ORDERED_BUILTINS | ORDERED_METHODS:
            yield from arguments
        case ast.Call(func=ast.Attribute(attr=name), args=arguments) if name in ORDERED_METHODS:
            yield from arguments
