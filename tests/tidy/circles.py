"""Prints the largest circle of files that import one another, for each crate.

A circle is a strongly connected component of the graph whose nodes are the source files of a crate.
File A has an edge to file B if A names an item that B defines, by `use crate::…`, `super::…`,
`self::…` or a qualified path. Re-exports are followed to the file that defines the item, so a
`mod.rs` that only re-exports is in no circle; neither `mod x;` nor a re-export that the file itself
does not use is an edge. Test modules are left out.

    tests/tools/circles                   # a line per crate
    tests/tools/circles query             # the line of that crate
    tests/tools/circles --list query      # its circles, with their files and edges
    tests/tools/circles --json            # {"crate": size of the largest circle, or 0}
"""

import argparse
import json
import os
import re
import sys
from pathlib import Path
from typing import Optional

ROOT = Path(__file__).resolve().parents[2]

TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/                                  # comments
      | b?r(?P<hashes>\#*)".*?"(?P=hashes)                  # raw strings
      | b?"(?:[^"\\]|\\.)*"                                 # strings
      | b?'(?:[^'\\\n]|\\(?:x[0-9a-fA-F]{2}|u\{[^}]*\}|.))' # characters
      | '[A-Za-z_]\w*                                       # lifetimes
      | (?:r\#)?[A-Za-z_]\w* | ::
      | \d[\w.]* | \S""",
    re.VERBOSE | re.DOTALL,
)
ITEM_KEYWORDS = {"fn", "struct", "enum", "trait", "type", "const", "static", "union", "macro_rules"}
WORD = re.compile(r"[A-Za-z_]\w*\Z")


class Module:
    """A module: the file it is in, its children, the items it defines and the names it imports."""

    def __init__(self, path: tuple[str, ...], file: Path):
        self.path = path
        self.file = file
        self.children: dict[str, Module] = {}
        self.items: set[str] = set()
        self.imports: dict[str, tuple[str, ...]] = {}
        self.globs: list[tuple[str, ...]] = []
        # Paths that the module's code names, each as it is written.
        self.named: list[tuple[str, ...]] = []
        # Names that the module only hands on, with the path it imports.
        self.re_exports: dict[str, tuple[str, ...]] = {}
        self.words: set[str] = set()


def tokens_of(source: str) -> list[str]:
    found = (match.group() for match in TOKEN.finditer(source))
    return [
        token.removeprefix("r#")
        for token in found
        if not token.startswith(("//", "/*", "'")) and not re.match(r"b?r?#*[\"']", token)
    ]


def closing(tokens: list[str], start: int) -> int:
    """Returns the index of the bracket that closes the one at `start`."""
    pairs = {"{": "}", "[": "]", "(": ")"}
    opened, closed, depth = tokens[start], pairs[tokens[start]], 0
    for index in range(start, len(tokens)):
        depth += (tokens[index] == opened) - (tokens[index] == closed)
        if depth == 0:
            return index
    return len(tokens) - 1


def without_tests(tokens: list[str]) -> list[str]:
    """Drops every item that carries `#[cfg(test)]` or `#[test]`."""
    kept, index = [], 0
    while index < len(tokens):
        if tokens[index] == "#" and index + 1 < len(tokens) and tokens[index + 1] == "[":
            end = closing(tokens, index + 1)
            attribute = tokens[index + 2 : end]
            if attribute in (["cfg", "(", "test", ")"], ["test"]):
                index = end + 1
                while index < len(tokens) and tokens[index] not in ("{", ";"):
                    index += 1
                if index < len(tokens) and tokens[index] == "{":
                    index = closing(tokens, index)
                    # `use a::{b, c};` ends behind its brace.
                    if index + 1 < len(tokens) and tokens[index + 1] == ";":
                        index += 1
                index += 1
                continue
        kept.append(tokens[index])
        index += 1
    return kept


def use_tree(tokens: list[str], index: int, prefix: tuple[str, ...], found: list) -> int:
    """Collects (path, name or `*`) of one use tree; returns the index behind it."""
    path = prefix
    while index < len(tokens):
        token = tokens[index]
        if token == "{":
            end = closing(tokens, index)
            index += 1
            while index < end:
                index = use_tree(tokens, index, path, found)
                if index < end and tokens[index] == ",":
                    index += 1
            return end + 1
        if token == "*":
            found.append((path, "*"))
            return index + 1
        if token == "::":
            index += 1
        elif WORD.match(token):
            if token == "self" and path:
                name = path[-1]
            else:
                path, name = (*path, token), token
            index += 1
            if index < len(tokens) and tokens[index] == "as":
                name = tokens[index + 1]
                index += 2
            if index >= len(tokens) or tokens[index] != "::":
                found.append((path, name))
                return index
        else:
            return index + 1
    return index


def visible(tokens: list[str], index: int) -> bool:
    """Returns whether the item whose keyword is at `index` carries `pub` or `pub(…)`."""
    before = tokens[max(0, index - 5) : index]
    return bool(before) and (before[-1] == "pub" or (before[-1] == ")" and "pub" in before))


def parse(module: Module, tokens: list[str], folder: Path) -> None:
    index, depth = 0, 0
    while index < len(tokens):
        token = tokens[index]
        following = tokens[index + 1] if index + 1 < len(tokens) else ""
        if token == "mod" and WORD.match(following) and index + 2 < len(tokens) and tokens[index + 2] in ("{", ";"):
            path = (*module.path, following)
            if tokens[index + 2] == "{":
                end = closing(tokens, index + 2)
                child = module.children[following] = Module(path, module.file)
                parse(child, tokens[index + 3 : end], folder / following)
                index = end + 1
            else:
                for file in (folder / f"{following}.rs", folder / following / "mod.rs"):
                    if file.is_file():
                        child = module.children[following] = Module(path, file)
                        parse(child, without_tests(tokens_of(file.read_text())), folder / following)
                index += 3
            continue
        if token == "use" and (index == 0 or tokens[index - 1] in (";", "{", "}", "]", ")", "pub")):
            found: list = []
            end = use_tree(tokens, index + 1, (), found)
            for path, name in found:
                if name == "*":
                    module.globs.append(path)
                    if not visible(tokens, index):
                        module.named.append((*path, "*"))
                elif visible(tokens, index):
                    module.re_exports[name] = path
                    module.imports[name] = path
                else:
                    if name != "_":
                        module.imports.setdefault(name, path)
                    module.named.append(path)
            index = end
            continue
        if token in ITEM_KEYWORDS and depth == 0:
            if token == "macro_rules" and following == "!":
                module.items.add(tokens[index + 2])
            elif WORD.match(following) and following not in ITEM_KEYWORDS:
                module.items.add(following)
        depth += (token in "{[(") - (token in "}])")
        if WORD.match(token) and (index == 0 or tokens[index - 1] != "::"):
            path = [token]
            while index + 2 < len(tokens) and tokens[index + 1] == "::" and WORD.match(tokens[index + 2]):
                path.append(tokens[index + 2])
                index += 2
            module.words.add(path[0])
            if len(path) > 1:
                module.named.append(tuple(path))
        index += 1


class Crate:
    def __init__(self, root: Module):
        self.root = root

    def resolve(self, module: Module, path: tuple[str, ...], seen: frozenset = frozenset()) -> "Optional[Module]":
        """Returns the module that defines the item that `path`, written in `module`, names."""
        if not path or (id(module), path) in seen:
            return None
        seen = seen | {(id(module), path)}
        first, rest = path[0], path[1:]
        if first == "crate":
            return self.descend(self.root, rest, seen)
        if first == "self":
            return self.descend(module, rest, seen)
        if first == "super":
            return self.descend(self.parent(module), rest, seen)
        if first in module.children or first in module.imports or first in module.items:
            return self.descend(module, path, seen)
        for glob in module.globs:
            target = self.resolve(module, glob, seen)
            if target and target is not module and (found := self.lookup(target, path, seen)):
                return found
        return None

    def parent(self, module: Module) -> Module:
        at = self.root
        for name in module.path[:-1]:
            at = at.children[name]
        return at

    def lookup(self, module: Module, path: tuple[str, ...], seen: frozenset) -> "Optional[Module]":
        first = path[0]
        if first in module.children or first in module.imports or first in module.items:
            return self.descend(module, path, seen)
        for glob in module.globs:
            target = self.resolve(module, glob, seen)
            if target and target is not module and (id(target), path) not in seen:
                if found := self.lookup(target, path, seen | {(id(target), path)}):
                    return found
        return None

    def descend(self, module: Module, path: tuple[str, ...], seen: frozenset) -> "Optional[Module]":
        if not path:
            return module
        first, rest = path[0], path[1:]
        if first == "super":
            return self.descend(self.parent(module), rest, seen)
        if first == "*":
            return module
        if first in module.children:
            return self.descend(module.children[first], rest, seen)
        if first in module.items:
            return module
        if first in module.imports:
            imported = module.imports[first]
            # `use document::document;` begins with a crate of that name.
            if imported[0] == first or len(seen) > 60:
                return None
            return self.resolve(module, (*imported, *rest), seen)
        for glob in module.globs:
            target = self.resolve(module, glob, seen)
            if target and target is not module and (found := self.lookup(target, path, seen)):
                return found
        return module

    def modules(self):
        queue = [self.root]
        while queue:
            module = queue.pop()
            yield module
            queue.extend(module.children.values())


def edges_of(crate: str) -> tuple[dict[Path, dict[Path, set[str]]], int]:
    """Returns file → file → the names that make the edge, and the number of files."""
    source = ROOT / "crates" / crate / "src"
    graph: dict[Path, dict[Path, set[str]]] = {}
    roots = [file for file in (source / "lib.rs", source / "main.rs", *sorted(source.glob("bin/*.rs"))) if file.is_file()]
    for root_file in roots:
        root = Module((), root_file)
        parse(root, without_tests(tokens_of(root_file.read_text())), source if root_file.parent == source else root_file.parent)
        found = Crate(root)
        for module in found.modules():
            edges = graph.setdefault(module.file, {})
            used = [path for name, path in module.re_exports.items() if name in module.words]
            for path in [*module.named, *used]:
                target = found.resolve(module, path)
                if target and target.file != module.file:
                    edges.setdefault(target.file, set()).add("::".join(path))
    return graph, len(graph)


def circles_of(graph: dict[Path, dict[Path, set[str]]]) -> list[list[Path]]:
    """Returns the strongly connected components of more than one file, largest first (Tarjan)."""
    sys.setrecursionlimit(10_000)
    number: dict[Path, int] = {}
    low: dict[Path, int] = {}
    stack: list[Path] = []
    on_stack: set[Path] = set()
    components: list[list[Path]] = []

    def visit(node: Path) -> None:
        number[node] = low[node] = len(number)
        stack.append(node)
        on_stack.add(node)
        for target in graph.get(node, {}):
            if target not in number:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in on_stack:
                low[node] = min(low[node], number[target])
        if low[node] == number[node]:
            component = []
            while True:
                member = stack.pop()
                on_stack.discard(member)
                component.append(member)
                if member == node:
                    break
            if len(component) > 1:
                components.append(sorted(component))

    for node in sorted(graph):
        if node not in number:
            visit(node)
    return sorted(components, key=len, reverse=True)


def crates() -> list[str]:
    return sorted(path.parent.name for path in ROOT.glob("crates/*/Cargo.toml"))


def largest_circles() -> dict[str, int]:
    sizes = {}
    for crate in crates():
        found = circles_of(edges_of(crate)[0])
        sizes[crate] = len(found[0]) if found else 0
    return sizes


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("crates", nargs="*", help="only these crates")
    arguments.add_argument("--list", metavar="CRATE", help="print the circles of this crate, with files and edges")
    arguments.add_argument("--json", action="store_true", help="print the sizes as JSON")
    asked = arguments.parse_args()
    try:
        report(asked)
    except BrokenPipeError:
        os._exit(0)


def report(asked: argparse.Namespace) -> None:
    if asked.json:
        print(json.dumps(largest_circles(), indent=2))
        return
    if asked.list:
        source = ROOT / "crates" / asked.list / "src"
        graph, _ = edges_of(asked.list)
        for members in circles_of(graph):
            print(f"circle of {len(members)} files")
            for member in members:
                print(f"  {member.relative_to(source)}")
                for target, names in sorted(graph[member].items()):
                    if target in members:
                        print(f"      -> {target.relative_to(source)}: {', '.join(sorted(names))}")
        return
    print(f"{'crate':<20} {'files':>5} {'largest':>7}  all circles")
    for crate in asked.crates or crates():
        graph, files = edges_of(crate)
        sizes = [len(members) for members in circles_of(graph)]
        print(f"{crate:<20} {files:>5} {max(sizes, default=0):>7}  {' '.join(map(str, sizes))}")
