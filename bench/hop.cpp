// What the wire costs: encoding, decoding, and one actor's answer to another, within a process and between
// two.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "bench/report.hpp"
#include "messages/mesh/mesh.hpp"

using namespace sangam;
using Clock = std::chrono::steady_clock;

namespace {

constexpr int kWarmups = 500;
constexpr int kRounds = 5000;
constexpr int kFlood = 50000;

double micros_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

Envelope token(const std::string& from, const std::string& to) {
  TokensProduced produced;
  produced.request = RequestId{1};
  produced.first = 17;
  produced.tokens = {1234};
  Envelope letter;
  letter.from = ActorName(from);
  letter.to = ActorName(to);
  letter.message = produced;
  return letter;
}

Envelope long_prompt() {
  Submit submit;
  submit.request = RequestId{1};
  submit.model = ModelId("med");
  submit.tenant = TenantId("acme");
  submit.prompt.resize(2048, 77);
  submit.tokens_to = ActorName("gateway/1");
  Envelope letter;
  letter.from = ActorName("gateway/1");
  letter.to = ActorName("queue/med");
  letter.message = submit;
  return letter;
}

/// A mailbox that a thread takes from, waiting.
class Box {
 public:
  Mailbox mailbox() {
    return [this](EnvelopePtr letter) {
      std::lock_guard lock(mutex_);
      letters_.push_back(std::move(letter));
      some_.notify_one();
    };
  }
  /// The next message that is of no presence.
  EnvelopePtr take() {
    std::unique_lock lock(mutex_);
    for (;;) {
      some_.wait(lock, [&] { return !letters_.empty(); });
      EnvelopePtr letter = std::move(letters_.front());
      letters_.pop_front();
      if (std::holds_alternative<TokensProduced>(letter->message)) return letter;
    }
  }
  void wait_for_somebody() {
    std::unique_lock lock(mutex_);
    some_.wait(lock, [&] { return !letters_.empty(); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable some_;
  std::deque<EnvelopePtr> letters_;
};

double percentile(std::vector<double>& samples, double share) {
  std::sort(samples.begin(), samples.end());
  return samples[std::size_t(share * double(samples.size() - 1))];
}

/// Median over batches of the mean time of one call, in nanoseconds.
double nanos_per_call(const std::function<void()>& call) {
  std::vector<double> means;
  for (int batch = 0; batch < 21; ++batch) {
    const auto begin = Clock::now();
    for (int i = 0; i < 500; ++i) call();
    means.push_back(micros_since(begin) * 1000 / 500);
  }
  return percentile(means, 0.5);
}

void measure_codec(const Report& report, const std::string& name, Envelope letter, double target) {
  letter.id = 1;
  const wire::Frame frame{.body = std::make_shared<const Envelope>(std::move(letter))};
  const auto bytes = wire::encode(frame).value();
  std::vector<std::uint64_t> copy(bytes.size());
  const std::string size = std::to_string(bytes.size() * 8) + " bytes";
  const double encoding = nanos_per_call([&] { (void)wire::encode(frame); });
  const double decoding = nanos_per_call([&] { (void)wire::decode(wire::bytes_of(bytes)); });
  const double copying =
      nanos_per_call([&] { std::memcpy(copy.data(), bytes.data(), bytes.size() * sizeof copy[0]); });
  const std::string reference = "memcpy of " + size + ": " + Report::number(copying) + " ns";
  const std::string limit = "<= " + Report::number(target);
  report.row({name + " encode", encoding, "ns", reference, limit, encoding <= target});
  report.row({name + " decode", decoding, "ns", reference, limit, decoding <= target});
}

struct Trip {
  double p50 = 0, p99 = 0;
};

Trip round_trips(PostOffice& office, Box& box, int rounds) {
  std::vector<double> samples;
  for (int i = 0; i < kWarmups + rounds; ++i) {
    const auto begin = Clock::now();
    office.send(token("asker", "echo"));
    (void)box.take();
    if (i >= kWarmups) samples.push_back(micros_since(begin));
  }
  return {percentile(samples, 0.5), percentile(samples, 0.99)};
}

/// Letters a second, one way and back, all in flight at once.
double flood(PostOffice& office, Box& box) {
  const auto begin = Clock::now();
  for (int i = 0; i < kFlood; ++i) office.send(token("asker", "echo"));
  for (int i = 0; i < kFlood; ++i) (void)box.take();
  return kFlood / (micros_since(begin) * 1e-6);
}

[[noreturn]] void echo_process(const MeshOptions& options) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  Box box;
  auto mesh = open_mesh(options, {}).value();
  mesh->attach(ActorName("echo"), Incarnation{1}, box.mailbox());
  for (;;) {
    (void)box.take();
    mesh->send(token("echo", "asker"));
  }
}

/// Two nodes over `endpoints`, this process the first one.
void measure_wire(const Report& report, const std::string& kind, const std::vector<Peer>& peers) {
  std::vector<MeshOptions> options(2);
  for (std::size_t i = 0; i < 2; ++i) {
    options[i].node = peers[i].node;
    options[i].listen = {peers[i].endpoint};
    options[i].peers = peers;
  }
  const pid_t child = ::fork();
  if (child == 0) echo_process(options[1]);
  Box box;
  {
    auto mesh = open_mesh(options[0], {}).value();
    mesh->attach(ActorName("asker"), Incarnation{1}, box.mailbox());
    box.wait_for_somebody();
    const Trip trip = round_trips(*mesh, box, kRounds);
    report.row({kind + " round trip p50", trip.p50, "us", "two hops; target is twice one hop's 150", "<= 300",
                trip.p50 <= 300});
    report.row({kind + " round trip p99", trip.p99, "us", "", "<= 600", trip.p99 <= 600});
    const double rate = flood(*mesh, box);
    report.row({kind + " echoed letters", rate, "1/s", "", ">= 20000", rate >= 20000});
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

/// The same pattern with nothing but ZeroMQ: what the transport itself costs.
double raw_round_trip(const std::string& endpoint, double share) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    void* context = zmq_ctx_new();
    void* socket = zmq_socket(context, ZMQ_DEALER);
    zmq_bind(socket, endpoint.c_str());
    char frame[256];
    for (;;) {
      const int size = zmq_recv(socket, frame, sizeof frame, 0);
      zmq_send(socket, frame, std::size_t(size), 0);
    }
  }
  void* context = zmq_ctx_new();
  void* socket = zmq_socket(context, ZMQ_DEALER);
  const int none = 0;
  zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof none);
  zmq_connect(socket, endpoint.c_str());
  char frame[192] = {};
  std::vector<double> samples;
  for (int i = 0; i < kWarmups + kRounds; ++i) {
    const auto begin = Clock::now();
    zmq_send(socket, frame, sizeof frame, 0);
    zmq_recv(socket, frame, sizeof frame, 0);
    if (i >= kWarmups) samples.push_back(micros_since(begin));
  }
  zmq_close(socket);
  zmq_ctx_term(context);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return percentile(samples, share);
}

/// On a port that was free a moment ago.
std::string free_endpoint() {
  void* context = zmq_ctx_new();
  void* socket = zmq_socket(context, ZMQ_ROUTER);
  char endpoint[64] = {};
  std::size_t size = sizeof endpoint;
  zmq_bind(socket, "tcp://127.0.0.1:*");
  zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &size);
  zmq_close(socket);
  zmq_ctx_term(context);
  return endpoint;
}

void measure_local(const Report& report) {
  Box box;
  auto mesh = open_mesh({}, {}).value();
  std::uint64_t arrived = 0;
  mesh->attach(ActorName("sink"), Incarnation{1}, [&](const EnvelopePtr&) { ++arrived; });
  const Envelope letter = token("asker", "sink");
  const double nanos = nanos_per_call([&] { mesh->send(letter); });
  report.row({"local delivery", nanos, "ns", "letter copied, id filled in, into the mailbox", "<= 1000",
              nanos <= 1000 && arrived > 0});
}

}  // namespace

int main(int argc, char** argv) {
  const Report report(argc, argv);
  measure_codec(report, "TokensProduced", token("worker/1", "gateway/1"), 3000);
  measure_codec(report, "Submit of 2048 tokens", long_prompt(), 10000);
  measure_local(report);

  std::string directory = (std::filesystem::temp_directory_path() / "hop-XXXXXX").string();
  if (::mkdtemp(directory.data()) == nullptr) {
    std::fprintf(stderr, "bench hop: cannot make %s\n", directory.c_str());
    return 1;
  }
  const std::string path = "ipc://" + directory;
  report.row({"raw ZeroMQ round trip p50", raw_round_trip(path + "/raw", 0.5), "us",
              "DEALER to DEALER, 192 bytes", "", true});
  measure_wire(report, "ipc", {{NodeName("a"), path + "/a", {}}, {NodeName("b"), path + "/b", {}}});
  measure_wire(report, "tcp", {{NodeName("a"), free_endpoint(), {}}, {NodeName("b"), free_endpoint(), {}}});
  std::filesystem::remove_all(directory);
  return 0;
}
