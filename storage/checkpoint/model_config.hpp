// The shape of a decoder-only transformer, as read from a HF config.json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "messages/vocabulary/names.hpp"
#include "storage/checkpoint/tensor.hpp"

namespace sangam {

enum class Architecture : std::uint8_t { llama, mistral, qwen2, qwen3 };

/// How rotary frequencies are stretched to longer contexts (names and fields as in HF's rope_scaling).
struct RopeScaling {
  enum class Kind : std::uint8_t { none, linear, llama3, yarn };
  Kind kind = Kind::none;
  double factor = 1.0;
  double low_freq_factor = 1.0;   ///< llama3
  double high_freq_factor = 4.0;  ///< llama3
  double beta_fast = 32.0;        ///< yarn
  double beta_slow = 1.0;         ///< yarn
  double attention_factor = 0.0;  ///< yarn; 0 means 0.1 ln(factor) + 1
  std::int64_t original_context = 0;
};

struct ModelConfig {
  Architecture architecture = Architecture::llama;
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t context = 0;         ///< max_position_embeddings
  std::int64_t sliding_window = 0;  ///< 0: full attention
  double rms_norm_eps = 1e-6;
  double rope_theta = 10000.0;
  RopeScaling rope;
  bool qkv_bias = false;
  bool output_bias = false;  ///< o_proj (attention_bias of Llama covers q, k, v and o)
  bool mlp_bias = false;
  bool qk_norm = false;  ///< Qwen3
  bool tied_embeddings = false;
  DType dtype = DType::bf16;
  TokenId bos_token = 0;
  bool has_bos_token = false;
  std::vector<TokenId> eos_tokens;
};

}  // namespace sangam
