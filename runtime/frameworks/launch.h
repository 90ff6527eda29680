// A run's configuration, in the terms that frameworks share. The tables of the frameworks (table.h) fill it
// from flags and write flags from it; Framework::to_job and Framework::from_job give it the meaning that it
// has there. A member is empty where the configuration does not say it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hyperrun::frameworks {

struct Launch {
  using Integer = std::optional<std::int32_t>;
  using Real = std::optional<double>;
  using Flag = std::optional<bool>;
  using Words = std::optional<std::string>;

  // Devices.
  Integer devices, nodes, per_node;

  // Degrees of parallelism, as the framework counts them.
  Integer tensor, pipeline, context, ulysses, expert, expert_tensor, shards, replicas;
  Flag sequence_parallel, experts_over_tensor, pipeline_is_inner;
  Words context_kind;        // "ring", "ulysses" or "hybrid"
  Words hierarchical_sizes;  // "2 4": devices that exchange heads, devices of a ring

  // The places of optimizer state, gradients and weights.
  Flag distributed_optimizer, own_sharding, keeps_gathered;
  Integer zero;
  Words zero_word;   // "0" to "3"
  Words resharding;  // "default", "always" or "never": whether weights are given up after their forward pass
  Flag reshards;
  Words fsdp_words;  // "full_shard auto_wrap"
  Flag offloads_optimizer, offloads_optimizer_here, offloads_activations;
  Words optimizer_tier, weight_tier;  // "pool" or "flash"

  // The pipeline.
  Words schedule;
  Integer chunks, layers_of_chunk, first_layers, last_layers, first_less, last_less;
  Flag embedding_counts, head_counts;
  Words stages;        // Megatron's layout
  Words stage_layers;  // "8,9,9,6"
  Words idle_layers;   // "61,62,63": layers that are not there
  Flag paired_passes, paired_passes_here;

  // The batch.
  Integer batch, micro_batch, micro_batches, accumulation, batch_of_replica, pipeline_micro_batch, samples;

  // Recomputation.
  Words recompute, recompute_method, recompute_every, recompute_words, select_words, recompute_modules;
  Integer recompute_layers;
  Flag recompute_all, recompute_selective, recompute_norm, recompute_activation, no_recompute;

  // The model.
  Words model, training_stage, flavor, architecture, finetuning, deepspeed_file;
  Integer ffn_multiple;
  Real ffn_factor;
  Integer layers, hidden, heads, kv_heads, head_dim, ffn, vocab, padded_vocab, vocab_multiple, sequence,
      positions;
  Flag rotary, swiglu, grouped_queries, untied, tied, no_bias, qkv_bias, qk_norm, learned_positions;
  Words norm, norm_word, position_kind, tokenizer, tokenizer_model, vocab_file, merge_file;
  Real rope_theta, norm_eps, rope_factor, rope_low, rope_high, rope_fast, rope_slow, rope_mscale,
      rope_mscale_all;
  Words rope_kind;
  Flag llama_rope;
  Integer rope_original, window;      // earlier positions that a token sees
  Words window_pair, window_pattern;  // Megatron-LM's: "127,0", and which layers have it
  Integer experts, choices, expert_ffn, shared, shared_ffn, dense_layers, groups, group_choices;
  Words expert_pattern, scoring, balancing;
  Flag normalize, scores_before_choice, expert_bias;
  Real scale, aux_loss, bias_rate, capacity;
  Flag latent;
  Integer q_rank, kv_rank, nope_dim, rope_dim, value_dim;
  Integer mtp_layers;
  Real mtp_factor;

  // Training.
  Integer steps, total_steps, warmup_samples, warmup_steps, decay_steps, seed, save_every;
  Real lr, min_lr, min_lr_share, warmup_share, beta1, beta2, eps, weight_decay, clip_norm, init_std;
  Words betas, optimizer, rate_schedule, hidden_dropout, attention_dropout;
  Flag bfloat16, float16, gradients_bfloat16;
  Words precision;

  Words remark;  // what a file that is written needs besides, for people
};

}  // namespace hyperrun::frameworks
