// A model that is large enough for its bytes to count and small enough to be written for a benchmark.
#pragma once

#include "storage/checkpoint/model_config.hpp"

namespace sangam {

/// In bf16.
[[nodiscard]] inline ModelConfig config_of_400_megabytes() {
  ModelConfig config;
  config.architecture = Architecture::llama;
  config.vocab_size = 32'000;
  config.hidden_size = 1024;
  config.intermediate_size = 2816;
  config.layers = 12;
  config.heads = 16;
  config.kv_heads = 4;
  config.head_dim = 64;
  config.context = 2048;
  config.tied_embeddings = false;
  return config;
}

}  // namespace sangam
