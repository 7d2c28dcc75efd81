"""An encoder and an encoder-decoder as people write them, letter by letter, and what they come to."""

from __future__ import annotations

import pytest

from costcalc import Workload, flops, kv_cache, load, parameters

ENCODER = """\
name: bert-base-uncased
source: google-bert/bert-base-uncased config.json
published_parameters: 109_514_298     # with the masked-LM head
vocab_size: 30522
d_model: 768
context_length: 512
norm: layernorm
positions: {kind: learned, length: 512}
embedding: {token_types: 2, norm: layernorm}
tie_embeddings: true
encoder:                              # only `encoder`: encoder-only; both: encoder-decoder; else decoder-only
  layers:
    - repeat: 12
      norms: post                     # pre (default) | post | output | sandwich
      attention: {heads: 12, bias: true, out_bias: true}
      feed_forward: {kind: dense, d_ff: 3072, activation: gelu, bias: true}
head: {transform: true, bias: true}   # dense + activation + norm, then the tied table and its own bias
"""
PAIR = """\
name: t5-small
source: google-t5/t5-small config.json
published_parameters: 60_506_624
vocab_size: 32128
d_model: 512
norm: rmsnorm
positions: {kind: relative, buckets: 32}   # one table per stack, in its first layer
tie_embeddings: true                  # head = decoder table
share_embeddings: true                # encoder table = decoder table
encoder:
  layers:
    - repeat: 6
      attention: {heads: 8, head_dim: 64}
      feed_forward: {kind: dense, d_ff: 2048, activation: relu}
decoder:
  layers:
    - repeat: 6
      attention: {heads: 8, head_dim: 64}
      cross_attention: {heads: 8, head_dim: 64}
      feed_forward: {kind: dense, d_ff: 2048, activation: relu}
"""


@pytest.mark.parametrize(("text", "family"), [(ENCODER, "encoder-only"), (PAIR, "encoder-decoder")])
def test_the_published_total_is_the_count(write, text, family):
    arch = load(write(text))
    assert arch.family == family
    assert parameters(arch).total == arch.published_parameters


def test_bert_as_written_is_the_preset_but_for_the_eps(write):
    """12 layers of 4·D² and 2·D·F a token and 2·T·D·2 pairs; D² and V·D of the head; as the real class multiplies."""
    arch, preset = load(write(ENCODER)), load("bert-base-uncased")
    assert arch.inventory == preset.inventory
    for tokens, counted in ((16, 3_496_329_216), (48, 10_545_610_752)):
        assert flops(arch, Workload(new_tokens=tokens)).forward == counted
    assert kv_cache(arch, 512).bytes is None


def test_t5_as_written_costs_what_the_preset_does(write):
    """As the real class multiplies, 16 and 48 tokens on either side; cross keys and values once, 2·6·8·64 a token."""
    arch, preset = load(write(PAIR)), load("t5-small")
    assert arch.inventory == preset.inventory
    for tokens, counted in ((16, 1_945_108_480), (48, 5_891_948_544)):
        asked = Workload(new_tokens=tokens, memory_tokens=tokens, counting="rectangle")
        assert flops(arch, asked).forward == counted
        cache = kv_cache(arch, tokens, memory_tokens=tokens)
        assert cache.elements == cache.cross_elements == 2 * 6 * 8 * 64 * tokens
