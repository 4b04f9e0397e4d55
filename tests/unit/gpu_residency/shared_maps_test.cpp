// Two models whose maps are one canonical and a private delta each: the device holds what they share once.
#include <doctest/doctest.h>

#include "gpu/kernels/cpu/cpu_ops.hpp"
#include "gpu/residency/folder_reading.hpp"
#include "gpu/residency/loader.hpp"
#include "gpu/residency/model_card.hpp"
#include "tests/unit/storage/folder.hpp"
#include "tests/unit/storage/safetensors_writer.hpp"

using namespace sangam;
using namespace sangam::tests;

namespace {

constexpr const char* kConfig = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 16,
  "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2,
  "head_dim": 16, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
  "tie_word_embeddings": true, "eos_token_id": 1})";

/// Every map in eight bits, filled alike, with a delta of one bit that is filled with `own`.
std::vector<Tensor> weights(char own) {
  std::vector<Tensor> all = {{"model.embed_tokens.weight", {16, 64}, 1}, {"model.norm.weight", {64}, 2}};
  const std::string layer = "model.layers.0.";
  all.push_back({layer + "input_layernorm.weight", {64}, 3});
  all.push_back({layer + "post_attention_layernorm.weight", {64}, 3});
  struct Map {
    std::string name;
    std::int64_t rows;
    std::int64_t groups;
  };
  for (const Map& map : {Map{"self_attn.q_proj", 64, 2}, Map{"self_attn.k_proj", 32, 2}, Map{"self_attn.v_proj", 32, 2},
                         Map{"self_attn.o_proj", 64, 2}, Map{"mlp.gate_proj", 96, 2}, Map{"mlp.up_proj", 96, 2},
                         Map{"mlp.down_proj", 64, 3}}) {
    const auto fill = char(map.rows + map.groups + map.name[6]);
    all.push_back({layer + map.name + ".weight.b8", {map.rows, 2 + map.groups * 33}, char(fill & 0x2f), "U8", 1});
    all.push_back({layer + map.name + ".delta.b1", {map.rows, 2 + map.groups * 5}, own, "U8", 1});
  }
  return all;
}

}  // namespace

TEST_CASE("the canonical of two models takes memory once, and a card tells their slots") {
  const TemporaryFolder folders[2];
  for (int i = 0; i < 2; ++i) {
    folders[i].write("config.json", kConfig);
    folders[i].write("model.safetensors", shard_of(weights(char(5 + i))));
  }
  const auto pool = PagePool::create({Bytes{1 << 20}, Bytes{4096}}).value();
  SegmentStore segments(*pool);
  const auto ops = make_cpu_ops({.threads = 1}).value();
  const auto first = load_folder(folders[0].path(), segments, *ops);
  REQUIRE_MESSAGE(first, first.error().context);
  const SegmentLedger one = segments.ledger();
  const auto second = load_folder(folders[1].path(), segments, *ops);
  REQUIRE_MESSAGE(second, second.error().context);
  // Seven deltas of 64, 32, 32, 64, 96 and 96 rows of 12 bytes and of 64 rows of 17 bytes, of which three pairs are of equal
  // size and content and so one segment each.
  const SegmentLedger both = segments.ledger();
  const std::int64_t deltas = 64 * 12 + 32 * 12 + 96 * 12 + 64 * 17;
  CHECK(both.resident.count() - one.resident.count() == deltas);

  FolderReading reading = FolderReading::open(folders[0].path()).value();
  while (!reading.advance(Bytes{1 << 20})) continue;
  const Blueprint told = reading.blueprint().value();
  const auto heard = blueprint_of_card(card_of(told), "test");
  REQUIRE_MESSAGE(heard, heard.error().context);
  REQUIRE(heard->slots.size() == told.slots.size());
  CHECK(heard->bytes() == told.bytes());
}
