"""A topic in the making: the files put into its directory so far, and where each is from."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from llm_kb.files.atomic import WriteError
from llm_kb.opener import read_regular
from llm_kb.references.fetch.old_topic import OldTopic
from llm_kb.references.topic.provenance import FileRecord, hash_content


@dataclass(slots=True, kw_only=True)
class Staged:
    """A topic in the making: its directory, and what was put there so far.

    `failed` are the numbers of the sources that gave nothing new. All that writes raises
    WriteError where there is no writing, as on a full disk.
    """

    directory: Path
    now: str
    old: OldTopic | None = None
    files: dict[str, FileRecord] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    failed: set[int] = field(default_factory=set)

    def write(self, path: str, data: bytes, record: FileRecord) -> None:
        """Write one file and record it; one whose name is taken is left out, and told."""
        target = self.directory / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                file.write(data)
        except (FileExistsError, NotADirectoryError):
            self._tell_taken(path, record)
            return
        except OSError as error:
            raise WriteError(target, error.strerror or str(error)) from error
        self.files[path] = replace(
            record, hash=hash_content(data), size=len(data), fetched_at=self.now
        )

    def fail_source(self, index: int) -> None:
        """Take a source's files as the old topic has them, in place of what it gave till now."""
        self.failed.add(index)
        for path in [path for path, record in self.files.items() if record.source == index]:
            self._remove(path)
        if self.old:
            for path, record in self.old.of_source(index).items():
                self.keep_as_it_is(path, record)

    def keep_as_it_is(self, path: str, record: FileRecord) -> None:
        """Take over a file that cannot be fetched now, whatever was made of it meanwhile."""
        if not self.keep(path, record, verify=False) and (self.directory / path).exists():
            self._tell_taken(path, record)

    def keep(self, path: str, record: FileRecord, *, verify: bool = True) -> bool:
        """Take a file over from the old topic if it still is as recorded there.

        A hard link keeps its modification time, so that it is not indexed again.
        """
        if self.old is None:
            return False
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

    def _remove(self, path: str) -> None:
        """Take a file back, and the directories that were made for it alone."""
        del self.files[path]
        target = self.directory / path
        target.unlink()
        for parent in target.relative_to(self.directory).parents[:-1]:
            with suppress(OSError):  # there is more in it
                (self.directory / parent).rmdir()

    def _tell_taken(self, path: str, record: FileRecord) -> None:
        # Names that differ in case alone, on a disk that cannot tell them apart.
        self.warnings.append(f"{record.url}: {path!r} left out, another file has its name")


def _link(origin: Path, target: Path) -> None:
    try:
        os.link(origin, target)
    except (FileExistsError, NotADirectoryError, FileNotFoundError):
        raise
    except OSError:  # a file system without links
        shutil.copy2(origin, target)
