"""All scenarios: the functions of the modules ``scenarios…`` that take nothing but the two runs."""

import inspect
from importlib import import_module
from pathlib import Path
from types import FunctionType

_MODULES = [import_module(f"{__package__}.{path.stem}") for path in sorted(Path(__file__).parent.glob("scenarios*.py"))]

SCENARIOS = [
    function
    for module in _MODULES
    for function in vars(module).values()
    if isinstance(function, FunctionType)
    and function.__module__ == module.__name__
    and [*inspect.signature(function).parameters] == ["parallel"]
]
