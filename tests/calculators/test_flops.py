import numpy as np
import pytest

from costcalc import load
from costcalc.calculators.flops import flops, flops_by_matmul, is_training
from costcalc.calculators.parameters import parameters
from costcalc.inventory import Inventory, Logits, Matmul, Pairs, Tokens, Workload

WINDOWS = [1, 2, 5, 7, 11, 13]


def test_a_prefill_worked_out(small):
    # per token and layer: q 13 x 30, k and v 13 x 10 each, output 30 x 13, feed-forward 2 x 13 x 37 = 2,002; three
    # layers and a head of 19 x 13 = 247 are 6,253 multiply-adds; T = 11
    # core per layer: scores and values, N x H = 30 each, P = 11 x 12 / 2 = 66 pairs
    count = flops(small(), Workload(new_tokens=11))
    assert count.weights == 2 * 6_253 * 11 == 137_566
    assert count.attention == 2 * 3 * 2 * 30 * 66 == 23_760
    assert (count.forward, count.modelled, count.train) == (161_326, 0, 483_978)
    assert count.per_token == 14_666  # 161,326 / 11


def test_a_decode_step_worked_out(small):
    # one token after 7: 8 pairs
    count = flops(small(), Workload(past_tokens=7))
    assert (count.weights, count.attention) == (12_506, 2_880)
    assert (count.forward, count.train, count.per_token) == (15_386, None, 15_386)


def test_an_answer_is_frozen(small):
    with pytest.raises(AttributeError):
        flops(small(), Workload()).forward = 0


def test_every_query_meets_every_key_in_the_rectangle(small):
    assert flops(small(), Workload(new_tokens=11, counting="rectangle")).attention == 360 * 121
    assert flops(small(), Workload(new_tokens=11, past_tokens=7, counting="rectangle")).attention == 360 * 11 * 18
    windowed = small(attention={"window": 5})
    assert flops(windowed, Workload(new_tokens=11, past_tokens=7, counting="rectangle")).attention == 360 * 11 * 15


def test_the_last_logits_leave_out_the_head_of_all_other_tokens(small):
    every = flops(small(), Workload(batch=2, new_tokens=11))
    last = flops(small(), Workload(batch=2, new_tokens=11, logits="last"))
    assert every.weights - last.weights == 2 * 247 * 2 * 10  # 2 x V·D for 10 of 11 tokens of 2 sequences
    assert (last.attention, last.train) == (every.attention, None)


def test_a_batch_is_as_many_sequences(small):
    one, three = (flops(small(), Workload(batch=batch, new_tokens=11, past_tokens=7)) for batch in (1, 3))
    assert (three.forward, three.weights, three.attention) == (3 * one.forward, 3 * one.weights, 3 * one.attention)
    assert three.per_token == one.per_token


@pytest.mark.parametrize(
    ("workload", "training"),
    [
        (Workload(new_tokens=11), True),
        (Workload(batch=3), True),
        (Workload(new_tokens=11, counting="rectangle"), True),
        (Workload(new_tokens=11, past_tokens=1), False),
        (Workload(new_tokens=11, logits="last"), False),
    ],
)
def test_training_computes_every_logit_and_starts_from_nothing(small, workload, training):
    count = flops(small(), workload)
    assert is_training(workload) is training
    assert count.train == (3 * count.forward if training else None)


def test_a_tied_head_costs_what_one_of_its_own_does(small):
    assert flops(small(tie_embeddings=True), Workload(new_tokens=11)) == flops(small(), Workload(new_tokens=11))


def test_norms_biases_and_position_tables_cost_no_matmul(small):
    more = small(
        norm="layernorm",
        positions={"kind": "learned", "length": 17},
        head={"bias": True},
        attention={"bias": True, "out_bias": True, "qk_norm": "projection"},
    )
    assert flops(more, Workload(new_tokens=11)) == flops(small(), Workload(new_tokens=11))


@pytest.mark.parametrize("window", [None, *WINDOWS])
def test_a_prefill_costs_what_its_decode_steps_do(small, window):
    inventory = small(attention={"window": window})
    steps = [flops(inventory, Workload(past_tokens=past)) for past in range(11)]
    whole = flops(inventory, Workload(new_tokens=11))
    assert whole.forward == sum(step.forward for step in steps)
    assert whole.attention == sum(step.attention for step in steps)


def test_a_window_as_long_as_the_context_is_no_window(small):
    for workload in (Workload(new_tokens=11), Workload(new_tokens=4, past_tokens=7), Workload(past_tokens=10)):
        assert flops(small(attention={"window": 11}), workload) == flops(small(), workload)
        assert flops(small(attention={"window": 10}), workload) != flops(small(), workload)


def test_as_many_key_heads_as_query_heads_is_multi_head_attention(small):
    workload = Workload(new_tokens=11)
    multi_head = load(
        {
            **{"vocab_size": 19, "d_model": 13, "norm": "rmsnorm"},
            "layers": [{"repeat": 3, "attention": {"heads": 6, "head_dim": 5}, "feed_forward": {"d_ff": 37}}],
        }
    )
    assert flops(small(attention={"kv_heads": 6}), workload) == flops(multi_head.inventory, workload)
    # k and v projections grow from 13 x 10 to 13 x 30, the core does not
    grown = flops(multi_head.inventory, workload).forward - flops(small(), workload).forward
    assert grown == 2 * 11 * 3 * 2 * 13 * 20


LATENT = Inventory(
    (
        Matmul("attention.q", {"B·T": Tokens(), "D": 13}),
        Matmul("attention.expand", {"B·T": Tokens(), "R": 7}, form="expanded"),
        Matmul("attention.scores", {"B·P": Pairs(), "H": 5}, role="scores", form="expanded"),
        Matmul("attention.scores", {"B·P": Pairs(), "R": 17}, role="scores", form="absorbed"),
        Matmul("attention.values", {"B·P": Pairs(), "R": 23}, role="values", form="absorbed"),
    ),
    {},
)


@pytest.mark.parametrize(
    ("past", "latent", "weights", "attention", "paths"),
    [
        # T = 11: q 2 x 11 x 13 = 286 always, expand 2 x 11 x 7 = 154; P = 66, after 3 tokens 99
        (0, None, 440, 2 * 66 * 5, ["q", "expand", "scores"]),
        (0, "expanded", 440, 2 * 66 * 5, ["q", "expand", "scores"]),
        (0, "absorbed", 286, 2 * 66 * 40, ["q", "scores", "values"]),
        (3, None, 286, 2 * 99 * 40, ["q", "scores", "values"]),
        (3, "absorbed", 286, 2 * 99 * 40, ["q", "scores", "values"]),
        (3, "expanded", 440, 2 * 99 * 5, ["q", "expand", "scores"]),
    ],
)
def test_one_form_of_a_latent_attention_counts(past, latent, weights, attention, paths):
    """Expanded when nothing is cached, absorbed otherwise, unless the workload says which."""
    workload = Workload(new_tokens=11, past_tokens=past, latent=latent)
    count = flops(LATENT, workload)
    assert (count.weights, count.attention, count.forward) == (weights, attention, weights + attention)
    rows = flops_by_matmul(LATENT, workload)
    assert [matmul.path.removeprefix("attention.") for matmul, _ in rows] == paths
    assert sum(amount for _, amount in rows) == count.forward


def test_a_scan_is_modelled_and_no_attention():
    scan = Matmul("mixer.scan", {"B·T": Tokens(), "D": 13, "state": 7}, role="scan")
    values = Matmul("attention.values", {"B·P": Pairs(), "H": 5}, role="values")
    count = flops(Inventory((scan, values), {}), Workload(new_tokens=11))
    assert (count.weights, count.modelled, count.attention) == (0, 2_002, 660)  # 2 x 11 x 91, 2 x 66 x 5
    assert (count.forward, count.train) == (2_662, 7_986)


@pytest.mark.parametrize(
    ("new", "last_rows", "per_token"),
    # a head of 5 for the last token alone: 10 FLOPs over T tokens, to the nearest whole number, halves up
    [(1, 10, 10), (3, 10, 3), (4, 10, 3), (7, 10, 1), (19, 10, 1), (20, 10, 1), (21, 10, 0)],
)
def test_per_token_is_rounded_to_the_nearest(new, last_rows, per_token):
    head = Inventory((Matmul("head", {"B·T": Logits(), "V": 5}),), {})
    count = flops(head, Workload(new_tokens=new, logits="last"))
    assert (count.forward, count.per_token) == (last_rows, per_token)


def test_each_matmul_with_its_operations_in_the_order_of_the_model(small):
    rows = flops_by_matmul(small(), Workload(new_tokens=11))
    assert [(matmul.path.rpartition(".")[2], amount) for matmul, amount in rows] == [
        ("q", 25_740),  # 2 x 11 x 13 x 30 x 3
        ("k", 8_580),
        ("v", 8_580),
        ("scores", 11_880),  # 2 x 66 x 30 x 3
        ("values", 11_880),
        ("output", 25_740),
        ("up", 31_746),  # 2 x 11 x 13 x 37 x 3
        ("down", 31_746),
        ("head", 5_434),  # 2 x 11 x 247
    ]
    assert sum(amount for _, amount in rows) == 161_326


@pytest.mark.parametrize(
    ("model", "workload", "forward"),
    [
        # torch.utils.flop_counter on transformers' classes (5.24.0, meta device): class defaults of GPT2Config, which
        # is gpt2, and of LlamaConfig, which is llama-2-7b
        ("gpt2", Workload(new_tokens=16, counting="rectangle"), 3_962_462_208),
        ("gpt2", Workload(new_tokens=48, counting="rectangle"), 11_944_009_728),
        ("gpt2", Workload(past_tokens=47, counting="rectangle"), 248_833_536),
        ("llama-2-7b", Workload(new_tokens=16, counting="rectangle"), 211_560_693_760),
        ("llama-2-7b", Workload(new_tokens=48, counting="rectangle"), 635_487_387_648),
        ("llama-2-7b", Workload(past_tokens=47, counting="rectangle"), 13_239_320_576),
        ("8b", Workload(new_tokens=48, counting="rectangle"), 721_655_169_024),
    ],
)
def test_the_operations_that_torch_counts(model, workload, forward):
    assert flops(load(model).inventory, workload).forward == forward


@pytest.mark.parametrize(
    ("workload", "forward"),
    [
        (Workload(new_tokens=16, counting="rectangle"), 83_705_724_928),
        (Workload(new_tokens=48, counting="rectangle"), 251_444_330_496),
        (Workload(past_tokens=47, counting="rectangle"), 5_234_163_712),
    ],
)
def test_the_operations_that_torch_counts_with_a_window(workload, forward):
    """Gemma2Config's defaults with a sliding window of 8 in every second layer, measured in the same way."""
    gemma = load(
        {
            **{"vocab_size": 256_000, "d_model": 2304, "norm": "rmsnorm", "tie_embeddings": True},
            "block": {
                "norms": "sandwich",
                "attention": {"heads": 8, "kv_heads": 4, "head_dim": 256},
                "feed_forward": {"kind": "gated", "d_ff": 9216},
            },
            "layers": [{"repeat": 13, "pattern": [{"attention": {"window": 8}}, {}]}],
        }
    )
    assert flops(gemma.inventory, workload).forward == forward


@pytest.mark.parametrize(
    ("tokens", "ratio"), [(2_048, "0.968"), (8_192, "1.068"), (32_768, "1.469"), (131_072, "3.074")]
)
def test_training_llama_3_8b_over_6_n_d(tokens, ratio):
    """How far 6 x parameters x tokens is from the exact count, attended pairs only."""
    inventory = load("8b").inventory
    train = flops(inventory, Workload(new_tokens=tokens)).train
    assert f"{train / (6 * parameters(inventory).total * tokens):.3f}" == ratio


def test_training_llama_3_8b_on_2048_tokens_worked_out():
    # matrices of a layer 41,943,040 + 3 x 4,096 x 14,336 = 218,103,808; 32 of them and a head of 128,256 x 4,096 are
    # 7,504,658,432 multiply-adds a token; the core 2 x 2 x 4,096 x 32 FLOPs for each of 2,048 x 2,049 / 2 pairs
    count = flops(load("8b").inventory, Workload(new_tokens=2_048))
    assert count.weights == 2 * 7_504_658_432 * 2_048
    assert count.attention == 524_288 * 2_098_176
    assert count.train == 3 * (count.weights + count.attention)


@pytest.mark.parametrize(
    ("model", "context", "tokens", "exact"),
    [
        ("gpt3-175b", 2_048, 300 * 10**9, "3.19e+23"),  # arXiv 2005.14165 prints 3.14e23, which is 6·N·D
        ("llama-3.1-405b", 8_192, 15_600 * 10**9, "3.94e+25"),  # arXiv 2407.21783 prints 3.8e25, which is 6·N·D
    ],
)
def test_published_training_runs(model, context, tokens, exact):
    train = flops(load(model).inventory, Workload(new_tokens=context)).train
    assert f"{train / context * tokens:.2e}" == exact


def test_arrays_of_batches_and_lengths_give_the_numbers_of_one_pass_at_a_time(small):
    inventory = small(attention={"window": 7})
    batches, lengths = [1, 2, 3, 5], [1, 7, 11, 64]
    swept = flops(inventory, Workload(batch=np.array(batches), new_tokens=np.array(lengths)))
    for index, (batch, length) in enumerate(zip(batches, lengths, strict=True)):
        one = flops(inventory, Workload(batch=batch, new_tokens=length))
        for name in ("forward", "weights", "attention", "train", "per_token"):
            assert getattr(swept, name)[index] == getattr(one, name)


def test_each_matmul_takes_arrays_of_cached_tokens_too(small):
    pasts = [0, 1, 7, 64]
    for matmul in small(attention={"window": 7}).matmuls:
        one_by_one = [matmul.flops(Workload(new_tokens=3, past_tokens=past)) for past in pasts]
        swept = matmul.flops(Workload(new_tokens=3, past_tokens=np.array(pasts)))
        assert np.broadcast_to(swept, len(pasts)).tolist() == one_by_one
