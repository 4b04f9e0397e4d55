// Models whose weights come from other hosts: the same bits without a folder, only what is missing, from several sources,
// all or nothing, and nothing is freed under a reader.
#include <doctest/doctest.h>

#include <deque>
#include <filesystem>
#include <string>
#include <vector>

#include "gpu/kernels/cpu/cpu_ops.hpp"
#include "gpu/residency/model_card.hpp"
#include "gpu/residency/model_stock.hpp"

namespace sangam {
namespace {

namespace fs = std::filesystem;

const ModelId kArith{"A-arith"};
const ModelId kRoman{"A-roman"};

/// A worker's memory and models, offered and not offered by others; all cold.
struct FarDepot {
  explicit FarDepot(const fs::path& models = fs::path(SANGAM_SOURCE_DIR) / "models") {
    for (const ModelId& model : {kArith, kRoman}) stock.add(model, models / model.text());
  }
  Result<void> finish() {
    while (true) {
      const auto done = stock.advance(Bytes{100'000});
      if (!done) return done.error();
      if (*done) return {};
    }
  }
  Result<void> move(const ModelId& model, Residency target) {
    if (auto begun = stock.begin(model, target); !begun) return begun;
    return finish();
  }
  Result<void> fork(const ModelId& model, std::unique_ptr<WeightsPull> pull) {
    if (auto begun = stock.begin(model, Residency::active, {}, std::move(pull)); !begun) return begun;
    return finish();
  }
  std::vector<TokenId> answer(const ModelId& model) {
    Run run;
    run.request = RequestId{++requests};
    run.model = model;
    run.prompt = {257, 'A', '3', '4', '7', '+', '0', '8', '5', '='};
    run.sampling.temperature = 0.0;
    run.sampling.max_tokens = Tokens{12};
    run.sampling.ignore_eos = true;
    REQUIRE(engine.add(run));
    std::vector<TokenId> tokens;
    while (engine.has_work()) {
      for (const TokensProduced& produced : engine.step().produced)
        tokens.insert(tokens.end(), produced.tokens.begin(), produced.tokens.end());
    }
    return tokens;
  }

  std::unique_ptr<Ops> ops = make_cpu_ops({.threads = 1}).value();
  std::unique_ptr<PagePool> pool = PagePool::create({Bytes{32 << 20}, Bytes{16384}}).value();
  SegmentStore segments{*pool};
  WeightsShelf shelf{*pool};
  Engine engine{{}, *pool};
  ModelStock stock{{segments, engine, *ops, nullptr, &shelf}, Bytes{64 << 20}};
  std::uint64_t requests = 0;
};

/// A pull without a network: whatever a shelf has comes in parts of `part` bytes, after `late` calls in vain.
class NearPull final : public BlobPull {
 public:
  struct Script {
    std::size_t part = 64 * 1024;
    std::int64_t fails_after = -1;  ///< Bytes; -1: never.
    std::int64_t lies_after = -1;   ///< Bytes, beyond which all are wrong.
    int late = 0;
  };
  NearPull(BlobShelf& shelf, Script script) : shelf_(shelf), script_(script) {}

  void ask(const BlobName& name, Bytes most) override {
    asks_.push_back({name, most});
    if (name.text().starts_with("segment/")) asked_segments += 1;
  }
  Result<std::optional<BlobPart>> next(Millis) override {
    if (script_.late-- > 0 || asks_.empty()) return std::optional<BlobPart>();
    if (script_.fails_after >= 0 && given_ >= script_.fails_after)
      return make_error(ErrorCode::unavailable, "the source was lost");
    if (!blob_) {
      auto found = shelf_.find(asks_.front().first);
      if (!found) return found.error();
      blob_ = std::move(*found);
      bytes_.clear();
      for (const auto& piece : blob_->pieces) bytes_.insert(bytes_.end(), piece.begin(), piece.end());
      offset_ = 0;
    }
    const std::size_t count = std::min(script_.part, bytes_.size() - offset_);
    if (script_.lies_after >= 0 && given_ >= script_.lies_after && count > 0) bytes_[offset_] ^= std::byte{1};
    BlobPart part{asks_.front().first, Bytes(std::int64_t(bytes_.size())), Bytes(std::int64_t(offset_)),
                  std::span(bytes_).subspan(offset_, count), blob_->hash};
    offset_ += count;
    given_ += std::int64_t(count);
    if (part.is_last()) {
      blob_.reset();
      asks_.pop_front();
    }
    return std::optional<BlobPart>(part);
  }
  [[nodiscard]] std::int64_t given() const { return given_; }
  int asked_segments = 0;

 private:
  BlobShelf& shelf_;
  Script script_;
  std::deque<std::pair<BlobName, Bytes>> asks_;
  std::optional<Blob> blob_;
  std::vector<std::byte> bytes_;
  std::size_t offset_ = 0;
  std::int64_t given_ = 0;
};

std::unique_ptr<WeightsPull> pull_from(const ModelId& model, std::vector<std::pair<FarDepot*, NearPull::Script>> from,
                                       std::vector<NearPull*>* made = nullptr) {
  WeightsPull::Sources sources;
  for (auto& [depot, script] : from) {
    auto source = std::make_unique<NearPull>(depot->shelf, script);
    if (made != nullptr) made->push_back(source.get());
    sources.push_back(std::move(source));
  }
  return std::make_unique<WeightsPull>(model, std::move(sources));
}

/// Knows the models, but their folders are not there.
struct Homeless : FarDepot {
  Homeless() : FarDepot("/nowhere") {}
};

constexpr std::int64_t kFewBytes = 400'000;

TEST_CASE("a model forked from another host computes the same bits, without any folder here") {
  FarDepot source;
  REQUIRE(source.move(kArith, Residency::active));
  Homeless taker;
  REQUIRE(taker.fork(kArith, pull_from(kArith, {{&source, {}}})));
  CHECK(taker.answer(kArith) == source.answer(kArith));
  CHECK(taker.stock.blueprint(kArith).weights_digest == source.stock.blueprint(kArith).weights_digest);
  CHECK(taker.stock.blueprint(kArith).kv_name == source.stock.blueprint(kArith).kv_name);
  CHECK(taker.segments.ledger().resident == source.segments.ledger().resident);

  SUBCASE("and is itself a source for the next one") {
    Homeless third;
    REQUIRE(third.fork(kArith, pull_from(kArith, {{&taker, {}}})));
    CHECK(third.answer(kArith) == source.answer(kArith));
  }
  SUBCASE("and sleeps warm and wakes like any other") {
    const auto first = taker.answer(kArith);
    REQUIRE(taker.move(kArith, Residency::warm));
    REQUIRE(taker.move(kArith, Residency::active));
    CHECK(taker.answer(kArith) == first);
  }
}

TEST_CASE("only segments that are missing are asked for") {
  FarDepot source;
  REQUIRE(source.move(kArith, Residency::active));
  REQUIRE(source.move(kRoman, Residency::active));
  Homeless taker;
  std::vector<NearPull*> pulls;
  REQUIRE(taker.fork(kArith, pull_from(kArith, {{&source, {}}}, &pulls)));
  const std::vector<WantedSlot> slots = source.stock.blueprint(kRoman).slots;
  const auto missing = taker.segments.missing(slots).size();
  std::vector<NearPull*> second;
  auto pull = pull_from(kRoman, {{&source, {}}}, &second);
  REQUIRE(taker.stock.begin(kRoman, Residency::active, {}, std::move(pull)));
  // The pull dies with the move: count while it lives.
  std::size_t asked = 0;
  for (Result<bool> done = false; !*done;) {
    if (taker.stock.phase() == "fork") asked = std::size_t(second[0]->asked_segments);
    done = taker.stock.advance(Bytes{1 << 20});
    REQUIRE(done);
  }
  CHECK(asked == missing);
  CHECK(taker.answer(kRoman) == source.answer(kRoman));
}

TEST_CASE("two sources share the work, and a slow one is not waited for") {
  FarDepot one, two;
  REQUIRE(one.move(kArith, Residency::active));
  REQUIRE(two.move(kArith, Residency::active));
  for (const int late : {0, 100'000}) {
    Homeless taker;
    std::vector<NearPull*> pulls;
    auto pull = pull_from(kArith, {{&one, {.part = 4096}}, {&two, {.part = 4096, .late = late}}}, &pulls);
    REQUIRE(taker.stock.begin(kArith, Residency::active, {}, std::move(pull)));
    std::int64_t from_one = 0, from_two = 0;
    for (Result<bool> done = false; !*done;) {
      if (taker.stock.phase() == "fork") {
        from_one = pulls[0]->given();
        from_two = pulls[1]->given();
      }
      done = taker.stock.advance(Bytes{16 << 10});
      REQUIRE(done);
    }
    CHECK(from_one > kFewBytes);
    CHECK((late == 0) == (from_two > kFewBytes));
    CHECK(taker.answer(kArith) == one.answer(kArith));
  }
}

TEST_CASE("what a source leaves undone when it is lost, or lies about, comes from the other one") {
  FarDepot one, two;
  REQUIRE(one.move(kArith, Residency::active));
  REQUIRE(two.move(kArith, Residency::active));
  const NearPull::Script lost{.fails_after = kFewBytes};
  const NearPull::Script liar{.lies_after = kFewBytes};
  for (const NearPull::Script& bad : {lost, liar}) {
    Homeless taker;
    REQUIRE(taker.fork(kArith, pull_from(kArith, {{&one, bad}, {&two, {}}})));
    CHECK(taker.answer(kArith) == one.answer(kArith));
  }
}

TEST_CASE("with its only source lost in the middle, a model comes from storage, or not at all and all is as before") {
  FarDepot source;
  REQUIRE(source.move(kArith, Residency::active));
  for (const NearPull::Script& bad : {NearPull::Script{.fails_after = kFewBytes}, NearPull::Script{.lies_after = kFewBytes}}) {
    FarDepot taker;
    REQUIRE(taker.fork(kArith, pull_from(kArith, {{&source, bad}})));
    CHECK(taker.answer(kArith) == source.answer(kArith));

    Homeless homeless;
    const PoolLedger before = homeless.pool->ledger();
    const auto forked = homeless.fork(kArith, pull_from(kArith, {{&source, bad}}));
    REQUIRE(!forked);
    CHECK(forked.error().code == ErrorCode::not_found);
    CHECK(forked.error().context.find("storage") != std::string::npos);
    CHECK(homeless.pool->ledger().free == before.free);
    CHECK(homeless.pool->ledger().reserved == before.reserved);
    CHECK(homeless.segments.ledger().resident == Bytes{0});
    // And the next try is none the worse for it.
    REQUIRE(homeless.fork(kArith, pull_from(kArith, {{&source, {}}})));
    CHECK(homeless.answer(kArith) == source.answer(kArith));
  }
}

TEST_CASE("a source that does not have the model leaves it to storage") {
  FarDepot source, taker;
  REQUIRE(taker.fork(kArith, pull_from(kArith, {{&source, {}}})));
  Homeless homeless;
  const auto forked = homeless.fork(kArith, pull_from(kArith, {{&source, {}}}));
  REQUIRE(!forked);
  CHECK(forked.error().context.find("is active here") != std::string::npos);
}

TEST_CASE("a source with other weights than the first one's is not mixed in") {
  FarDepot one, two;
  REQUIRE(one.move(kArith, Residency::active));
  // Under the same name the second one offers another model.
  REQUIRE(two.move(kRoman, Residency::active));
  two.shelf.offer(kArith, card_of(two.stock.blueprint(kRoman)), SlotTable());
  Homeless taker;
  REQUIRE(taker.fork(kArith, pull_from(kArith, {{&one, {}}, {&two, {}}})));
  CHECK(taker.answer(kArith) == one.answer(kArith));
}

TEST_CASE("a folder here with another configuration is believed rather than another host") {
  FarDepot source;
  REQUIRE(source.move(kRoman, Residency::active));
  // The source says under the name of one model what is another one.
  std::string card = card_of(source.stock.blueprint(kRoman));
  const auto brace = card.rfind('}');
  card.insert(brace, " ");
  const auto size = source.stock.blueprint(kRoman).config_text.size();
  const std::string head = "config " + std::to_string(size);
  card.replace(card.find(head), head.size(), "config " + std::to_string(size + 1));
  source.shelf.offer(kArith, card, SlotTable());
  FarDepot taker;
  REQUIRE(taker.fork(kArith, pull_from(kArith, {{&source, {}}})));
  FarDepot reference;
  REQUIRE(reference.move(kArith, Residency::active));
  CHECK(taker.answer(kArith) == reference.answer(kArith));
}

TEST_CASE("a segment that is read stays when its model goes, and its pages are free when the reading ends") {
  FarDepot source;
  const Pages free = source.pool->pages().free();
  REQUIRE(source.move(kArith, Residency::active));
  const WantedSlot slot = source.stock.blueprint(kArith).slots.front();
  std::optional<Blob> read = source.shelf.find(segment_name(slot.digest)).value();
  REQUIRE(source.move(kArith, Residency::cold));
  CHECK(source.pool->pages().free() < free);
  CHECK(!source.shelf.find(segment_name(slot.digest)));  // Nobody begins to read it now.
  DigestStream stream;
  for (const auto& piece : read->pieces) stream.update(piece);
  CHECK(stream.digest() == slot.digest);
  CHECK(!source.shelf.let_go());
  read.reset();
  CHECK(source.shelf.let_go());
  CHECK(source.pool->pages().free() == free);
}

TEST_CASE("a card says all that a folder says, and a damaged one is refused") {
  FarDepot source;
  REQUIRE(source.move(kArith, Residency::active));
  const Blueprint& told = source.stock.blueprint(kArith);
  const std::string card = card_of(told);
  const auto heard = blueprint_of_card(card, "test");
  REQUIRE_MESSAGE(heard, heard.error().context);
  CHECK(heard->weights_digest == told.weights_digest);
  CHECK(heard->kv_name == told.kv_name);
  CHECK(heard->stamp.empty());
  CHECK(heard->config.eos_tokens == told.config.eos_tokens);
  CHECK(heard->config.tied_embeddings == told.config.tied_embeddings);
  REQUIRE(heard->slots.size() == told.slots.size());
  for (std::size_t i = 0; i < told.slots.size(); ++i) {
    CHECK(heard->slots[i].name == told.slots[i].name);
    CHECK(heard->slots[i].digest == told.slots[i].digest);
    CHECK(heard->slots[i].bytes == told.slots[i].bytes);
    CHECK(heard->slots[i].shape == told.slots[i].shape);
  }
  for (std::size_t size = 0; size < card.size(); ++size) CHECK(!blueprint_of_card(card.substr(0, size), "test"));
  CHECK(!blueprint_of_card(card + "x", "test"));
  std::string other = card;
  other.replace(other.find("BF16"), 4, "BF17");
  CHECK(!blueprint_of_card(other, "test"));
}

}  // namespace
}  // namespace sangam
