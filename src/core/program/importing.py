"""How the modules of a program are imported in its start, so that one that fails is one note, and the rest goes on.

Names and modules that do not exist are given something to stand for them: a class, an object, a function, a decorator,
a module or an exception, whatever is asked of it. attrs writes the methods of a plain class
when that is used, which most are by requests alone. Everything that the import depends on is noted: the files that it
opens, the folders that it lists, the variables of the environment that it reads.
"""

from __future__ import annotations

import ast
import inspect
import os
import sys
import traceback
from functools import lru_cache
from importlib.machinery import ModuleSpec, SourceFileLoader
from opcode import opmap
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Final, cast

import attr
import attrs

from core.explain.frames import is_own
from core.program.table import Place, Refusal, digest_of
from core.values import frozen

_USUAL: Final = frozenset(["builtins.id", "compile", "exec", "import", "object.__getattr__", "sys._getframe"])
"""The events that say nothing of files, of which a start has tens of thousands."""
_OF_PLAIN: Final = frozenset(
    f"__{name}__"
    for name in ("annotations", "dict", "doc", "firstlineno", "module", "qualname", "static_attributes", "weakref")
)
"""The names that a class has which holds nothing but annotations and a docstring."""
_NOT_REPEATED: Final = ("subprocess.Popen", "os.exec", "os.fork", "os.posix_spawn", "os.system", "socket.", "sqlite3.")


def is_kernels(file: str) -> bool:
    """Return True for what the kernel answers: devices, and the files of /proc and /sys."""
    return file.startswith(("/dev/", "/proc/", "/sys/")) and not file.startswith("/dev/shm/")  # a folder in memory


@lru_cache(None)
def real(file: str) -> str:
    """The path of a file as checks have it."""
    return os.path.realpath(file)


def caller() -> Place:
    """The line of the program that is running, of the innermost of its functions."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_own(frame.f_code.co_filename):
            return Place(real(frame.f_code.co_filename), frame.f_lineno)
        frame = frame.f_back
    return Place()


def file_of(module: object) -> str:
    """The file of a module; "" for one that has none."""
    file = getattr(module, "__dict__", {}).get("__file__")
    return file if isinstance(file, str) else ""


class Imports:
    """The imports of one start, and what is noted in it, in its order. `assume`: packages that are not installed are no
    mistakes.
    """

    def __init__(self, *, assume: bool) -> None:
        self.assume = assume
        self.assumed: dict[str, None] = {}
        self.places: dict[int, Place] = {}
        self.references: list[object] = []
        """The objects of `places`, so that nothing else gets their ids."""
        self.refusals: dict[Refusal, None] = {}
        self.unread: dict[Place, None] = {}
        """Registrations of something that is only assumed to be there."""
        self.stopped: set[str] = set()
        """The files of modules that stopped half way."""
        self.opened: dict[str, None] = {}
        self.folders: dict[str, None] = {}
        self.environ: dict[str, str] = {}
        self.repeats = True
        self.ran = False

    def note(self, kind: str, message: str, place: Place, fix: str = "") -> None:
        """Note something that is refused. A refusal of one router that is mounted twice is told once."""
        self.refusals.setdefault(Refusal(kind, message, place, fix))

    def refuse(self, error: BaseException, place: Place) -> None:
        """Note an error of the program, at its innermost line of the program, else at a place."""
        if isinstance(error, SyntaxError) and error.filename and is_own(error.filename):
            self.note("SyntaxError", error.msg, Place(real(error.filename), error.lineno or 1))
            return
        frames = [one for one in traceback.extract_tb(error.__traceback__) if is_own(one.filename)]
        if frames:
            place = Place(real(frames[-1].filename), frames[-1].lineno or 1)
        from core.explain.diagnosis import explain

        self.note(type(error).__name__, str(error) or type(error).__name__, place, explain(error) or "")

    def place(self, one: object, place: Place | None = None) -> None:
        """Note where something is made or registered."""
        self.references.append(one)
        self.places[id(one)] = place or caller()

    def watch_files(self) -> None:
        """Note files, folders and variables from here on."""

        def event(name: str, arguments: tuple[Any, ...]) -> None:
            if name in _USUAL:
                return
            if name == "open":
                path, _, flags = arguments
                if isinstance(path, str) and isinstance(flags, int) and flags & os.O_ACCMODE != os.O_WRONLY:
                    path = os.path.abspath(path)
                    if is_own(path) and "__pycache__" not in path and not is_kernels(path):
                        self.opened.setdefault(path)
            elif name == "os.listdir" or name == "os.scandir":
                path = os.path.abspath(arguments[0] or ".") if not isinstance(arguments[0], int) else ""
                if is_own(path) and "python3" not in path:
                    self.folders.setdefault(path)
            elif name.startswith(_NOT_REPEATED):
                self.repeats = False

        sys.addaudithook(event)
        variables: Any = type(os.environ)
        own = variables.__getitem__

        def read(environ: object, name: object) -> object:
            value = None
            try:
                value = own(environ, name)
            finally:
                self.environ[str(name)] = digest_of(value)
            return value

        variables.__getitem__ = read

    def watch_imports(self) -> None:
        """Import the modules of the program in this way from here on."""
        execute = SourceFileLoader.exec_module

        def run(loader: SourceFileLoader, module: ModuleType) -> None:
            file = file_of(module)
            if not is_own(file):
                execute(loader, module)
                if module.__name__ == "asyncio.base_events":
                    self._watch_loops(module)
            else:
                try:
                    # From its text: bytecode goes by whole seconds, and may be that of an earlier one.
                    exec(loader.source_to_code(loader.get_data(file), file), vars(module))
                except (Exception, SystemExit) as error:
                    # Whoever imports it goes on, with anything for its names.
                    self.stopped.add(real(file))
                    self.refuse(error, Place(real(file), 1))
                    vars(module)["__getattr__"] = anything
            if is_own(file) or module.__name__.startswith("core."):
                self._note_missing_names(module)

        loader: Any = SourceFileLoader
        loader.exec_module = run
        for name, module in list(sys.modules.items()):
            if name == "core" or name.startswith("core."):
                self._note_missing_names(module)
        if "asyncio.base_events" in sys.modules:
            self._watch_loops(sys.modules["asyncio.base_events"])
        sys.meta_path.append(self)

    def watch_classes(self) -> None:
        """Let `attrs.frozen` finish the plain classes of the program later, which takes three fifths of a start."""
        own: Any = attrs.frozen

        def later(*args: Any, **options: Any) -> object:
            return frozen(args[0]) if len(args) == 1 and not options and _is_plain(args[0]) else own(*args, **options)

        packages: Any = attr, attrs
        for package in packages:
            package.frozen = later

    def _watch_loops(self, module: ModuleType) -> None:
        loop: Any = vars(module)["BaseEventLoop"]
        forever = loop.run_forever

        def run_forever(one: object) -> None:
            self.ran = True
            forever(one)

        loop.run_forever = run_forever

    def _note_missing_names(self, module: ModuleType) -> None:
        """Let `from module import name` of a name that it has not be noted, and go on with anything."""
        names_of = vars(module)
        own = names_of.get("__getattr__")

        def get(name: str) -> object:
            try:
                if own is not None:
                    return own(name)
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
            except AttributeError:
                frame = sys._getframe(1)
                code = frame.f_code
                if code.co_code[frame.f_lasti] != opmap["IMPORT_FROM"] or not is_own(code.co_filename):
                    raise
                if name.startswith("__") or _is_tried(code.co_filename, frame.f_lineno):
                    raise
            from core.program.absent import no_name

            message = no_name(module.__name__, name, names_of.get("__all__") or list(names_of))
            self.note("NoName", message, Place(real(code.co_filename), frame.f_lineno))
            return anything(name)

        names_of["__getattr__"] = get

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """A module that nobody else has found, imported by the program itself."""
        parent = sys.modules.get(name.rpartition(".")[0])
        if isinstance(getattr(parent, "__loader__", None), Blank):
            return Blank.spec(name)
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and "importlib" in (file := frame.f_code.co_filename):
            if "util" in file or frame.f_code.co_name == "_handle_fromlist":
                return None  # a question, and no import: a name that is not there is noted where it is taken
            frame = frame.f_back
        if frame is None or not is_own(file := frame.f_code.co_filename) or _is_tried(file, frame.f_lineno):
            return None
        if self.assume and name.partition(".")[0] not in ("core", *sys.stdlib_module_names) and not self._is_ours(name):
            self.assumed.setdefault(name)
        else:
            from core.program.absent import no_module

            self.note("NoModule", no_module(name), Place(real(file), frame.f_lineno))
        return Blank.spec(name)

    def _is_ours(self, name: str) -> bool:
        """Return True if a module would belong to a package of the program."""
        top = sys.modules.get(name.partition(".")[0])
        return "." in name and top is not None and is_own(file_of(top))


def _is_plain(cls: object) -> bool:
    """Return True for a class of the program in which attrs finds nothing to refuse: fields without defaults alone."""
    if type(cls) is not type or cls.__bases__ != (object,) or not vars(cls).keys() <= _OF_PLAIN:
        return False
    fields = vars(cls).get("__annotations__", {})
    is_usual = all(name[0] != "_" and name != "self" for name in fields)  # others may be a parameter twice
    return is_usual and is_own(file_of(sys.modules.get(cls.__module__)))


@lru_cache(None)
def _tried(file: str) -> frozenset[int]:
    """The lines of a file where the program expects an import to fail."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse(Path(file).read_bytes())):
        if isinstance(node, ast.Try) and node.handlers:
            lines.update(range(node.lineno, node.handlers[0].lineno))
        elif isinstance(node, ast.With) and "suppress" in ast.unparse(node.items[0]):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return frozenset(lines)


def _is_tried(file: str, line: int) -> bool:
    return line in _tried(file)


class _Meta(type):
    def __getattr__(cls, name: str) -> object:
        return anything(name)

    def __or__(cls, other: object) -> Any:
        return cls

    __ror__ = __or__

    def __iter__(cls) -> object:
        return iter(())


class _Anything(metaclass=_Meta):
    def __new__(cls, *args: object, **options: object) -> Any:
        # A decorator gives back what it decorates.
        if len(args) == 1 and not options and (inspect.isfunction(args[0]) or inspect.isclass(args[0])):
            return args[0]
        return super().__new__(cls)

    def __init__(self, *args: object, **options: object) -> None: ...

    def __getattr__(self, name: str) -> object:
        return anything(name)

    def __call__(self, *args: object, **options: object) -> object:
        return type(self)(*args, **options)

    def __class_getitem__(cls, key: object) -> object:
        return cls

    def __iter__(self) -> object:
        return iter(())


def anything(name: str) -> object:
    """Something to stand for a name. Raises AttributeError for those that Python itself asks for."""
    if name.startswith("__"):
        raise AttributeError(name)
    bases = (_Anything, Exception) if name.endswith(("Error", "Exception")) else (_Anything,)
    return _Meta(name, bases, {})


def is_anything(value: object) -> bool:
    """Return True for a value that `anything` gave, or one that came from it."""
    return isinstance(value, _Anything) or (isinstance(value, type) and issubclass(value, _Anything))


class Blank:
    """Loads a module that has every name."""

    @classmethod
    def spec(cls, name: str) -> ModuleSpec:
        """The module as Python imports it."""
        return ModuleSpec(name, cast("Any", cls()), is_package=True)

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to Python to make the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Run nothing."""
        module.__path__ = []
        vars(module)["__getattr__"] = anything
