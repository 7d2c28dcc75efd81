"""The models whose checkpoints `record_headers.py` writes: one or two of each way to name and to store tensors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

SIZES: dict[str, dict[str, Any]] = {
    "none": {},
    "decoder": {"hidden_size": 48, "intermediate_size": 76, "num_hidden_layers": 3, "num_attention_heads": 4,
                "num_key_value_heads": 2, "vocab_size": 97, "max_position_embeddings": 64},
    "encoder": {"hidden_size": 48, "intermediate_size": 76, "num_hidden_layers": 3, "num_attention_heads": 4,
                "vocab_size": 97, "max_position_embeddings": 64},
    "pair": {"d_model": 48, "encoder_layers": 3, "decoder_layers": 2, "encoder_ffn_dim": 76, "decoder_ffn_dim": 72,
             "encoder_attention_heads": 4, "decoder_attention_heads": 4, "vocab_size": 97,
             "max_position_embeddings": 64},
    "gpt": {"n_embd": 48, "n_layer": 3, "n_head": 4, "vocab_size": 97, "n_positions": 64},
}  # fmt: skip
CASES = """
llama llama LlamaForCausalLM decoder head_dim=20
qwen2 qwen2 Qwen2ForCausalLM decoder head_dim=20
gemma2 gemma2 Gemma2ForCausalLM decoder head_dim=20
olmo olmo OlmoForCausalLM decoder head_dim=20
olmo2 olmo2 Olmo2ForCausalLM decoder head_dim=20
phi phi PhiForCausalLM decoder
cohere2 cohere2 Cohere2ForCausalLM decoder head_dim=20
starcoder2 starcoder2 Starcoder2ForCausalLM decoder head_dim=20
stablelm stablelm StableLmForCausalLM decoder partial_rotary_factor=0.5
glm4 glm4 Glm4ForCausalLM decoder head_dim=20
persimmon persimmon PersimmonForCausalLM encoder
phi3 phi3 Phi3ForCausalLM decoder
gpt2 gpt2 GPT2LMHeadModel gpt
gptj gptj GPTJForCausalLM gpt rotary_dim=4
gpt_neo gpt_neo GPTNeoForCausalLM none hidden_size=48 num_layers=4 num_heads=4 vocab_size=96
    max_position_embeddings=64 attention_types=[[["global","local"],2]]
gpt_neox gpt_neox GPTNeoXForCausalLM encoder rotary_pct=0.5
gpt_bigcode gpt_bigcode GPTBigCodeForCausalLM gpt
opt_proj opt OPTForCausalLM none hidden_size=48 ffn_dim=80 num_hidden_layers=3 num_attention_heads=4
    vocab_size=96 max_position_embeddings=64 word_embed_proj_dim=32 do_layer_norm_before=false
bloom bloom BloomForCausalLM none hidden_size=48 n_layer=3 n_head=4 vocab_size=96
mpt mpt MptForCausalLM none d_model=48 n_layers=3 n_heads=4 vocab_size=96 max_seq_len=64
falcon falcon FalconForCausalLM none hidden_size=48 num_hidden_layers=3 num_attention_heads=4 vocab_size=96
falcon_new falcon FalconForCausalLM none hidden_size=48 num_hidden_layers=3 num_attention_heads=4 vocab_size=96
    new_decoder_architecture=true num_kv_heads=2
ctrl ctrl CTRLLMHeadModel gpt dff=80
openai-gpt openai-gpt OpenAIGPTLMHeadModel gpt
mixtral mixtral MixtralForCausalLM decoder num_local_experts=4
qwen2_moe qwen2_moe Qwen2MoeForCausalLM decoder moe_intermediate_size=24 shared_expert_intermediate_size=40
    num_experts=4 num_experts_per_tok=2 decoder_sparse_step=2
granitemoe granitemoe GraniteMoeForCausalLM decoder num_local_experts=4
gpt_oss gpt_oss GptOssForCausalLM decoder head_dim=20 num_local_experts=4
llama4_text llama4_text Llama4ForCausalLM decoder head_dim=20 num_local_experts=4 intermediate_size_mlp=72
    interleave_moe_layer_step=2
deepseek_v2 deepseek_v2 DeepseekV2ForCausalLM decoder num_key_value_heads=4 kv_lora_rank=16 q_lora_rank=null
    qk_nope_head_dim=8 qk_rope_head_dim=4 v_head_dim=20 n_routed_experts=4 moe_intermediate_size=24
    n_shared_experts=2 first_k_dense_replace=1 num_experts_per_tok=2 n_group=1 topk_group=1
deepseek_v3 deepseek_v3 DeepseekV3ForCausalLM decoder num_key_value_heads=4 kv_lora_rank=16 q_lora_rank=20
    qk_nope_head_dim=8 qk_rope_head_dim=4 v_head_dim=20 n_routed_experts=8 moe_intermediate_size=24
    n_shared_experts=1 first_k_dense_replace=1 num_experts_per_tok=2 n_group=2 topk_group=1
minicpm3 minicpm3 MiniCPM3ForCausalLM decoder num_key_value_heads=4 kv_lora_rank=16 q_lora_rank=20
    qk_nope_head_dim=8 qk_rope_head_dim=4 v_head_dim=12
mamba2 mamba2 Mamba2ForCausalLM none hidden_size=48 num_hidden_layers=3 vocab_size=96 state_size=6 num_heads=8
    head_dim=12 n_groups=2
jamba jamba JambaForCausalLM decoder num_hidden_layers=8 num_experts=4 attn_layer_period=4 attn_layer_offset=2
    mamba_d_state=6 mamba_dt_rank=5 use_mamba_kernels=false
zamba zamba ZambaForCausalLM decoder num_hidden_layers=6 n_mamba_heads=2 mamba_d_state=6 mamba_dt_rank=5
    use_mamba_kernels=false layers_block_type=["mamba","mamba","hybrid","mamba","hybrid","mamba"]
zamba2 zamba2 Zamba2ForCausalLM decoder num_hidden_layers=6 mamba_d_state=6 mamba_ngroups=1 n_mamba_heads=8
    mamba_headdim=12 layers_block_type=["mamba","mamba","hybrid","mamba","hybrid","mamba"] num_mem_blocks=1
falcon_h1 falcon_h1 FalconH1ForCausalLM decoder head_dim=20 mamba_d_ssm=48 mamba_n_heads=8 mamba_d_head=6
    mamba_d_state=6 mamba_n_groups=1
recurrent_gemma recurrent_gemma RecurrentGemmaForCausalLM decoder lru_width=48 attention_window_size=8
nemotron_h nemotron_h NemotronHForCausalLM decoder num_hidden_layers=4 head_dim=20
    hybrid_override_pattern="M-*E" mamba_num_heads=8 mamba_head_dim=20 ssm_state_size=6 n_groups=2
    n_routed_experts=4 moe_intermediate_size=24 moe_shared_expert_intermediate_size=32
lfm2 lfm2 Lfm2ForCausalLM decoder full_attn_idxs=[1]
qwen3_next qwen3_next Qwen3NextForCausalLM decoder num_hidden_layers=4 head_dim=20 linear_num_value_heads=4
    linear_num_key_heads=2 linear_key_head_dim=6 linear_value_head_dim=8 num_experts=4 moe_intermediate_size=24
    shared_expert_intermediate_size=40 num_experts_per_tok=2
rwkv rwkv RwkvForCausalLM none hidden_size=48 num_hidden_layers=3 vocab_size=96 context_length=64
bert bert BertForMaskedLM encoder
roberta roberta RobertaForMaskedLM encoder
albert albert AlbertForMaskedLM encoder embedding_size=32
distilbert distilbert DistilBertForMaskedLM none dim=48 hidden_dim=80 n_layers=3 n_heads=4 vocab_size=96
    max_position_embeddings=64
electra electra ElectraForMaskedLM encoder embedding_size=32
modernbert modernbert ModernBertForMaskedLM encoder cls_token_id=0 sep_token_id=0 bos_token_id=0 eos_token_id=0
albert_groups albert AlbertForMaskedLM encoder num_hidden_layers=4 embedding_size=32 num_hidden_groups=2
gemma3n_text gemma3n_text Gemma3nForCausalLM decoder num_hidden_layers=4 head_dim=20 num_kv_shared_layers=0
    vocab_size_per_layer_input=96 hidden_size_per_layer_input=8 laurel_rank=6 activation_sparsity_pattern=null
minimax minimax MiniMaxForCausalLM decoder head_dim=20 num_local_experts=4
granitemoehybrid granitemoehybrid GraniteMoeHybridForCausalLM decoder num_local_experts=4 mamba_n_heads=8
    mamba_d_head=12 mamba_d_state=6 layer_types=["mamba","attention","mamba"] shared_intermediate_size=40
olmo_hybrid olmo_hybrid OlmoHybridForCausalLM decoder
bitnet bitnet BitNetForCausalLM decoder
fnet fnet FNetForMaskedLM none hidden_size=48 intermediate_size=76 num_hidden_layers=3 vocab_size=96
    max_position_embeddings=64
afmoe afmoe AfmoeForCausalLM decoder head_dim=20 num_experts=4 moe_intermediate_size=24 num_experts_per_tok=2
    num_dense_layers=1
t5 t5 T5ForConditionalGeneration none d_model=48 d_kv=12 d_ff=80 num_layers=3 num_decoder_layers=2 num_heads=4
    vocab_size=96
t5_gated t5 T5ForConditionalGeneration none d_model=48 d_kv=12 d_ff=80 num_layers=3 num_heads=4 vocab_size=96
    feed_forward_proj="gated-gelu"
xlm xlm XLMWithLMHeadModel none emb_dim=48 n_layers=3 n_heads=4 vocab_size=97 max_position_embeddings=64
mpnet mpnet MPNetForMaskedLM encoder
bart bart BartForConditionalGeneration pair
marian marian MarianMTModel pair decoder_vocab_size=97
m2m_100 m2m_100 M2M100ForConditionalGeneration pair
"""
"""A name, the model type, the class, a key of SIZES, and what is written beside those; a line that begins with spaces
goes on with the one before."""


def cases() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(name, class, config.json) of each."""
    for line in CASES.strip().replace("\n    ", " ").split("\n"):
        name, model_type, model_class, sizes, *written = line.split(" ")
        own = {key: json.loads(value) for key, value in (each.split("=", 1) for each in written)}
        named = {"model_type": model_type, "architectures": [model_class]}
        yield name, model_class, {**named, "pad_token_id": 0, **SIZES[sizes], **own}
