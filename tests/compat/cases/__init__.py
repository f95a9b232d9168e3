"""The cases, a file for each part of the language. Every module here has its blocks in `BLOCKS`."""

import importlib
import pkgutil

from compat.case import Block


def blocks() -> list[Block]:
    modules = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return [block for name in modules for block in importlib.import_module(f"{__name__}.{name}").BLOCKS]
