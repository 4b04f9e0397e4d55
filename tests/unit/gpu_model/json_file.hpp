// Reference data in JSON files.
#pragma once

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "messages/vocabulary/names.hpp"

namespace sangam::testing {

inline boost::json::value read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return boost::json::parse(text.str());
}

inline std::vector<TokenId> tokens_of(const boost::json::value& list) {
  std::vector<TokenId> tokens;
  for (const boost::json::value& token : list.as_array()) tokens.push_back(TokenId(token.as_int64()));
  return tokens;
}

/// The largest absolute difference.
inline double distance(const std::vector<float>& values, const boost::json::value& expected) {
  double largest = values.size() == expected.as_array().size() ? 0.0 : 1e30;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double difference = std::abs(double(values[i]) - expected.at(i).to_number<double>());
    largest = difference <= largest ? largest : difference;  // NaN counts as a difference, too
  }
  return largest;
}

}  // namespace sangam::testing
