// Memory in huge pages, where a worker's pool lies and where memory is read fastest.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>

namespace sangam {

/// Advice only: a kernel that has no huge pages gives small ones. What is smaller than one is not asked for.
template <class T>
struct HugePages {
  using value_type = T;
  static constexpr std::align_val_t kPage{std::size_t{1} << 21};

  HugePages() = default;
  template <class Other>
  HugePages(const HugePages<Other>&) {}

  [[nodiscard]] T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (bytes < std::size_t(kPage)) return static_cast<T*>(::operator new(bytes));
    void* memory = ::operator new(bytes, kPage);
    (void)::madvise(memory, bytes / std::size_t(kPage) * std::size_t(kPage), MADV_HUGEPAGE);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) {
    if (count * sizeof(T) < std::size_t(kPage)) return ::operator delete(memory);
    ::operator delete(memory, kPage);
  }
  bool operator==(const HugePages&) const = default;
};

}  // namespace sangam
