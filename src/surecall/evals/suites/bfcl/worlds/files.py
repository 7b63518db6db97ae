"""A tree of folders and files, and the folder that one is in."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, ClassVar, Final, Optional

from msgspec import Struct, field

from .base import World

Result = dict[str, Any]

_NOT_IN_NAMES: Final = frozenset('|/\\?%*:"><')
_HERE: Final = frozenset({".", "..", "/"})
_UNITS: Final = ("B", "KB", "MB", "GB", "TB")
_DONE: Final = {"mv": "moved", "cp": "copied"}
_MAX_PATHS: Final = 5_000
"""Copies share what is in them, so a model could make more paths than can be listed."""
_COUNTED: Final = {"l": "lines", "w": "words", "c": "characters"}


class File(Struct, eq=False):
    """A file; a copied folder has the same files as the folder it was copied from."""

    content: str = ""


class Folder(Struct, eq=False):
    """A folder, by the names of what is in it."""

    name: str
    parent: Optional["Folder"] = None
    items: dict[str, "Folder | File"] = {}


Item = Folder | File


class FileWorld(World):
    """The leaderboard's `GorillaFileSystem`; every name is looked up in the current folder."""

    reads: ClassVar[str] = """
        pwd ls cat find wc sort grep du tail diff
    """

    root: Any = None
    """As the data write it, and then the first folder in it."""
    _current: Folder = field(default_factory=lambda: Folder("/"))

    def __post_init__(self) -> None:
        tree: dict[str, Any] = self.root or {"/": {"contents": {}}}
        name = next(iter(tree))
        self._current = _load_folder(name, tree[name]["contents"], None)
        self.root = self._current

    def snapshot(self) -> dict[str, Any]:
        """Return the names and contents of all files."""
        return {"root": {self.root.name: _list_tree(self.root)}}

    def pwd(self) -> Result:
        """Name the current folder with those above it."""
        names: list[str] = []
        folder: Folder | None = self._current
        while folder is not None:
            names.append(folder.name)
            folder = folder.parent
        return {"current_working_directory": "/" + "/".join(reversed(names))}

    def ls(self, a: bool = False) -> Result:
        """List the current folder, without hidden names unless they are asked for."""
        names = [name for name in self._current.items if a or not name.startswith(".")]
        return {"current_directory_content": names}

    def cd(self, folder: str) -> Result:
        """Go to a folder of this one, to the one above, or to the first."""
        folder = folder.rstrip("/") or "/"
        if "/" in folder and folder not in _HERE:
            what = "Unsupported path. Only one folder level at a time is supported."
            return {"error": f"cd: {folder}: {what}"}
        if folder == "..":
            if self._current.parent is None:
                return {"error": "Current directory is already the root. Cannot go back."}
            self._current = self._current.parent
            return {}
        target = self._walk(folder)
        if target is None:
            return {"error": f"cd: '{folder}': No such file or directory"}
        self._current = target
        return {"current_working_directory": target.name}

    def mkdir(self, dir_name: str) -> Result | None:
        """Make a folder under a new name."""
        return self._add(f"mkdir: cannot create directory '{dir_name}'", dir_name, Folder(dir_name))

    def touch(self, file_name: str) -> Result | None:
        """Make an empty file under a new name."""
        return self._add(f"touch: cannot touch '{file_name}'", file_name, File())

    def echo(self, content: str, file_name: str | None = None) -> Result | None:
        """Write into a file that there is, or show the text."""
        if file_name is None or file_name == "":
            return {"terminal_output": content}
        problem = f"echo: cannot write to '{file_name}'"
        if not _is_name(file_name):
            return {"error": f"{problem}: Invalid character"}
        if file_name not in self._current.items:
            return {"error": f"{problem}: No such file"}
        file = self._current.items[file_name]
        if isinstance(file, Folder):
            raise AttributeError("'Directory' object has no attribute '_write'")
        file.content = content
        return None

    def cat(self, file_name: str) -> Result:
        """Show a file."""
        if not _is_name(file_name):
            return {"error": f"cat: '{file_name}': Invalid character"}
        match self._current.items.get(file_name):
            case File(content):
                return {"file_content": content}
            case Folder():
                return {"error": f"cat: '{file_name}': Is a directory"}
            case _:
                return {"error": f"cat: '{file_name}': No such file or directory"}

    def find(self, path: str = ".", name: str | None = None) -> Result:
        """List what is below a folder, all or with a text in its name."""
        start = self._walk(path)
        if start is None:
            return {"error": f"find: '{path}': No such file or directory"}
        below = _list_paths(start, path.rstrip("/"))
        return {"matches": [path for path, found in below if name is None or name in found]}

    def wc(self, file_name: str, mode: str = "l") -> Result:
        """Count lines, words or characters of a file."""
        if mode not in _COUNTED:
            return {"error": f"wc: invalid mode '{mode}'"}
        text = self._read(file_name)
        if text is None:
            return {"error": f"wc: {file_name}: No such file or directory"}
        parts = text.splitlines() if mode == "l" else text.split() if mode == "w" else text
        return {"count": len(parts), "type": _COUNTED[mode]}

    def sort(self, file_name: str) -> Result:
        """Show the lines of a file in order; the file stays as it is."""
        text = self._read(file_name)
        if text is None:
            return {"error": f"sort: {file_name}: No such file or directory"}
        return {"sorted_content": "\n".join(sorted(text.splitlines()))}

    def grep(self, file_name: str, pattern: str) -> Result:
        """Show the lines of a file that have a text in them."""
        text = self._read(file_name)
        if text is None:
            return {"error": f"grep: {file_name}: No such file or directory"}
        return {"matching_lines": [line for line in text.splitlines() if pattern in line]}

    def du(self, human_readable: bool = False) -> Result:
        """Count the bytes of all files below the current folder."""
        size = float(_measure(self._current))
        if not human_readable:
            return {"disk_usage": f"{size:.0f} bytes"}
        for unit in _UNITS:
            if size < 1024:
                return {"disk_usage": f"{size:.2f} {unit}"}
            size /= 1024
        return {"disk_usage": f"{size:.2f} PB"}

    def tail(self, file_name: str, lines: int = 10) -> Result:
        """Show the last lines of a file; all of them when none are asked for."""
        text = self._read(file_name)
        if text is None:
            return {"error": f"tail: {file_name}: No such file or directory"}
        every = text.splitlines()
        return {"last_lines": "\n".join(every[-min(lines, len(every)) :])}

    def diff(self, file_name1: str, file_name2: str) -> Result:
        """Show the lines that differ, as far as both files go."""
        texts = [self._read(name) for name in (file_name1, file_name2)]
        if None in texts:
            return {"error": f"diff: {file_name1} or {file_name2}: No such file or directory"}
        pairs = zip(*(text.splitlines() for text in texts if text is not None), strict=False)
        return {"diff_lines": "\n".join(f"- {a}\n+ {b}" for a, b in pairs if a != b)}

    def mv(self, source: str, destination: str) -> Result:
        """Move something into a folder, or give it a new name."""
        return self._transfer("mv", "move", source, destination)

    def cp(self, source: str, destination: str) -> Result:
        """Copy something into a folder, or under a new name."""
        return self._transfer("cp", "copy", source, destination)

    def rm(self, file_name: str) -> Result:
        """Remove a file, or a folder with all that is in it."""
        if file_name not in self._current.items:
            return {"error": f"rm: cannot remove '{file_name}': No such file or directory"}
        del self._current.items[file_name]
        return {"result": f"'{file_name}' removed"}

    def rmdir(self, dir_name: str) -> Result:
        """Remove an empty folder."""
        problem = f"rmdir: cannot remove '{dir_name}'"
        item = self._current.items.get(dir_name)
        if item is None:
            return {"error": f"{problem}: No such file or directory"}
        if isinstance(item, File):
            return {"error": f"{problem}: Not a directory"}
        if item.items:
            return {"error": f"{problem}: Directory not empty"}
        del self._current.items[dir_name]
        return {"result": f"'{dir_name}' removed"}

    def _walk(self, path: str) -> Folder | None:
        if path == ".":
            return self._current
        folder: Folder = self.root if path.startswith("/") else self._current
        for name in [] if path == "/" else path.strip("/").split("/"):
            found = folder if name == "." else folder.items.get(name)
            if not isinstance(found, Folder):
                return None
            folder = found
        return folder

    def _read(self, file_name: str) -> str | None:
        item = self._current.items.get(file_name)
        return item.content if isinstance(item, File) else None

    def _add(self, problem: str, name: str, item: Item) -> Result | None:
        if not _is_name(name):
            return {"error": f"{problem}: Invalid character"}
        if name in self._current.items:
            return {"error": f"{problem}: File exists"}
        if isinstance(item, Folder):
            item.parent = self._current
        self._current.items[name] = item
        return None

    def _transfer(self, command: str, verb: str, source: str, destination: str) -> Result:
        problem = f"{command}: cannot {verb} '{source}'"
        here = self._current
        item = here.items.get(source)
        if item is None:
            return {"error": f"{problem}: No such file or directory"}
        if "/" in destination:
            what = "path not allowed in destination. Provide only a file or directory name."
            return {"error": f"{command}: {what}"}
        target, name, place = here, destination, destination
        if destination in here.items:
            found = here.items[destination]
            if isinstance(found, File):
                return {"error": f"{problem} to '{destination}': Not a directory"}
            target, name, place = found, source, f"{destination}/{source}"
        if name in target.items:
            if command == "mv":
                return {"error": f"{problem} to '{place}': File exists"}
            kind = "File" if isinstance(item, File) else "Directory"
            raise ValueError(f"{kind} '{name}' already exists in directory '{target.name}'.")
        before = dict(here.items)
        if command == "mv":
            del here.items[source]
        if target is not item or command == "cp":  # what is moved into itself is gone
            target.items[name] = _duplicate(item, name, target, is_move=command == "mv")
        if self._is_full():
            del target.items[name]
            here.items.update(before)
            raise OSError("No space left on device")
        return {"result": f"'{source}' {_DONE[command]} to '{place}'"}

    def _is_full(self) -> bool:
        paths = _list_paths(self.root, "")
        return next(islice(paths, _MAX_PATHS, None), None) is not None


def _duplicate(item: Item, name: str, parent: Folder, *, is_move: bool) -> Item:
    """Return a new entry: folders within it still go up to where they were."""
    if isinstance(item, File):
        return File(item.content)
    return Folder(name, parent, item.items if is_move else dict(item.items))


def _load_folder(name: str, contents: dict[str, Any], parent: Folder | None) -> Folder:
    folder = Folder(name, parent)
    for each, data in contents.items():
        if data["type"] == "directory":
            folder.items[each] = _load_folder(each, data["contents"], folder)
        elif data["type"] == "file":
            folder.items[each] = File(data["content"])
    return folder


def _list_tree(folder: Folder) -> dict[str, Any]:
    return {
        name: item.content if isinstance(item, File) else _list_tree(item)
        for name, item in folder.items.items()
    }


def _list_paths(folder: Folder, path: str) -> Iterator[tuple[str, str]]:
    for name, item in folder.items.items():
        yield f"{path}/{name}", name
        if isinstance(item, Folder):
            yield from _list_paths(item, f"{path}/{name}")


def _measure(item: Item) -> int:
    if isinstance(item, File):
        return len(item.content.encode())
    return sum(map(_measure, item.items.values()))


def _is_name(text: str) -> bool:
    return _NOT_IN_NAMES.isdisjoint(text)
