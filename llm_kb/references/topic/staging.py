"""A staged topic: its directory, the files put there so far, and their origins."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from llm_kb.files.atomic import WriteError, writing
from llm_kb.files.containment import read_regular
from llm_kb.references.errors import TopicTooLargeError
from llm_kb.references.sources.file_names import unused_name
from llm_kb.references.topic.old_topic import OldTopic
from llm_kb.references.topic.provenance import FileRecord, hash_content
from llm_kb.rendering.plain_text import format_size


@dataclass(slots=True, kw_only=True)
class Staged:
    """A topic in a staging directory, with the files put there so far.

    `failed` are the numbers of the sources that gave nothing new, `own` the kept files that
    were never fetched, `restored` the number of fetched files that were edited or lost here and
    were fetched again. Methods that write raise WriteError, as on a full disk.
    """

    directory: Path
    now: str
    most_bytes: int
    old: OldTopic
    own: tuple[str, ...] = ()
    restored: int = 0
    written_bytes: int = 0
    files: dict[str, FileRecord] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    failed: set[int] = field(default_factory=set)

    def write(self, path: str, data: bytes, record: FileRecord) -> None:
        """Write one file and record it; if its name is taken, leave it out with a warning.

        Raises TopicTooLargeError if all written files together exceed `most_bytes`.
        """
        target = self.directory / path
        self.written_bytes += len(data)
        if self.written_bytes > self.most_bytes:
            limit = format_size(self.most_bytes)
            raise TopicTooLargeError(record.url, f"with it the topic is over max_bytes ({limit})")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                file.write(data)
        except (FileExistsError, NotADirectoryError):
            self._warn_taken(path, record)
            return
        except OSError as error:
            raise WriteError(target, error.strerror or str(error)) from error
        self.files[path] = replace(
            record, hash=hash_content(data), size=len(data), fetched_at=self.now
        )

    def read(self, path: str) -> bytes:
        """Return the content of a staged file."""
        return read_regular(self.directory / path)

    def rewrite(self, path: str, data: bytes) -> None:
        """Replace a staged file; if it is a link to the old topic's, that one is not changed."""
        target = self.directory / path
        with writing(target):
            target.unlink()
            target.write_bytes(data)
        self.files[path] = replace(self.files[path], hash=hash_content(data), size=len(data))

    def reuse(self, path: str) -> None:
        """Use the old topic's file if it is the same, since that is indexed already."""
        record, before = self.files[path], self.old.files.get(path)
        if before and before.hash == record.hash and self.old.has({path: before}):
            (self.directory / path).unlink()
            self.keep(path, record)

    def fail_source(self, index: int) -> None:
        """Replace the files of a source fetched so far by those of the old topic."""
        self.failed.add(index)
        for path in [path for path, record in self.files.items() if record.source == index]:
            self._remove(path)
        for path, record in self.old.of_source(index).items():
            self.keep_as_it_is(path, record)

    def keep_as_it_is(self, path: str, record: FileRecord) -> None:
        """Keep the old topic's file, edited or not, since it cannot be fetched now."""
        if not self.keep(path, record, verify=False) and (self.directory / path).exists():
            self._warn_taken(path, record)

    def keep(self, path: str, record: FileRecord, *, verify: bool = True) -> bool:
        """Keep the old topic's file if it is still as recorded there.

        A hard link keeps its modification time, so that it is not indexed again.
        """
        origin, target = self.old.directory / path, self.directory / path
        try:
            if not stat.S_ISREG(origin.lstat().st_mode) or target.exists():
                return False
            if verify and hash_content(read_regular(origin)) != record.hash:
                return False
        except OSError:
            return False
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            _link(origin, target)
        except (FileExistsError, NotADirectoryError, FileNotFoundError):
            return False
        except OSError as error:
            raise WriteError(target, error.strerror or str(error)) from error
        self.files[path] = record
        return True

    def keep_own_files(self) -> None:
        """Keep the files of the old topic that were added by hand, since they are its owner's.

        If a fetched file now has the same name, the owner's file is renamed, with a warning.
        """
        kept: list[str] = []
        own = self.old.find_own_files()
        for path in own:
            name = path
            if os.path.lexists(self.directory / path):
                if not self.old.record.files:
                    continue  # the record was deleted, so this may be a fetched file
                name = unused_name(path, [*self.files, *own])
                self.warnings.append(f"your file {path!r} is now {name!r}: a source has its name")
            target = self.directory / name
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                _link(self.old.directory / path, target)
            except OSError as error:
                reason = f"{error.strerror}; {path!r} was added by hand and would be lost"
                raise WriteError(target, reason) from error
            kept.append(name)
        self.own = tuple(kept)

    def _remove(self, path: str) -> None:
        """Remove a staged file, and the directories that were made only for it."""
        del self.files[path]
        target = self.directory / path
        target.unlink()
        for parent in target.relative_to(self.directory).parents[:-1]:
            with suppress(OSError):  # there is more in it
                (self.directory / parent).rmdir()

    def _warn_taken(self, path: str, record: FileRecord) -> None:
        # Names that differ in case alone, on a disk that cannot tell them apart.
        self.warnings.append(f"{record.url}: {path!r} left out, another file has its name")


def _link(origin: Path, target: Path) -> None:
    try:
        os.link(origin, target, follow_symlinks=False)
    except (FileExistsError, NotADirectoryError, FileNotFoundError):
        raise
    except OSError:  # a file system without links
        shutil.copy2(origin, target, follow_symlinks=False)
