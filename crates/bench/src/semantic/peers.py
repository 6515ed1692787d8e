"""Python's own way to embed the same texts: one line per peer, cells by tabs. Models by BENCH_MODELS and the package."""
import os
import sys
import time
from pathlib import Path

LENGTHS = ("16", "64", "128", "256")


def shown(times):
    times = sorted(times)
    at = lambda share: times[round((len(times) - 1) * share)] * 1000
    return f"{at(0.5):.1f} ({at(0.95):.1f})"


def measure(name, threads, embed, texts):
    embed(["warm up"])
    cells = [name, threads]
    for length in LENGTHS:
        times = []
        for text in texts[length]:
            started = time.perf_counter()
            embed([text])
            times.append(time.perf_counter() - started)
        cells.append(shown(times))
    times = []
    for at in range(0, min(len(texts["64"]), 40) - 7, 8):
        started = time.perf_counter()
        embed(texts["64"][at:at + 8])
        times.append(time.perf_counter() - started)
    cells.append(f"{8 / sorted(times)[len(times) // 2]:.0f}")
    print("\t".join(cells), flush=True)


def onnxruntime_peer(model, threads):
    import numpy
    import onnxruntime
    from tokenizers import Tokenizer

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(threads)
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(str(model.parent / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.enable_padding()

    def embed(texts):
        encoded = tokenizer.encode_batch(texts)
        ids = numpy.array([one.ids for one in encoded], dtype=numpy.int64)
        mask = numpy.array([one.attention_mask for one in encoded], dtype=numpy.int64)
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)}
        hidden = session.run(None, inputs)[0]
        pooled = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        return pooled / numpy.linalg.norm(pooled, axis=1, keepdims=True)

    return embed


def sentence_transformers_peer(threads):
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(int(threads))
    model = SentenceTransformer(os.environ["BENCH_ST_MODEL"], device="cpu")
    return lambda texts: model.encode(texts, normalize_embeddings=True, show_progress_bar=False)


def main():
    texts = {length: [] for length in LENGTHS}
    for line in Path(sys.argv[1]).read_text().splitlines():
        length, text = line.split("\t")
        texts[length].append(text)
    threads = sys.argv[2]
    for model in filter(None, os.environ.get("BENCH_MODELS", "").split(":")):
        measure(f"Python onnxruntime, {Path(model).name}", threads, onnxruntime_peer(Path(model), threads), texts)
    if os.environ.get("BENCH_ST_MODEL"):
        measure("sentence-transformers, fp32", threads, sentence_transformers_peer(threads), texts)


main()
