"""The files, settings and judge that one answer's score is made from, or would be made from."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from mind2web2.errors import AnswerError, UsageError
from mind2web2.judge.store import STORE_NAME
from mind2web2.pages.cache import CacheFileSys
from mind2web2.results.answers import AnswerFile, answer_file, read_answer
from mind2web2.results.freshness import prompts_sha256
from mind2web2.results.provenance import Provenance
from mind2web2.results.result_file import ResultFile
from mind2web2.runs.named_judge import judge_spec
from mind2web2.runs.recorded_settings import recorded_settings
from mind2web2.runs.settings import RunSettings
from mind2web2.utils.files import file_sha256, text_sha256
from mind2web2.utils.path_config import PathConfig, script_in


@dataclass(frozen=True)
class Material:
    """The material of one answer's score.

    Args:
        script: the file that judges it, ``None`` where it is gone.
        pages: the folder of its task's pages.
        made_from: as the result has it, or would have it.
        judgments: the file of its judge's replies.
        result: ``None`` for one that is still to be evaluated.
    """

    answer: AnswerFile
    script: Path | None
    pages: Path
    made_from: Provenance
    judgments: Path
    result: ResultFile | None

    @classmethod
    def of(
        cls, paths: PathConfig, agent: str, task_id: str, name: str, result: ResultFile
    ) -> Material:
        """Return the material of a result.

        Raises:
            UsageError: the result does not say what it was made from.
        """
        made_from, folder = result.provenance, paths.eval_results_root / agent
        if made_from is None:
            raise UsageError(
                f"{folder}/{task_id}/{name}: the result does not say what it was made from; "
                "evaluate the answer again"
            )
        source = made_from.replayed_from
        return cls(
            answer=answer_file(paths.answers_root / agent / task_id / name),
            script=_script_of(paths.eval_scripts_root, task_id, made_from),
            pages=paths.cache_root / agent / task_id,
            made_from=made_from,
            judgments=folder / STORE_NAME if source is None else Path(source.path),
            result=result,
        )

    @property
    def score(self) -> float | None:
        """Return its score, ``None`` for an answer that is still to be evaluated."""
        return None if self.result is None else self.result.final_score

    @cached_property
    def is_at_hand(self) -> bool:
        """Tell whether answer and pages are still those that were judged; reads files."""
        try:
            text = read_answer(self.answer.path)
        except AnswerError:
            return False
        cache = CacheFileSys(self.pages)
        return text_sha256(text) == self.made_from.answer_sha256 and all(
            cache.digest(url) == digest for url, digest in self.made_from.pages.items()
        )

    def changed(
        self,
        names: Collection[str],
        change: Callable[[RunSettings], RunSettings] | None,
        paths: PathConfig,
    ) -> Material:
        """Return the answer with the files and the judge that changed settings name.

        Args:
            names: of these settings.
            change: returns settings with those of the judge; ``None`` if it stays the same.
            paths: the folders that they name.

        Raises:
            UsageError: the task has no script there.
        """
        agent, task_id = self.pages.parent.name, self.pages.name
        answer, script, pages, made_from = self.answer, self.script, self.pages, self.made_from
        update: dict[str, object] = {"settings_sha256": prompts_sha256()}
        if change is not None:
            update["judge"] = judge_spec(change(recorded_settings(made_from))).record()
        if {"eval_version", "eval_scripts_root"} & set(names):
            script = paths.default_script_for(task_id)
            update["script_sha256"] = file_sha256(script)
        if "cache_root" in names:
            pages = paths.cache_root / agent / task_id
            cache = CacheFileSys(pages)
            update["pages"] = {url: cache.digest(url) for url in made_from.pages}
        if "answer_folder" in names:
            answer = answer_file(paths.answers_root / agent / task_id / answer.name)
            update["answer_sha256"] = text_sha256(read_answer(answer.path))
        made_from = made_from.model_copy(update=update)
        return replace(
            self, answer=answer, script=script, pages=pages, made_from=made_from, result=None
        )


def _script_of(root: Path, task_id: str, made_from: Provenance) -> Path | None:
    """Return the script that a result names, or one of the same bytes in another folder."""
    named = Path(made_from.script).parent.name
    folders = sorted((root, *root.glob("[!.]*/")), key=lambda folder: folder.name != named)
    scripts = (script_in(folder, task_id) for folder in folders)
    return next(
        (path for path in scripts if path and file_sha256(path) == made_from.script_sha256), None
    )
