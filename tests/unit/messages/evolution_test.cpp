// Nodes of another version of the schema: older ones are understood, newer ones as far as we can.
#include <doctest/doctest.h>

#include "evolution.capnp.h"
#include "mesh.capnp.h"
#include "messages/schema/capnp.hpp"
#include "messages/wire/codec.hpp"
#include "messages/wire/reflect.hpp"
#include "tests/unit/messages/value_fixture.hpp"

using namespace sangam;

namespace {

wire::Decoded<wire::Frame> decode(capnp::MessageBuilder& message) {
  const auto words = capnp::messageToFlatArray(message);
  const auto bytes = words.asBytes();
  return wire::decode(std::as_bytes(std::span(bytes.begin(), bytes.size())));
}

template <class FrameType>
typename FrameType::Builder new_frame(capnp::MessageBuilder& message) {
  auto frame = message.initRoot<FrameType>();
  frame.setMagic(wire::kMagic);
  frame.setVersion(wire::kVersion);
  return frame;
}

/// Says the names, which must not be empty, and nothing else; also in structs within.
template <class M>
void say_names(capnp::DynamicStruct::Builder said) {
  wire::for_each_member<M>([&](auto m) {
    using Member = std::remove_cvref_t<decltype(std::declval<M&>().*m.pointer)>;
    const std::string field = wire::field_name<Member>(m.name);
    if constexpr (wire::AName<Member>) said.set(field, "x");
    if constexpr (wire::AStruct<Member>) say_names<Member>(said.init(field).template as<capnp::DynamicStruct>());
  });
}

template <class M>
void set_names(M& message) {
  wire::for_each_member<M>([&](auto m) {
    using Member = std::remove_cvref_t<decltype(message.*m.pointer)>;
    if constexpr (wire::AName<Member>) message.*m.pointer = Member("x");
    if constexpr (wire::AStruct<Member>) set_names(message.*m.pointer);
  });
}

/// A message of which nothing was said but its names, as the schema alone would have it.
template <class M>
wire::Decoded<wire::Frame> decode_unsaid() {
  capnp::MallocMessageBuilder message;
  auto envelope = new_frame<schema::Frame>(message).getBody().initEnvelope();
  envelope.setFrom("a");
  envelope.setTo("b");
  envelope.setId(1);
  auto choice =
      capnp::DynamicStruct::Builder(capnp::toDynamic(envelope)).get("message").as<capnp::DynamicStruct>();
  say_names<M>(choice.init(wire::field_name<void>(wire::struct_name<M>())).template as<capnp::DynamicStruct>());
  return decode(message);
}

}  // namespace

TEST_CASE("what nobody said has the same default in the schema as in C++") {
  boost::mp11::mp_for_each<boost::mp11::mp_iota_c<std::variant_size_v<Message>>>([](auto i) {
    using M = std::variant_alternative_t<i, Message>;
    const std::string name(wire::struct_name<M>());
    CAPTURE(name);
    M expected;
    set_names(expected);
    const auto frame = decode_unsaid<M>();
    REQUIRE_MESSAGE(frame.has_value(), frame.error().why);
    CHECK(sangam::testing::same(std::get<M>(std::get<EnvelopePtr>(frame->body)->message), expected));
  });
}

TEST_CASE("a letter of an older node reads with the defaults of what came later") {
  capnp::MallocMessageBuilder message;
  auto envelope = new_frame<evolution::OlderFrame>(message).getBody().initEnvelope();
  envelope.setFrom("gateway/1");
  envelope.setTo("queue/m");
  envelope.setId(9);
  auto submit = envelope.getMessage().initSubmit();
  submit.setRequest(77);
  submit.setModel("m");
  submit.setTokensTo("gateway/1");
  submit.initPrompt(2).set(1, 5);
  submit.initSampling().setTemperature(0.25);

  const auto frame = decode(message);
  REQUIRE_MESSAGE(frame.has_value(), frame.error().why);
  const auto& read = std::get<Submit>(std::get<EnvelopePtr>(frame->body)->message);
  CHECK(read.request == RequestId{77});
  CHECK(read.prompt == std::vector<TokenId>{0, 5});
  CHECK(read.service_class == ServiceClass::normal);
  CHECK(read.sampling.temperature == 0.25);
  CHECK(read.sampling.top_p == 1.0);
  CHECK(read.sampling.repetition_penalty == 1.0);
  CHECK(read.sampling.max_tokens == Tokens(16));
  CHECK(read.sampling.logprobs == -1);
}

TEST_CASE("a newer node's additional fields are passed over") {
  capnp::MallocMessageBuilder message;
  auto heartbeat = new_frame<evolution::NewerFrame>(message).getBody().initHeartbeat();
  heartbeat.setFramesSent(12);
  heartbeat.setLoad(0.5);
  heartbeat.setNote("from the future");
  const auto frame = decode(message);
  REQUIRE_MESSAGE(frame.has_value(), frame.error().why);
  CHECK(std::get<wire::Heartbeat>(frame->body).frames_sent == 12);
}

TEST_CASE("a newer node's unknown frame and unknown message are refused as unknown, not as broken") {
  capnp::MallocMessageBuilder with_frame, with_message;
  new_frame<evolution::NewerFrame>(with_frame).getBody().setLater("?");
  CHECK(decode(with_frame).error().fault == wire::Fault::unknown_message);
  auto envelope = new_frame<evolution::NewerFrame>(with_message).getBody().initEnvelope();
  envelope.setFrom("a");
  envelope.setTo("b");
  envelope.setId(1);
  envelope.getMessage().setLater("?");
  CHECK(decode(with_message).error().fault == wire::Fault::unknown_message);
}
