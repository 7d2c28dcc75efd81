"""Record what checkpoints of many classes hold: the names and shapes of the tensors that `save_pretrained` writes.

Run it in the throwaway environment that `record.py` describes; the models are tiny, and their numbers are not kept:

    throwaway/bin/python tests/oracle/record_headers.py    # rewrites headers.json
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import torch
import transformers
from headers_cases import cases
from headers_packed import packed
from safetensors import safe_open
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

HERE = Path(__file__).resolve().parent


def stored(model: transformers.PreTrainedModel) -> dict[str, list[int]]:
    """Name -> shape of every tensor in the file."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        with safe_open(Path(folder) / "model.safetensors", framework="pt") as file:
            return {name: list(file.get_slice(name).get_shape()) for name in sorted(file.keys())}


def main() -> None:
    """Write one row for each case."""
    torch.manual_seed(0)
    rows = []
    for name, model_class, config in cases():
        own = {key: value for key, value in config.items() if key not in ("model_type", "architectures")}
        built = CONFIG_MAPPING[config["model_type"]](**own)
        for key in ("bos_token_id", "eos_token_id"):
            setattr(built, key, 1)
        tensors = stored(getattr(transformers, model_class)(built))
        rows.append(json.dumps({"id": name, "config": config, "tensors": packed(tensors)}, separators=(",", ":")))
    (HERE / "headers.json").write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
