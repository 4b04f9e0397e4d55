// Models and items that ship, for tests of the merger.
#pragma once

#include <boost/json.hpp>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/merger/evaluation/evaluator.hpp"
#include "gpu/kernels/cpu/cpu_ops.hpp"
#include "storage/checkpoint/model_folder.hpp"

namespace sangam::merging {

/// The byte vocabulary of these models.
inline constexpr TokenId kBos = 257;
inline constexpr TokenId kEos = 258;

struct ShippedModel {
  explicit ShippedModel(const std::string& name, Ops* with = nullptr)
      : opened(open_model(SANGAM_SOURCE_DIR "/models/" + name).value()),
        model(Model::create(opened.config, [this](std::string_view slot) { return opened.checkpoint.tensor(slot); }, with != nullptr ? *with : *ops).value()) {}

  std::unique_ptr<Ops> ops = make_cpu_ops({.threads = 1}).value();
  ModelFolder opened;
  std::unique_ptr<Model> model;
};

/// Items [first, last) of a shipped task: bos and the prompt's bytes; the answer's bytes.
inline std::vector<AnswerKey> shipped_items(const std::string& task, std::size_t first, std::size_t last) {
  std::ifstream file(SANGAM_SOURCE_DIR "/models/eval/" + task + ".jsonl");
  std::vector<AnswerKey> out;
  std::string line;
  for (std::size_t i = 0; i < last && std::getline(file, line); ++i) {
    if (i < first) continue;
    const auto item = boost::json::parse(line).as_object();
    AnswerKey key{{kBos}, {}};
    for (const char c : item.at("prompt").as_string()) key.prompt.push_back(TokenId(static_cast<unsigned char>(c)));
    for (const char c : item.at("answer").as_string()) key.answer.push_back(TokenId(static_cast<unsigned char>(c)));
    out.push_back(std::move(key));
  }
  return out;
}

}  // namespace sangam::merging
