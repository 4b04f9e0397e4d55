// Calls are timed where they are made: in a copy of the driver's table, so what is measured is what a device
// does. The reference of a copy is one block of the same bytes, by one call, in the same run on the same
// memory.
#include "bench/gpu_check/device_bench.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "gpu/device/cuda/cuda_context.hpp"
#include "gpu/device/cuda/cuda_device.hpp"

namespace sangam {
namespace {

constexpr std::int64_t kPage = 2 << 20;

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// The seconds that each call has taken so far, by its symbol.
using Spent = std::map<std::string, double>;

template <class Signature>
void time_calls(CudaDriver::Call<Signature>& call, double& seconds) {
  call = [&seconds, untimed = std::move(call)](auto... arguments) {
    const Stopwatch watch;
    const auto answer = untimed(arguments...);
    seconds += watch.seconds();
    return answer;
  };
}

/// For one thread. `spent` outlives the table.
std::shared_ptr<const CudaDriver> timed(const CudaDriver& driver, Spent& spent) {
  auto table = std::make_shared<CudaDriver>(driver);
  for_each_call(*table, [&](auto& call, const char* symbol) { time_calls(call, spent[symbol]); });
  return table;
}

Result<std::unique_ptr<CudaDevice>> pool(std::shared_ptr<const CudaDriver> driver, Pages pages) {
  return CudaDevice::create(std::move(driver),
                            {.ordinal = 0, .size = Bytes(pages.count() * kPage), .page = Bytes(kPage)});
}

using Row = std::function<void(const BenchRow&)>;

/// One run over one machine's device.
class DeviceBench {
 public:
  DeviceBench(std::shared_ptr<const CudaDriver> driver, const DeviceBenchSizes& sizes, Row row)
      : driver_(std::move(driver)), sizes_(sizes), row_(std::move(row)), timed_(timed(*driver_, spent_)) {}

  /// Making, sharing, importing and ending, by the page of 2 MiB.
  Result<void> pages() {
    forget();
    auto device = pool(timed_, sizes_.pages);
    if (!device) return device.error();
    by_page("create a page", "cuMemCreate", "A100: 193 (kvcached)");
    by_page("map a page", "cuMemMap", "A100: 1.5 (kvcached)");
    by_page("set access of all pages in one call, a page", "cuMemSetAccess", "");
    if (auto mapped = spans_of_one_page(**device); !mapped) return mapped;
    if (auto shared = shared_pages(**device); !shared) return shared;
    forget();
    device->reset();
    by_page("unmap a page", "cuMemUnmap", "A100: 26 (kvcached)");
    by_page("release a page", "cuMemRelease", "");
    return {};
  }

  /// Both ways and within the device, in pages that lie scattered, beside one block.
  Result<void> copies() {
    auto device = pool(driver_, sizes_.pages * 2);
    if (!device) return device.error();
    const std::int64_t bytes = sizes_.pages.count() * kPage;
    auto buffer = (*device)->host_buffer(Bytes(bytes));
    if (!buffer) return buffer.error();
    std::byte* host = (*buffer)->bytes().data();
    std::byte* lower = (*device)->arena().base;
    std::byte* upper = lower + bytes;
    // Pages that nobody has touched yet would cost more the first time.
    const CopyPiece warm[] = {{lower, host, std::size_t(bytes)}, {upper, host, std::size_t(bytes)}};
    if (auto warmed = (*device)->copy(warm); !warmed) return warmed;
    if (auto in = copy(**device, "host to device", lower, host); !in) return in;
    if (auto out = copy(**device, "device to host", host, lower); !out) return out;
    return copy(**device, "device to device", upper, lower);
  }

  /// A pool of 1 GiB (or as many pages as all else takes), and one of nearly all memory.
  Result<void> pools() {
    if (auto small = whole_pool(sizes_.pages); !small) return small;
    auto context = CudaContext::open(driver_, 0);
    if (!context) return context.error();
    if (auto current = (*context)->make_current(); !current) return current;
    std::size_t free = 0;
    std::size_t total = 0;
    if (const CUresult code = driver_->mem_get_info(&free, &total); code != CUDA_SUCCESS)
      return (*context)->failure(code, "cuMemGetInfo", "", "check the driver");
    return whole_pool(Pages(std::int64_t(double(free) * sizes_.memory_share) / kPage));
  }

 private:
  void forget() {
    for (auto& [symbol, seconds] : spent_) seconds = 0.0;
  }

  void by_page(const char* what, const char* symbol, const char* reference) {
    row_({std::string(what) + " (" + symbol + ")", spent_.at(symbol) / double(sizes_.pages.count()) * 1e6,
          "us", reference, "", true});
  }

  Result<void> spans_of_one_page(CudaDevice& device) {
    forget();
    const Stopwatch watch;
    for (std::int64_t page = 0; page < sizes_.pages.count(); ++page) {
      const PageExtent one{PageId(page), Pages{1}};
      if (auto span = device.map({&one, 1}, Access::read); !span) return span.error();
    }
    row_({"a span of one page, made and ended", watch.seconds() / double(sizes_.pages.count()) * 1e6, "us",
          "", "", true});
    by_page("set access of one page", "cuMemSetAccess", "A100: 36 (kvcached)");
    return {};
  }

  Result<void> shared_pages(CudaDevice& device) {
    const PageExtent all{PageId{0}, sizes_.pages};
    forget();
    const auto shared = device.share({&all, 1});
    if (!shared) return shared.error();
    if (auto imported = device.import(*shared, Access::read); !imported) return imported.error();
    by_page("export a page as a descriptor", "cuMemExportToShareableHandle", "");
    by_page("import a page from a descriptor", "cuMemImportFromShareableHandle", "");
    return {};
  }

  /// The seconds of the median round.
  Result<double> seconds_of(CudaDevice& device, std::span<const CopyPiece> pieces) const {
    std::vector<double> rounds;
    for (int i = 0; i < sizes_.rounds; ++i) {
      const Stopwatch watch;
      if (auto copied = device.copy(pieces); !copied) return copied.error();
      rounds.push_back(watch.seconds());
    }
    return median(std::move(rounds));
  }

  Result<void> copy(CudaDevice& device, const std::string& way, std::byte* to, const std::byte* from) {
    const auto bytes = std::size_t(sizes_.pages.count() * kPage);
    const CopyPiece block{to, from, bytes};
    const auto at_best = seconds_of(device, {&block, 1});
    if (!at_best) return at_best.error();
    const auto in_pages = seconds_of(device, scattered(to, from));
    if (!in_pages) return in_pages.error();
    const double share = *at_best / *in_pages;
    row_({way + ", one block", double(bytes) / *at_best / 1e9, "GB/s", "", "", true});
    row_({way + ", in scattered pages of 2 MiB", double(bytes) / *in_pages / 1e9, "GB/s", "", "", true});
    row_({way + ", scattered pages as a share of one block", share, "", "one block, in this run: 1", ">= 0.9",
          share >= 0.9});
    return {};
  }

  /// Page i goes where page i * 7 mod n lies: never beside the one before. 7 must not divide n.
  [[nodiscard]] std::vector<CopyPiece> scattered(std::byte* to, const std::byte* from) const {
    const std::int64_t count = sizes_.pages.count();
    const std::int64_t step = std::gcd(count, std::int64_t{7}) == 1 ? 7 : 1;
    std::vector<CopyPiece> pieces;
    for (std::int64_t i = 0; i < count; ++i)
      pieces.push_back({to + i * step % count * kPage, from + i * kPage, std::size_t(kPage)});
    return pieces;
  }

  Result<void> whole_pool(Pages pages) {
    const std::string which =
        "a pool of " + Report::number(double(pages.count()) * kPage / (1 << 30)) + " GiB, ";
    const Stopwatch making;
    auto device = pool(driver_, pages);
    if (!device) return device.error();
    row_({which + "made", making.seconds() * 1e3, "ms", "", "", true});
    const Stopwatch ending;
    device->reset();
    row_({which + "ended", ending.seconds() * 1e3, "ms", "", "", true});
    return {};
  }

  std::shared_ptr<const CudaDriver> driver_;
  DeviceBenchSizes sizes_;
  Row row_;
  Spent spent_;
  std::shared_ptr<const CudaDriver> timed_;
};

}  // namespace

Result<void> measure_device(std::shared_ptr<const CudaDriver> driver, const DeviceBenchSizes& sizes,
                            Row row) {
  DeviceBench bench(std::move(driver), sizes, std::move(row));
  if (auto pages = bench.pages(); !pages) return pages;
  if (auto copies = bench.copies(); !copies) return copies;
  return bench.pools();
}

}  // namespace sangam
