"""Record which classes of a decoder there are beside its language model, and their parameters.

Run it in the throwaway environment that `record.py` describes, with the checkout on the path:

    PYTHONPATH=. throwaway/bin/python tests/oracle/record_heads.py  # heads.json, the importer's classes.json

A class is listed where it is the library's own for the type, and what it has beside the bare model is one matrix of
labels, with or without a bias.
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers.models.auto import modeling_auto as auto

from costcalc.sources.huggingface.lineages import LINEAGES

HERE = Path(__file__).resolve().parent
CLASSES = HERE.parent.parent / "costcalc" / "sources" / "huggingface" / "classes.json"
USES = {
    "Model": auto.MODEL_MAPPING_NAMES,
    "ForSequenceClassification": auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES,
    "ForTokenClassification": auto.MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES,
    "ForQuestionAnswering": auto.MODEL_FOR_QUESTION_ANSWERING_MAPPING_NAMES,
}
ARRAYS = {"Model": 0, "ForSequenceClassification": 1, "ForTokenClassification": 2, "ForQuestionAnswering": 2}
"""How many arrays a class has of its own."""
HEADS = ("score", "classifier", "qa_outputs")
LABELS = 7
WITH_TOWERS = ("git", "moshi", "phi4_multimodal")
"""Their bare classes hold more than the text model, which alone is counted."""
FOR_THOSE_WITHOUT_SIZES: tuple[dict[str, Any], ...] = (
    {"head_dim": 128},
    {"num_key_value_heads": 8},
    {"num_experts_per_tok": 2},
)
"""What the defaults of some classes lack, so that they cannot be built."""


def of_decoders() -> Iterator[tuple[str, str, str]]:
    """(model type, class, what it is for) of the types whose usual class is a causal language model."""
    for model_type, module in LINEAGES.items():
        known = import_module(f"costcalc.sources.huggingface.{module}").CLASSES[model_type]
        if module == "nested" or model_type in WITH_TOWERS or not known[0].endswith(("ForCausalLM", "LMHeadModel")):
            continue
        for use, names in USES.items():
            named = names.get(model_type)
            for name in named if isinstance(named, tuple) else [named]:
                if name is not None and name not in known:
                    yield model_type, name, use


def parameters(model_type: str, name: str, use: str, **changes: Any) -> int | None:
    """Of the class with its default config; None where it has another head than is read."""
    config = transformers.CONFIG_MAPPING[model_type](**changes)
    with torch.device("meta"):
        model = getattr(transformers, name)(config)
    base = f"{model.base_model_prefix}."
    own = [] if use == "Model" else [path for path, _ in model.named_parameters() if not path.startswith(base)]
    if len(own) != ARRAYS[use] or any(path.partition(".")[0] not in HEADS for path in own):
        return None
    return sum(array.numel() for array in model.parameters())


def main() -> None:
    """Build each on the meta device; what cannot be built is left out."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    classes: dict[str, Any] = {"_provenance": f"auto maps of transformers {transformers.__version__}: record_heads.py"}
    rows = []
    for model_type, name, use in of_decoders():
        changes = {"num_labels": LABELS} if use in ("ForSequenceClassification", "ForTokenClassification") else {}
        for more in ({}, *FOR_THOSE_WITHOUT_SIZES):
            try:
                count = parameters(model_type, name, use, **changes, **more)
            except Exception as error:
                print(f"{name}: {error}")
                continue
            if count is not None:
                config = {"model_type": model_type, "architectures": [name], **changes, **more}
                classes.setdefault(model_type, {})[name] = use
                rows.append({"config": config, "params": count})
            break
    CLASSES.write_text(json.dumps(classes, indent=1) + "\n", encoding="utf-8")
    lines = ",\n".join(json.dumps(row) for row in rows)
    (HERE / "heads.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
