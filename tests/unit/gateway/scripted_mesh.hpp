// A post office for one gateway, with the test in the place of all other actors. Nothing sleeps: the test
// waits for letters, and answers them.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>

#include "messages/mesh/post_office.hpp"

namespace sangam::testing {

class ScriptedMesh final : public PostOffice {
 public:
  /// Called with each Submit, on the gateway's thread; may answer at once.
  std::function<void(const Submit&)> on_submit = [](const Submit&) {};
  /// The same with each AskQuote.
  std::function<void(const AskQuote&)> on_ask = [](const AskQuote&) {};

  void attach(const ActorName&, Incarnation, Mailbox mailbox) override {
    const std::lock_guard lock(mutex_);
    mailbox_ = std::move(mailbox);
  }
  void detach(const ActorName&, const std::string&) override {
    const std::lock_guard lock(mutex_);
    mailbox_ = nullptr;
  }
  void send(Envelope envelope) override {
    if (const auto* submit = std::get_if<Submit>(&envelope.message)) on_submit(*submit);
    if (const auto* ask = std::get_if<AskQuote>(&envelope.message)) on_ask(*ask);
    const std::lock_guard lock(mutex_);
    letters_.push_back(std::move(envelope));
    arrived_.notify_all();
  }
  [[nodiscard]] std::vector<ActorFound> present() const override { return {}; }

  /// To the gateway.
  void tell(Message message) {
    const std::lock_guard lock(mutex_);
    if (!mailbox_) return;
    auto letter = std::make_shared<Envelope>();
    letter->message = std::move(message);
    mailbox_(std::move(letter));
  }

  /// The next letter of this kind; others before it are dropped. Fails the test when none comes.
  template <class M>
  M next() {
    return std::get<M>(next_envelope<M>().message);
  }
  template <class M>
  Envelope next_envelope() {
    std::unique_lock lock(mutex_);
    std::optional<Envelope> found;
    const auto here = [&] {
      while (!letters_.empty() && !found) {
        if (std::holds_alternative<M>(letters_.front().message)) found = std::move(letters_.front());
        letters_.pop_front();
      }
      return found.has_value();
    };
    REQUIRE_MESSAGE(arrived_.wait_for(lock, std::chrono::seconds(20), here), "no such letter came");
    return *found;
  }

  void queue_and_worker(const ModelId& model) {
    tell(ActorFound{queue_of(model), Incarnation{1}});
    tell(ActorFound{ActorName("worker/1"), Incarnation{1}});
    tell(InstanceReady{.worker = ActorName("worker/1"), .model = model, .weights_digest = {}});
  }
  void accept(const Submit& submit) { tell(Accepted{submit.request, submit.attempt}); }
  void start(const Submit& submit) {
    tell(Started{submit.request, submit.attempt, ActorName("worker/1"), Millis{0}});
  }
  void tokens(const Submit& submit, std::uint64_t first, std::string_view bytes,
              FinishReason finish = FinishReason::none) {
    TokensProduced produced;
    produced.request = submit.request;
    produced.attempt = submit.attempt;
    produced.first = first;
    produced.finish = finish;
    for (const char byte : bytes) {
      const TokenId token = static_cast<unsigned char>(byte);
      produced.tokens.push_back(token);
      if (submit.sampling.logprobs < 0) continue;
      PositionLogprobs scores{{token, -0.125}, {}};
      for (std::int64_t i = 0; i < submit.sampling.logprobs; ++i)
        scores.top.push_back({TokenId('0' + i), -1.0 - double(i)});
      produced.logprobs.push_back(std::move(scores));
    }
    tell(std::move(produced));
  }
  /// Accepts, starts, and answers with all of `bytes`.
  void answer(const Submit& submit, std::string_view bytes, FinishReason finish = FinishReason::stop) {
    accept(submit);
    start(submit);
    tokens(submit, 0, bytes, finish);
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Envelope> letters_;
  Mailbox mailbox_;
};

}  // namespace sangam::testing
