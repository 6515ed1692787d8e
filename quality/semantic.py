"""The semantic loop detection of the design document, as a baseline: the only part that needs more than Python itself.

Rule: all-MiniLM-L6-v2, mean pooling over the mask, L2 norm; similarity = 1 − cosine distance / 2;
alarm when the similarity to any of the last five prompts is above 0.95.
Two readings: the whole prompt so far (the design, literally) and the last step only.
"""
from __future__ import annotations

import hashlib
import sqlite3
import time
from collections import deque
from pathlib import Path
from typing import Iterator

from baselines import spoken
from data import ROOT, Run, text

HISTORY = 5
THRESHOLD = 0.95
HEAD = TAIL = 64
"""A prompt over 128 tokens is cut to its head and tail: the model was made for short texts."""

MODELS = (ROOT / "models", ROOT.parent / "shared" / "model")


class NotMeasured(Exception):
    """Why the semantic rows are empty."""


class Embedder:
    """Texts to unit vectors, kept in a file by hash so that a second measurement is fast."""

    def __init__(self, cache: Path) -> None:
        try:
            import numpy
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError as missing:
            raise NotMeasured(f"the Python package {missing.name} is not installed") from missing
        model = find_model()
        options = onnxruntime.SessionOptions()
        # One thread that does not spin: two that do are several times slower beside any other work.
        options.intra_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.numpy = numpy
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.tokenizer = Tokenizer.from_file(str(model.parent / "tokenizer.json"))
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self.model_hash = hashlib.sha256(model.read_bytes()).digest()
        cache.parent.mkdir(parents=True, exist_ok=True)
        self.cache = sqlite3.connect(cache)
        self.cache.execute("CREATE TABLE IF NOT EXISTS vectors (hash BLOB PRIMARY KEY, vector BLOB NOT NULL)")
        self.seconds = 0.0
        self.computed = 0

    def vector(self, prompt: str):
        key = hashlib.sha256(self.model_hash + prompt.encode()).digest()
        row = self.cache.execute("SELECT vector FROM vectors WHERE hash = ?", (key,)).fetchone()
        if row:
            return self.numpy.frombuffer(row[0], dtype=self.numpy.float32)
        started = time.monotonic()
        vector = self.compute(prompt)
        self.seconds += time.monotonic() - started
        self.computed += 1
        self.cache.execute("INSERT INTO vectors VALUES (?, ?)", (key, vector.tobytes()))
        return vector

    def compute(self, prompt: str):
        # One text per call: int8 scales are taken over the whole batch, so neighbours would change the vector.
        ids = cut(self.tokenizer.encode(shorten(prompt)).ids)
        tokens = self.numpy.array([ids], dtype=self.numpy.int64)
        mask = self.numpy.ones_like(tokens)
        inputs = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": self.numpy.zeros_like(tokens)}
        pooled = self.session.run(None, inputs)[0][0].mean(axis=0)
        return (pooled / self.numpy.linalg.norm(pooled)).astype(self.numpy.float32)

    def save(self) -> None:
        self.cache.commit()


def find_model() -> Path:
    for folder in MODELS:
        for model in sorted(folder.glob("**/model_int8.onnx")):
            if (model.parent / "tokenizer.json").exists():
                return model
    raise NotMeasured("model_int8.onnx and tokenizer.json are neither in models/ nor in ../shared/model/")


def shorten(prompt: str, limit: int = 4000) -> str:
    """Bounds the tokenizer's work. Far more text than 64 tokens at each end can hold."""
    return prompt if len(prompt) <= 2 * limit else prompt[:limit] + prompt[-limit:]


def cut(ids: list[int]) -> list[int]:
    return ids if len(ids) <= HEAD + TAIL else ids[:HEAD] + ids[-TAIL:]


def first_alarm(prompts: Iterator[tuple[int, str]], embedder: Embedder) -> int | None:
    recent: deque = deque(maxlen=HISTORY)
    for i, prompt in prompts:
        vector = embedder.vector(prompt)
        if any(1 - (1 - float(vector @ earlier)) / 2 > THRESHOLD for earlier in recent):
            return i
        recent.append(vector)
    return None


def whole_prompts(run: Run) -> Iterator[tuple[int, str]]:
    """The conversation up to and with each step, as a request holds it."""
    so_far = run.task + "\n"
    for i, step in enumerate(run.steps):
        so_far += spoken(step)
        yield i, so_far


def deltas(run: Run) -> Iterator[tuple[int, str]]:
    """What the agent says and calls in each step. Results and outside words are not its prompt."""
    for i, step in enumerate(run.steps):
        said = " ".join(part for part in (step.thought, step.tool or "", text(step.args)) if part)
        if said and step.role != "user":
            yield i, said


READINGS = {"semantic, whole prompt": whole_prompts, "semantic, last delta": deltas}
