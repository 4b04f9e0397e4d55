// A record is a line of text: the hash of all before it, the state, and what each model's gate said.
#include "actors/merger/run/trajectory.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace sangam::merging {
namespace {

constexpr const char* kRunKey = "run";
constexpr const char* kHeadKey = "head";  // The hash of the last trial, which no other one has.
constexpr const char* kTrialPrefix = "trial/";

std::string key_of(std::size_t trial) {
  std::string digits = std::to_string(trial);
  return kTrialPrefix + std::string(9 - std::min<std::size_t>(9, digits.size()), '0') + digits;
}

/// All bits of a number.
std::string exact(double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%a", value);
  return text.data();
}

std::string text_of(const Digest& before, const Digest& state, std::span<const Verdict> verdicts) {
  std::string text = hex_of(before) + " " + hex_of(state);
  for (const Verdict& v : verdicts) {
    text += " " + std::to_string(v.items) + " " + std::to_string(v.lost) + " " + std::to_string(v.won) + " " + exact(v.bound) +
            (v.accepted ? " accepted" : " rejected");
  }
  return text;
}

Error broken(const std::string& key, const std::string& what) {
  return make_error(ErrorCode::corrupt, "trajectory " + key + ": " + what + "; begin anew in another folder");
}

}  // namespace

Result<Trajectory> Trajectory::open(Store& store, const Digest& run) {
  Trajectory out(store, run);
  const auto known = store.get(Family::trajectory, kRunKey);
  if (!known) return known.error();
  const auto kept_head = store.get(Family::trajectory, kHeadKey);
  if (!kept_head) return kept_head.error();
  const bool is_other = !*known || **known != hex_of(run);
  if (is_other && *kept_head) {
    return make_error(ErrorCode::invalid_input,
                      "the state folder holds trials of another pool, other items or other options; name another folder, or run with those again");
  }
  if (is_other) {
    if (auto put = store.put(Family::trajectory, kRunKey, hex_of(run)); !put) return put.error();
  }
  std::optional<Error> fault;
  const auto scanned = store.scan(Family::trajectory, kTrialPrefix, [&](std::string_view key, std::string_view value) {
    std::istringstream words{std::string(value)};
    std::string before, state, word;
    words >> before >> state;
    Trial trial;
    while (words >> word) {
      Verdict v;
      std::string bound, decision;
      v.items = std::atoll(word.c_str());
      words >> v.lost >> v.won >> bound >> decision;
      v.bound = std::strtod(bound.c_str(), nullptr);
      v.accepted = decision == "accepted";
      trial.verdicts.push_back(v);
    }
    const auto digest = digest_from_hex(state);
    if (key != key_of(out.trials_.size()) || before != hex_of(out.head_) || !digest) {
      fault = broken(std::string(key), "does not follow on what is before it");
      return false;
    }
    trial.state = *digest;
    if (text_of(out.head_, trial.state, trial.verdicts) != value) fault = broken(std::string(key), "is damaged");
    out.head_ = digest_of(value);
    out.trials_.push_back(std::move(trial));
    return !fault.has_value();
  });
  if (!scanned) return scanned.error();
  if (fault) return *fault;
  if (hex_of(out.head_) != kept_head->value_or(hex_of(run))) return broken("end", "is not the one that was kept last");
  return out;
}

Result<std::optional<std::vector<Verdict>>> Trajectory::recall(std::size_t trial, const Digest& state) const {
  if (trial >= trials_.size()) return std::optional<std::vector<Verdict>>();
  if (trials_[trial].state == state) return std::optional(trials_[trial].verdicts);
  return make_error(ErrorCode::corrupt, "trial " + std::to_string(trial) +
                                            " was of another state when it was made: by another version of the program, or on a "
                                            "processor with other instructions; go on where it began, or begin anew in another folder");
}

Result<void> Trajectory::append(const Digest& state, std::span<const Verdict> verdicts) {
  const std::string text = text_of(head_, state, verdicts);
  Batch batch;
  batch.put(Family::trajectory, key_of(trials_.size()), text).put(Family::trajectory, kHeadKey, hex_of(digest_of(text)));
  if (auto put = store_->commit(batch); !put) return put;
  head_ = digest_of(text);
  trials_.push_back({state, {verdicts.begin(), verdicts.end()}});
  return {};
}

}  // namespace sangam::merging
