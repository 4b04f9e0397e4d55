// What dashboards read: vLLM's names (old and new) per model, and the HTTP layer's own counts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gateway/core/client_call.hpp"
#include "gateway/core/fleet.hpp"

namespace sangam {

/// One finished HTTP exchange.
struct HttpMeasured {
  std::string handler;  ///< The route, never the raw path, so that the number of series is bounded.
  std::string method;
  unsigned status = 200;
  double seconds = 0.0;
  std::size_t request_bytes = 0;
  std::size_t response_bytes = 0;
};

/// Used from the I/O thread only. Reading never wakes a model: it shows what has been reported.
class Metrics {
 public:
  /// Series of these models are there from the start, with zeros.
  explicit Metrics(const std::vector<ModelId>& models);
  ~Metrics();

  void count(const Measurement& measurement);
  void count(const HttpMeasured& exchange);
  /// In Prometheus' text format.
  [[nodiscard]] std::string text(const MeshView& fleet, std::size_t connections, std::size_t calls);

 private:
  struct Series;
  std::unique_ptr<Series> series_;
};

}  // namespace sangam
