"""tree-sitter and its bash grammar, loaded when the first command has to be parsed."""

import sys

TYPE_CHECKING = False  # `typing` is not imported for it
if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_parser: "Parser | None" = None
_ASCII = bytes(range(128)) + b"x" * 128


def parse(source: bytes) -> "Node":
    """The syntax tree of a command. Positions are right, text is not: non-ASCII bytes are replaced by letters.

    The grammar passes such characters to C's `isdigit`, which may crash.
    """
    global _parser
    if _parser is None:
        _parser = _load()
    return _parser.parse(source.translate(_ASCII)).root_node


def _load() -> "Parser":
    """Load the extension modules directly: the packages around them take ten times as long to import."""
    try:
        core, bash = _extension("tree_sitter"), _extension("tree_sitter_bash")
        return core.Parser(core.Language(bash.language()))  # type: ignore[attr-defined, no-any-return]
    except (ImportError, AttributeError, OSError):
        import tree_sitter
        import tree_sitter_bash

        return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def _extension(package: str) -> object:
    name = f"{package}._binding"
    if name in sys.modules:
        return sys.modules[name]
    import os
    from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec, PathFinder

    if (found := PathFinder.find_spec(package)) is None or not found.submodule_search_locations:
        raise ImportError(package)
    for folder in found.submodule_search_locations:
        for suffix in EXTENSION_SUFFIXES:
            path = os.path.join(folder, "_binding" + suffix)
            if os.path.exists(path):
                loader = ExtensionFileLoader(name, path)
                module = loader.create_module(ModuleSpec(name, loader, origin=path))
                loader.exec_module(module)
                return module
    raise ImportError(name)
