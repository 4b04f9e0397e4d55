// Writes safetensors files, right ones and wrong ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sangam::tests {

/// The length of `header`, `header` and `data`, whatever they say.
inline std::string shard_of(std::string_view header, std::string_view data) {
  std::string file;
  for (int shift = 0; shift < 64; shift += 8)
    file += static_cast<char>(std::uint64_t{header.size()} >> shift & 0xff);
  return file.append(header).append(data);
}

struct Tensor {
  std::string name;
  std::vector<std::int64_t> shape;
  char fill = 0;  ///< Every byte of it.
  std::string dtype = "BF16";
  std::size_t element_bytes = 2;
};

/// A right file that holds the tensors one after the other.
inline std::string shard_of(const std::vector<Tensor>& tensors) {
  std::string header = "{";
  std::string data;
  for (const Tensor& tensor : tensors) {
    std::size_t bytes = tensor.element_bytes;
    std::string shape;
    for (const std::int64_t dimension : tensor.shape) {
      bytes *= static_cast<std::size_t>(dimension);
      shape += (shape.empty() ? "" : ",") + std::to_string(dimension);
    }
    header += (header.size() > 1 ? ",\"" : "\"") + tensor.name + "\":{\"dtype\":\"" + tensor.dtype +
              "\",\"shape\":[" + shape + "],\"data_offsets\":[" + std::to_string(data.size()) + "," +
              std::to_string(data.size() + bytes) + "]}";
    data.append(bytes, tensor.fill);
  }
  return shard_of(header + "}", data);
}

}  // namespace sangam::tests
