"""`hf:OWNER/NAME`: from the local cache, and the exact reason where it cannot be had. No test needs a network."""

import json
import subprocess
import sys

import huggingface_hub
import pytest
from huggingface_hub import errors

from costcalc import CostcalcError, load
from costcalc.sources.hub import config_file, parsed

TINY = {"model_type": "llama", "vocab_size": 19, "hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3}
TINY |= {"intermediate_size": 17, "head_dim": 4, "num_key_value_heads": 3}


@pytest.fixture
def cache(tmp_path):
    """A home of the library that holds one repository at one revision, as the library lays it out."""
    repository = tmp_path / "hub" / "models--some-one--Tiny-1.5"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("0123abc")
    (repository / "snapshots" / "0123abc").mkdir(parents=True)
    (repository / "snapshots" / "0123abc" / "config.json").write_text(json.dumps(TINY))
    return tmp_path


def costcalc(home, *words):
    """A fresh process: the library reads its environment once, when it is imported."""
    environment = {
        "HF_HOME": str(home),
        "HF_HUB_OFFLINE": "1",
        "PATH": "",
        "PYTHONPATH": ":".join(filter(None, sys.path)),
    }
    done = subprocess.run(
        [sys.executable, "-m", "costcalc", *words], env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_a_cached_config_is_read_without_a_network(cache):
    code, out, _ = costcalc(cache, "params", "hf:some-one/Tiny-1.5", "--json")
    assert code == 0
    told = json.loads(out)
    assert told["model"] == "Tiny-1.5"
    # 2·19·12 of the tables, 2·(4·12·12 + 3·12·17 + 2·12) of the layers, 12 of the last norm
    assert told["total_parameters"] == 456 + 2424 + 12


def test_what_is_not_cached_is_told_with_the_reason(cache):
    code, out, told = costcalc(cache, "params", "hf:some-one/Tiny-1.5@v2")
    assert (code, out) == (2, "")
    assert "hf:some-one/Tiny-1.5: its config.json@v2 is not in the local cache, and HF_HUB_OFFLINE is set" in told
    assert "unset HF_HUB_OFFLINE" in told
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("Qwen/Qwen3-8B", ("Qwen/Qwen3-8B", None)),
        ("gpt2", ("gpt2", None)),
        ("a/b.c-d_e@v1.0", ("a/b.c-d_e", "v1.0")),
        ("a/b@refs/pr/7", ("a/b", "refs/pr/7")),
    ],
)
def test_names_and_revisions(word, found):
    assert parsed(word) == found


@pytest.mark.parametrize(
    "word",
    ["", "/", "a/", "/b", "a/b/c", "a b", "a/b@", "@main", "-a/b", "../b", "a/..", "a--b/c", "a/b\n", "é/b", "x" * 97],
)
def test_what_can_be_no_repository_is_never_asked_for(word):
    with pytest.raises(CostcalcError, match="no repository can be called") as caught:
        load(f"hf:{word}")
    assert caught.value.hint == "write hf:OWNER/NAME, such as hf:Qwen/Qwen3-8B"


@pytest.mark.parametrize(
    ("name", "what", "hint"),
    [
        ("GatedRepoError", "gated: its owner grants access by hand", "HF_TOKEN"),
        ("DisabledRepoError", "disabled by the hub", "from elsewhere"),
        ("RepositoryNotFoundError", "no such repository, or a private one", "HF_TOKEN"),
        ("RevisionNotFoundError", "no revision is called 'v9'", "leave it out"),
        ("EntryNotFoundError", "it has no config.json", "GGUF"),
        (
            "LocalEntryNotFoundError",
            "its config.json@v9 is not in the local cache, and the hub cannot be reached",
            "HF_HOME",
        ),
        ("HFValidationError", "no repository can be called so", "hf:OWNER/NAME"),
    ],
)
def test_each_error_of_the_library_is_told_in_our_words(monkeypatch, name, what, hint):
    kind = getattr(errors, name)

    def fails(*_, **__):
        raise kind.__new__(kind)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", fails)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    with pytest.raises(CostcalcError) as caught:
        config_file("a/b", "v9")
    assert (caught.value.what, caught.value.where) == (what, "hf:a/b")
    assert hint in caught.value.hint


def test_any_other_error_is_told_too(monkeypatch):
    def fails(*_, **__):
        raise OSError("the disk\nis full")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", fails)
    with pytest.raises(CostcalcError, match="cannot be fetched: the disk is full"):
        config_file("a/b")


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(CostcalcError, match="is not installed") as caught:
        config_file("a/b")
    assert caught.value.hint == "pip install 'costcalc[hub]'"
