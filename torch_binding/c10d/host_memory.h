// Tensors of torch.distributed into memory that the engine reads and writes: on the host, without
// gaps, in logical order. A tensor that lies like that is lent as it is; any other goes through a
// copy.
//
// What is lent are aliases without autograd history or Python object, so that the engine's threads
// free none.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/data_type.h"

namespace fasthorovod::torch_binding {

/// The type under which values travel, and how many units of it one element is: types that the
/// engine does not calculate with (complex, float8) travel as bytes.
struct WireUnit {
  core::DataType type = core::DataType::kUint8;
  std::uint64_t per_element = 1;
};

/// For operations that calculate. ValueError for a tensor whose values cannot be.
WireUnit unit_of_values(const at::Tensor& tensor);

/// For operations that move. ValueError for a tensor without dense values to move.
WireUnit unit_of_bytes(const at::Tensor& tensor);

std::span<const std::byte> input_bytes(const at::Tensor& memory);
std::span<std::byte> output_bytes(const at::Tensor& memory);

/// Collects the memory of one call; kept alive until its operations are done.
class HostMemory final {
 public:
  /// Memory with the values of the tensor.
  at::Tensor read(const at::Tensor& tensor);

  /// Memory whose content becomes the tensor's; with `keep`, it has the tensor's values at first.
  /// ValueError when elements of the tensor share memory.
  at::Tensor write(const at::Tensor& tensor, bool keep);

  /// The same for tensors of one type, one after the other.
  at::Tensor read_all(const std::vector<at::Tensor>& tensors);
  at::Tensor write_all(const std::vector<at::Tensor>& tensors);

  /// Makes the memory that is read a copy if it overlaps the one written.
  at::Tensor apart(at::Tensor read, const at::Tensor& written);

  /// After success: results that lie elsewhere go where they belong.
  void copy_out() const;

 private:
  at::Tensor keep(at::Tensor memory);

  std::vector<std::pair<at::Tensor, at::Tensor>> copies_;  // target, source
  std::vector<at::Tensor> all_;
};

}  // namespace fasthorovod::torch_binding
