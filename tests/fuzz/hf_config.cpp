// libFuzzer's entry to the readers of config.json and generation_config.json: what they accept is usable.
// Build with clang and SANGAM_FUZZ=ON; run with a time limit, such as fuzz_hf_config -max_total_time=60.
#include "storage/checkpoint/hf_config.hpp"

#include <cstddef>
#include <cstdint>

#include "messages/vocabulary/assert.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace sangam;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  if (const auto config = parse_model_config(text, "file")) {
    SANGAM_ASSERT(config->layers > 0 && config->vocab_size > 0 && config->hidden_size > 0);
    SANGAM_ASSERT(config->heads % config->kv_heads == 0, config->heads, config->kv_heads);
    SANGAM_ASSERT(config->head_dim > 0 && config->head_dim % 2 == 0, config->head_dim);
    SANGAM_ASSERT(config->rope.factor >= 1.0 && config->rope_theta >= 1.0, config->rope.factor,
                  config->rope_theta);
  }
  if (const auto defaults = parse_generation_defaults(text, "file")) {
    SANGAM_ASSERT(defaults->top_p.value_or(1.0) <= 1.0);
  }
  return 0;
}
