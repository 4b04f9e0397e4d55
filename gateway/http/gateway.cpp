// Builds the gateway from its parts and owns its threads.
#include "gateway/gateway.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <mutex>
#include <thread>

#include "gateway/http/http_server.hpp"
#include "gateway/http/open_gateway.hpp"

namespace sangam {
namespace {

namespace net = boost::asio;

constexpr Millis kLastWords{2000};  // For cancelled calls to tell their clients.

class HttpGateway final : public Gateway {
 public:
  HttpGateway(GatewayOptions options, ModelCatalog catalog, PostOffice& post)
      : options_(std::move(options)),
        catalog_(std::move(catalog)),
        metrics_(catalog_.ids()),
        actor_(options_, metrics_, post, io_),
        desk_(options_, catalog_, actor_, metrics_, connections_),
        house_{options_, desk_, actor_, metrics_, pool_, std::mt19937_64(std::random_device{}())},
        server_(io_, house_, connections_) {}

  ~HttpGateway() override { stop(Millis{0}); }

  [[nodiscard]] Result<void> open() {
    if (auto listening = server_.listen(options_.listen); !listening) return listening.error();
    log_models();
    net::co_spawn(io_, server_.accept_all(), net::detached);
    actor_.attach();
    thread_ = std::thread([this] { io_.run(); });
    return {};
  }

  [[nodiscard]] std::uint16_t port() const override { return server_.endpoint().port(); }

  [[nodiscard]] std::string url() const override {
    const auto address = server_.endpoint().address();
    std::string host = address.is_unspecified() ? "127.0.0.1" : address.to_string();
    if (address.is_v6() && !address.is_unspecified()) host = "[" + host + "]";
    return "http://" + host + ":" + std::to_string(port());
  }

  void stop(Millis grace) override {
    const std::lock_guard<std::mutex> one(stopping_);
    if (!thread_.joinable()) return;
    net::co_spawn(io_, wind_down(grace), net::detached);
    thread_.join();
    pool_.join();
  }

 private:
  net::awaitable<void> wind_down(Millis grace) {
    server_.drain();
    const bool emptied = co_await server_.emptied_within(grace);
    if (!emptied) {
      actor_.fail_all(
          ApiError{ErrorCode::unavailable, "The gateway is shutting down; try again.", "", Millis{0}});
      co_await server_.emptied_within(kLastWords);
      server_.shut_all();
      co_await server_.emptied_within(kLastWords);
    }
    actor_.detach("the gateway was stopped");  // Now nothing is left to do, and run() returns.
  }

  void log_models() const {
    if (!options_.log) return;
    for (const OfferedModel& model : catalog_.all()) {
      if (model.text != nullptr) continue;
      options_.log(
          {LogLevel::warning, "gateway.model_broken", {{"model", model.id.text()}, {"why", model.broken}}});
    }
  }

  GatewayOptions options_;
  ModelCatalog catalog_;
  Metrics metrics_;
  std::atomic<std::size_t> connections_{0};
  net::thread_pool pool_{1};
  net::io_context io_{1};
  GatewayActor actor_;
  FrontDesk desk_;
  HttpHouse house_;
  HttpServer server_;
  std::thread thread_;
  std::mutex stopping_;
};

}  // namespace

Result<std::unique_ptr<Gateway>> open_gateway(GatewayOptions options, const ModelReader& read,
                                              PostOffice& post) {
  auto catalog = ModelCatalog::load(options.models, read);
  if (!catalog) return catalog.error();
  auto gateway = std::make_unique<HttpGateway>(std::move(options), std::move(*catalog), post);
  if (auto open = gateway->open(); !open) return open.error();
  return std::unique_ptr<Gateway>(std::move(gateway));
}

}  // namespace sangam
