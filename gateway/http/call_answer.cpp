// Builds the events of a stream and the body of a whole answer.
#include "gateway/http/call_answer.hpp"

#include <utility>

namespace sangam {

CallAnswer::CallAnswer(ReplyHead head, bool stream, std::size_t choices, std::vector<std::string> echo)
    : head_(std::move(head)),
      stream_(stream),
      choices_(choices),
      echo_(std::move(echo)),
      begun_(choices, false) {}

void CallAnswer::take(const decltype(CallEvent::what)& event) {
  std::visit([this](const auto& what) { on(what); }, event);
  changed();
}

void CallAnswer::on(const CallAdmitted&) {
  admitted_ = true;
}

/// The first of a choice: its role in a chat, the prompt's echo in a completion.
void CallAnswer::begin(std::size_t choice) {
  if (begun_[choice]) return;
  begun_[choice] = true;
  const std::string echo = echo_.empty() ? std::string() : echo_[choice];
  if (!stream_) {
    choices_[choice].text = echo;
  } else if (head_.endpoint == TextEndpoint::chat) {
    event(role_chunk(head_, choice));
  } else if (!echo.empty()) {
    event(text_chunk(head_, TextDelta{choice, echo, {}}));
  }
}

void CallAnswer::on(const TextDelta& delta) {
  begin(delta.choice);
  if (stream_) return event(text_chunk(head_, delta));
  ChoiceAnswer& answer = choices_[delta.choice];
  answer.text += delta.text;
  answer.pieces.insert(answer.pieces.end(), delta.pieces.begin(), delta.pieces.end());
}

void CallAnswer::on(const ChoiceEnded& ended) {
  begin(ended.choice);
  choices_[ended.choice].finish = ended.finish;
  if (stream_) event(finish_chunk(head_, ended));
}

void CallAnswer::on(const CallEnded& ended) {
  usage_ = ended.usage;
  over_ = true;
  if (!stream_) return;
  if (head_.include_usage) event(usage_chunk(head_, usage_));
  event("[DONE]");
}

void CallAnswer::on(const CallFailed& failed) {
  failure_ = failed.error;
  over_ = true;
  if (!stream_ || !admitted_) return;
  event(error_json(failed.error));
  event("[DONE]");
}

void CallAnswer::event(std::string_view json) {
  ready_.append("data: ").append(json).append("\n\n");
}

}  // namespace sangam
