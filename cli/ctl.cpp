// Asks the gateway's admin routes and prints their answers as tables.
#include "cli/ctl.hpp"

#include <boost/json.hpp>
#include <cstdio>
#include <iostream>

#include "cli/answers.hpp"
#include "cli/http_client.hpp"
#include "cli/report_files.hpp"
#include "cli/snapshot.hpp"

namespace sangam {
namespace {

namespace json = boost::json;

constexpr Millis kLook{5'000};
constexpr Millis kWork{3'600'000};  // A large model from a slow disk takes its time.

std::string mebibytes(const json::value& bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", double(bytes.to_number<std::int64_t>()) / (1024.0 * 1024.0));
  return text;
}

std::string text_of(const json::value& value) {
  return value.is_string() ? std::string(value.get_string()) : std::string();
}

std::string error_of(const json::value& error) {
  return error.is_object() ? text_of(error.at("message")) : std::string();
}

/// Columns as wide as their widest cell, numbers to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> head) { rows_.push_back(std::move(head)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  void print() const {
    std::vector<std::size_t> widths(rows_.front().size());
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        const bool is_number = row[i].find_first_not_of("0123456789.") == std::string::npos;
        std::printf(is_number ? "%*s  " : "%-*s  ", int(widths[i]), row[i].c_str());
      }
      std::printf("\n");
    }
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

Result<json::value> call(const CtlOptions& options, HttpCall request) {
  const auto base = parse_http_base(options.url);
  if (!base) return base.error();
  request.key = options.key;
  const auto answer = http_call(*base, request);
  if (!answer) return no_mesh(answer.error());
  if (answer->status != 200) return refused(*answer);
  boost::system::error_code failure;
  auto body = json::parse(answer->body, failure);
  if (failure) return make_error(ErrorCode::internal, options.url + ": the answer is no JSON: " + failure.message());
  if (options.json) std::cout << answer->body << "\n";
  return body;
}

json::array texts(const std::vector<std::string>& names) {
  json::array array;
  for (const std::string& name : names) array.emplace_back(name);
  return array;
}

std::string command_body(const std::string& verb, const CtlOptions& options) {
  json::object body{{"models", texts(options.models)}, {"workers", texts(options.workers)}};
  if (verb == "fork") body["sources"] = texts(options.sources);
  if (verb == "load" || verb == "wake" || verb == "fork") {
    body["pin"] = options.pin;
  } else {
    body["drain_for_ms"] = options.drain_for.count();
    body["at_deadline"] = options.at_deadline;
  }
  return json::serialize(body);
}

}  // namespace

Result<void> ctl_models(const CtlOptions& options) {
  const auto answer = call(options, {"GET", "/admin/models", "", kLook, {}});
  if (!answer) return answer.error();
  if (options.json) return {};
  Table table({"MODEL", "WORKER", "STATE", "TARGET", "WEIGHTS MiB", "OWN MiB", "HOST MiB", "ERROR"});
  for (const json::value& instance : answer->at("instances").get_array()) {
    const json::value& bytes = instance.at("bytes");
    table.add({text_of(instance.at("model")), text_of(instance.at("worker")), text_of(instance.at("residency")),
               text_of(instance.at("target")), mebibytes(bytes.at("weights")), mebibytes(bytes.at("own")),
               mebibytes(bytes.at("host")), error_of(instance.at("error"))});
  }
  table.print();
  return {};
}

Result<void> ctl_memory(const CtlOptions& options) {
  const auto answer = call(options, {"GET", "/admin/memory", "", kLook, {}});
  if (!answer) return answer.error();
  if (options.json) return {};
  Table table({"WORKER", "POOL MiB", "WEIGHTS", "SHARED", "KV", "CACHED", "FREE", "HOST", "HOST MAX"});
  for (const json::value& worker : answer->at("workers").get_array()) {
    std::vector<std::string> row{text_of(worker.at("worker"))};
    for (const char* field : {"pool_bytes", "weights_bytes", "shared_bytes", "kv_bytes", "cached_bytes", "free_bytes",
                              "host_bytes", "host_max_bytes"}) {
      row.push_back(mebibytes(worker.at(field)));
    }
    table.add(std::move(row));
  }
  table.print();
  return {};
}

Result<void> ctl_snapshot(const CtlOptions& options) {
  const auto base = parse_http_base(options.url);
  if (!base) return base.error();
  const auto text = fetch_snapshot(*base, options.key);
  if (!text) return text.error();
  if (!options.output.empty()) return write_report(options.output, *text);
  std::cout << *text << "\n";
  return {};
}

Result<void> ctl_command(const std::string& verb, const CtlOptions& options) {
  const auto answer = call(options, {"POST", "/admin/" + verb, command_body(verb, options), kWork, {}});
  if (!answer) return answer.error();
  if (options.json) return {};
  Table table({"MODEL", "WORKER", "STATE", "TOOK ms", "MOVED MiB", "EVICTED"});
  for (const json::value& order : answer->at("orders").get_array()) {
    std::string evicted;
    for (const json::value& model : order.at("evicted").get_array()) evicted += text_of(model) + " ";
    char took[32];
    std::snprintf(took, sizeof took, "%.1f", order.at("took_ms").to_number<double>());
    table.add({text_of(order.at("model")), text_of(order.at("worker")), text_of(order.at("residency")), took,
               mebibytes(order.at("moved_bytes")), evicted});
  }
  table.print();
  return {};
}

}  // namespace sangam
