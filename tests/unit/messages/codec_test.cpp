// The codec: what is said is heard, by all messages; what makes no sense is refused with its reason.
#include "messages/wire/codec.hpp"

#include <doctest/doctest.h>

#include "tests/unit/messages/value_fixture.hpp"

using namespace sangam;
using namespace sangam::testing;
using wire::Fault;

namespace {

wire::Frame letter(Message message) {
  auto envelope = std::make_shared<Envelope>();
  envelope->from = ActorName("worker/1");
  envelope->to = ActorName("gateway/1");
  envelope->id = 42;
  envelope->message = std::move(message);
  return {.body = EnvelopePtr(envelope)};
}

/// What every other test changes one thing of.
RunEnded run_ended() {
  return {RequestId{5}, 1, ActorName("worker/1"), ModelId("med"), FinishReason::stop, Tokens(3)};
}

Fault fault_of_encoding(const wire::Frame& frame) {
  const auto bytes = wire::encode(frame);
  REQUIRE_FALSE(bytes.has_value());
  CHECK_FALSE(bytes.error().why.empty());
  return bytes.error().fault;
}

Fault fault_of(std::span<const std::byte> bytes, Bytes frame_max = wire::kFrameMax) {
  const auto frame = wire::decode(bytes, frame_max);
  REQUIRE_FALSE(frame.has_value());
  CHECK_FALSE(frame.error().why.empty());
  return frame.error().fault;
}

/// Frame bytes with a 64-bit word changed.
wire::FrameBytes with_word(wire::FrameBytes bytes, std::size_t index, std::uint64_t word) {
  bytes.at(index) = word;
  return bytes;
}

std::vector<std::byte> from_hex(std::string_view hex) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(std::byte(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

Submit submit() {
  Submit made;
  made.model = ModelId("m");
  made.tokens_to = ActorName("g");
  return made;
}

// Made by Cap'n Proto's own tool: capnp encode messages/schema/mesh.capnp Frame, from the text
// (magic = 0x53414e47, version = 1, body = (envelope = (from = "worker/1", to = "gateway/1", id = 42,
// correlation = 7, trace = (trace = 0x"0102...0f10", span = 0x"a1a2...a8"), epoch = 3, message =
// (tokensProduced = (request = 4294967297, attempt = 2, first = 5, tokens = [11, 500, 151643], logprobs =
// [(chosen = (token = 11, logprob = -0.5), top = [(token = 11, logprob = -0.5), (token = 12, logprob =
// -1.25)])], finish = length, cached = 64, code = queueFull, why = "naïve")))))
constexpr std::string_view kGolden =
    "00000000280000000000000001000100474e41530100000000000000040004002a000000000000000700000000000000"
    "03000000000000000b000000000000000d0000004a000000110000005200000014000000000002002400000004000300"
    "776f726b65722f310000000000000000676174657761792f310000000000000005000000820000000900000042000000"
    "0102030405060708090a0b0c0d0e0f10a1a2a3a4a5a6a7a8010000000100000003000000020004000500000000000000"
    "4000000000000000090000001c0000000d00000017000000310000003a0000000b000000f40100005b50020000000000"
    "0400000000000200040000000200000009000000270000000b00000000000000000000000000e0bf0800000002000000"
    "0b00000000000000000000000000e0bf0c00000000000000000000000000f4bf6e61c3af76650000";

Envelope golden_envelope() {
  Envelope golden;
  golden.from = ActorName("worker/1");
  golden.to = ActorName("gateway/1");
  golden.id = 42;
  golden.correlation = 7;
  golden.trace = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
                  {0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8}};
  golden.epoch = 3;
  TokensProduced tokens;
  tokens.request = RequestId{4294967297};
  tokens.attempt = 2;
  tokens.first = 5;
  tokens.tokens = {11, 500, 151643};
  tokens.logprobs = {{{11, -0.5}, {{11, -0.5}, {12, -1.25}}}};
  tokens.finish = FinishReason::length;
  tokens.cached = Tokens(64);
  tokens.code = ErrorCode::queue_full;
  tokens.why = "naïve";
  golden.message = tokens;
  return golden;
}

}  // namespace

TEST_CASE("every struct has the members, types, enumerants and alternatives of its schema") {
  for (const std::string& problem : wire::schema_mismatches()) FAIL_CHECK(problem);
}

TEST_CASE("a frame made by Cap'n Proto's own tool reads as the same letter") {
  const auto bytes = from_hex(kGolden);
  const auto frame = wire::decode(bytes);
  REQUIRE_MESSAGE(frame.has_value(), frame.error().why);
  CHECK(same(*std::get<EnvelopePtr>(frame->body), golden_envelope()));
}

TEST_CASE("a prompt of any length comes back, in however many segments the frame was built") {
  for (const std::size_t tokens : {100, 400, 600, 1'000, 3'000, 10'000, 100'000, 1'000'000}) {
    Submit submit;
    submit.request = RequestId{1};
    submit.model = ModelId("a");
    submit.tokens_to = ActorName("gateway/1");
    for (std::size_t i = 0; i < tokens; ++i) submit.prompt.push_back(TokenId(i));
    submit.generated = submit.prompt;
    wire::Frame frame;
    auto letter = std::make_shared<Envelope>();
    letter->from = ActorName("gateway/1");
    letter->to = ActorName("queue/a");
    letter->id = 1;
    letter->message = submit;
    frame.body = EnvelopePtr(std::move(letter));
    const auto bytes = wire::encode(frame);
    REQUIRE_MESSAGE(bytes.has_value(), bytes.error().why);
    const auto back = wire::decode(wire::bytes_of(*bytes));
    REQUIRE_MESSAGE(back.has_value(), back.error().why);
    CHECK(same(*back, frame));
  }
}

TEST_CASE("random frames of every kind come back as they were") {
  const std::uint64_t seed = 20260101;
  CAPTURE(seed);
  Random random(seed);
  std::vector<int> seen(std::variant_size_v<Message>);
  for (int i = 0; i < 3000; ++i) {
    CAPTURE(i);
    const wire::Frame frame = random_frame(random);
    if (auto* envelope = std::get_if<EnvelopePtr>(&frame.body)) ++seen[(*envelope)->message.index()];
    const auto bytes = wire::encode(frame);
    REQUIRE_MESSAGE(bytes.has_value(), bytes.error().why);
    const auto back = wire::decode(wire::bytes_of(*bytes));
    REQUIRE_MESSAGE(back.has_value(), back.error().why);
    CHECK(same(*back, frame));
  }
  for (int count : seen) CHECK(count > 0);
}

TEST_CASE("a frame is read at any alignment") {
  const auto frame = letter(run_ended());
  const auto bytes = wire::encode(frame).value();
  const auto view = wire::bytes_of(bytes);
  std::vector<std::byte> shifted(view.size() + 8);
  for (std::size_t shift = 0; shift < 8; ++shift) {
    std::copy(view.begin(), view.end(), shifted.begin() + std::ptrdiff_t(shift));
    CHECK(same(wire::decode({shifted.data() + shift, view.size()}).value(), frame));
  }
}

TEST_CASE("a frame that is cut anywhere is refused as truncated") {
  const auto bytes = wire::encode(letter(run_ended())).value();
  const auto view = wire::bytes_of(bytes);
  for (std::size_t size = 0; size < view.size(); ++size)
    CHECK(fault_of(view.first(size)) == Fault::truncated);
}

TEST_CASE("a frame with something after its end is refused") {
  auto bytes = wire::encode(letter(run_ended())).value();
  bytes.push_back(0);
  CHECK(fault_of(wire::bytes_of(bytes)) == Fault::malformed);
}

TEST_CASE("a frame may be as large as the limit and not a byte larger, both ways") {
  const auto frame = letter(run_ended());
  const auto bytes = wire::encode(frame).value();
  const Bytes size(std::int64_t(wire::bytes_of(bytes).size()));
  CHECK(wire::encode(frame, size).has_value());
  CHECK(wire::encode(frame, size - Bytes(1)).error().fault == Fault::oversized);
  CHECK(wire::decode(wire::bytes_of(bytes), size).has_value());
  CHECK(fault_of(wire::bytes_of(bytes), size - Bytes(1)) == Fault::oversized);
}

TEST_CASE("frames without our magic or of another version are refused as such") {
  const auto bytes = wire::encode(letter(run_ended())).value();
  // Words: segment table, root pointer, then magic (32 bits), version (16 bits), which body (16 bits).
  REQUIRE((bytes[2] & 0xffffffff) == wire::kMagic);
  CHECK(fault_of(wire::bytes_of(with_word(bytes, 2, bytes[2] ^ 1))) == Fault::unknown_version);
  CHECK(fault_of(wire::bytes_of(with_word(bytes, 2, bytes[2] + (1ull << 32)))) == Fault::unknown_version);
  CHECK(fault_of(wire::bytes_of(with_word(bytes, 1, 0))) == Fault::unknown_version);  // A null root.
  CHECK(fault_of(wire::bytes_of(with_word(bytes, 2, bytes[2] | (0xffull << 48)))) == Fault::unknown_message);
}

TEST_CASE("a frame that claims 2^32 segments is refused") {
  const auto bytes = wire::encode(letter(run_ended())).value();
  CHECK(fault_of(wire::bytes_of(with_word(bytes, 0, bytes[0] | 0xffffffff))) == Fault::malformed);
}

TEST_CASE("a pointer out of the frame is refused") {
  const auto bytes = wire::encode(letter(run_ended())).value();
  CHECK(fault_of(wire::bytes_of(with_word(bytes, 1, bytes[1] | 0x7ffffff0))) == Fault::malformed);
}

TEST_CASE("values at their bounds pass and values beyond them are refused, at the sender already") {
  RunEnded message = run_ended();
  message.worker = ActorName(std::string(255, 'w'));
  CHECK(wire::encode(letter(message)).has_value());
  message.worker = ActorName(std::string(256, 'w'));
  CHECK(fault_of_encoding(letter(message)) == Fault::invalid_value);
  message.worker = ActorName();
  CHECK(fault_of_encoding(letter(message)) == Fault::invalid_value);
  message = run_ended();
  message.produced = Tokens(-1);
  CHECK(fault_of_encoding(letter(message)) == Fault::invalid_value);
  message = run_ended();
  message.finish = FinishReason(5);
  CHECK(fault_of_encoding(letter(message)) == Fault::invalid_value);

  Interrupted interrupted{RequestId{1}, 1, std::string(wire::kTextBytesMax, 'x')};
  CHECK(wire::encode(letter(interrupted)).has_value());
  interrupted.why += 'x';
  CHECK(fault_of_encoding(letter(interrupted)) == Fault::invalid_value);

  Dispatch dispatch{RequestId{1}, 1, ActorName("w"), wire::kDurationMax};
  CHECK(wire::encode(letter(dispatch)).has_value());
  dispatch.estimated += Micros(1);
  CHECK(fault_of_encoding(letter(dispatch)) == Fault::invalid_value);
  dispatch.estimated = -wire::kDurationMax - Micros(1);
  CHECK(fault_of_encoding(letter(dispatch)) == Fault::invalid_value);
}

TEST_CASE("the refusal of a value names its place") {
  Submit negative = submit();
  negative.sampling.max_tokens = Tokens(-4);
  CHECK(wire::encode(letter(negative)).error().why == "message.sampling.max_tokens is negative: -4");
}

TEST_CASE("a received value beyond its bounds is refused") {
  const auto bytes = wire::encode(letter(run_ended())).value();
  // RunEnded's data section begins with the request, 5; attempt and finish follow, then produced, 3.
  std::size_t produced = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) produced = bytes[i] == 3 ? i : produced;
  REQUIRE(produced > 2);
  CHECK(fault_of(wire::bytes_of(with_word(bytes, produced, ~std::uint64_t(0)))) == Fault::invalid_value);
  const std::uint64_t unknown_finish = bytes[produced - 1] | (99ull << 32);
  CHECK(fault_of(wire::bytes_of(with_word(bytes, produced - 1, unknown_finish))) == Fault::invalid_value);
}

TEST_CASE("a letter without an id is refused") {
  auto frame = letter(run_ended());
  auto envelope = std::make_shared<Envelope>(*std::get<EnvelopePtr>(frame.body));
  envelope->id = 0;
  frame.body = EnvelopePtr(envelope);
  CHECK(fault_of_encoding(frame) == Fault::invalid_value);
}

TEST_CASE("a tenant may be anonymous") {
  CHECK(wire::encode(letter(submit())).has_value());
}

TEST_CASE("no mutation of a frame does more than to be refused, and what is accepted can be said again") {
  const std::uint64_t seed = 4711;
  CAPTURE(seed);
  Random random(seed);
  std::vector<wire::FrameBytes> frames;
  for (int i = 0; i < 200; ++i) frames.push_back(wire::encode(random_frame(random)).value());
  int accepted = 0;
  for (int i = 0; i < 100'000; ++i) {
    wire::FrameBytes bytes = frames[random() % frames.size()];
    auto raw = std::as_writable_bytes(std::span(bytes));
    for (std::uint64_t n = 1 + random() % 4; n > 0; --n)
      raw[random() % raw.size()] ^= std::byte(1 << random() % 8);
    const std::size_t size = random() % 4 == 0 ? random() % raw.size() : raw.size();
    const auto frame = wire::decode(raw.first(size));
    if (!frame) continue;
    ++accepted;
    CHECK(wire::encode(*frame).has_value());
  }
  CHECK(accepted > 0);
  CHECK(accepted < 90'000);
}
