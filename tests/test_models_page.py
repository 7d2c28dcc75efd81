"""docs/models.md and the data behind `costcalc models`: one row a type, and nothing called exact without a record.

Run it to write both again: python tests/test_models_page.py
"""

import contextlib
import io
import json
import re
import sys
from collections import defaultdict
from importlib import import_module
from pathlib import Path

import pytest

from costcalc import CostcalcError, load
from costcalc.cli.main import run
from costcalc.sources.huggingface.lineages import LINEAGES
from costcalc.sources.huggingface.not_read import NOT_READ
from costcalc.sources.huggingface.read import QUESTIONS, read_types

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "costcalc" / "sources" / "huggingface" / "models.json"
PAGE = ROOT / "docs" / "models.md"
BEGIN, END = "<!-- the rest is written by tests/test_models_page.py -->\n", "<!-- end -->"
LOADED = 3
"""Recorded configs of a type that are read to tell how exactly it is: the first, and two others."""
AS_ANOTHER = {
    **dict.fromkeys(["RefinedWeb", "RefinedWebModel"], "falcon"),
    **dict.fromkeys(
        ["Yi", "aquila", "internlm", "internlm2", "minicpm", "xverse", "baichuan", "qwen", "chatglm"], "llama"
    ),
    **dict.fromkeys(["deci", "nemotron-nas", "orion", "openelm", "hf_olmo"], "llama"),
    **dict.fromkeys(["mimo", "h2ovl_chat", "internvl_chat", "interns1", "llava_qwen", "ovis"], "qwen2"),
    **dict.fromkeys(["llava_llama", "multi_modality", "perception_lm", "speech-encoder-decoder"], "llama"),
    **dict.fromkeys(["vision-encoder-decoder"], "gpt2"),
    **dict.fromkeys(["minimax_m1", "minimax_text_01", "minimax_vl_01"], "minimax"),
    **dict.fromkeys(["minimax_m3", "minimax_m3_vl"], "minimax_m3_vl_text"),
    "apertus1p5": "apertus1p5_text",
    "emu3_text_model": "emu3",
    "fast_vlm": "qwen2",
    "gemma3n": "gemma3n_text",
    "glm4v_moe_text": "glm4v_moe",
    "glm4v_text": "glm4v",
    "glm_ocr_text": "glm_ocr",
    "granite4_vision": "granite",
    "granite4_vision_text": "granite",
    "granite_docling_text": "granite_docling",
    "hunyuan_vl_text": "hunyuan_vl",
    "kimi_vl": "deepseek_v3",
    "llava_mistral": "mistral",
    "paddleocr_vl_text": "paddleocr_vl",
    "phi-msft": "phi",
    "phi3_v": "phi3",
    "phi4mm": "phi4_multimodal",
    "qwen2_5_omni": "qwen2_5_vl",
    "qwen2_5_omni_text": "qwen2_5_vl",
    "qwen2_5_vl_text": "qwen2_5_vl",
    "qwen2_vl_text": "qwen2_vl",
    "qwen3_omni_moe": "qwen3_vl_moe",
    "qwen3_omni_moe_text": "qwen3_vl_moe",
    "qwen3_vl_moe_text": "qwen3_vl_moe",
    "qwen3_vl_text": "qwen3_vl",
    "stablelm_epoch": "stablelm",
    "voxtral_realtime_text": "voxtral_realtime",
}
"""Types that no class of the library is recorded of -> a recorded type that is read in the same way: the text part of
theirs, or what code of their own builds, where tests hold published totals.
"""
WORST = ("refused", "modelled", "exact", "none")


def recorded():
    """Model type -> its recorded rows that hold parameters."""
    rows = defaultdict(list)
    for path in sorted((ROOT / "tests" / "oracle").glob("*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        for row in found if isinstance(found, list) else []:
            if isinstance(row.get("config"), dict) and "params" in row and "error" not in row:
                rows[row["config"].get("model_type")].append(row)
    return rows


def answers(model):
    """How exactly each question about an architecture is answered."""
    inventory = model.inventory
    unstated = {missing.of for missing in inventory.unstated}
    scans = any(matmul.role == "scan" for matmul in inventory.matmuls)
    flops = "refused" if "flops" in unstated else "modelled" if scans else "exact"
    cache = "refused" if "cache" in unstated else "exact"
    keeps = inventory.has_cache
    return {
        "parameters": "exact",
        "flops": flops,
        "decode": flops if keeps else "none",
        "cache": cache if keeps else "none",
    }


def row_of(model_type, rows):
    """What `costcalc models` says of one type, from its recorded configs."""
    some = [rows[0], *rows[1 :: max(1, len(rows) // (LOADED - 1))]][:LOADED]
    models = []
    for row in some:
        try:
            models.append(load(row["config"]))
        except CostcalcError:
            continue
    told = [answers(model) for model in models]
    return {
        "family": models[0].family,
        "class": usual(model_type),
        **{name: min((each[name] for each in told), key=WORST.index) for name in QUESTIONS},
        "recorded": len(rows),
        "not_counted": list(models[0].not_counted),
    }


def made():
    rows = recorded()
    own = {name: row_of(name, rows[name]) for name in LINEAGES if rows[name]}
    others = {name: {**own[other], "class": usual(name), "recorded": 0} for name, other in AS_ANOTHER.items()}
    return dict(sorted({**own, **others}.items()))


def usual(model_type):
    """The first of the classes that are read."""
    return import_module(f"costcalc.sources.huggingface.{LINEAGES[model_type]}").CLASSES[model_type][0]


@pytest.fixture(scope="module")
def told():
    return made()


def test_every_type_that_is_read_is_told_and_recorded_or_like_one_that_is(told):
    assert sorted(told) == sorted(LINEAGES)
    assert {name for name, row in told.items() if not row["recorded"]} == set(AS_ANOTHER)


def test_the_data_is_what_the_recorded_configs_tell(told):
    assert read_types() == told, "write it again: python tests/test_models_page.py"


def test_the_page_is_what_the_program_prints(capsys):
    assert run(["models", "--format", "markdown"]) == 0
    printed = capsys.readouterr().out
    between = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    assert between.strip() == printed.strip(), "write it again: python tests/test_models_page.py"


def test_what_is_refused_is_not_read_and_has_a_reason():
    assert not NOT_READ.keys() & LINEAGES.keys()
    for model_type, why in NOT_READ.items():
        with pytest.raises(CostcalcError, match=re.escape(why)):
            load({"model_type": model_type})


def test_the_answers_of_a_type_are_those_of_its_questions():
    for name, row in read_types().items():
        assert row["parameters"] == "exact", name
        assert {row[question] for question in QUESTIONS} <= set(WORST), name
        assert (row["cache"] == "none") == (row["decode"] == "none"), name
        assert row["cache"] != "none" or row["family"] == "encoder-only", name


def main():
    DATA.write_text(json.dumps(made(), indent=0, separators=(",", ":")) + "\n", encoding="utf-8")
    read_types.cache_clear()
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        run(["models", "--format", "markdown"])
    above = PAGE.read_text(encoding="utf-8").partition(BEGIN)[0]
    PAGE.write_text(f"{above}{BEGIN}\n{out.getvalue().strip()}\n\n{END}\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
