#include "torch_binding/c10d/block_sizes.h"

#include <c10/util/Exception.h>

#include <algorithm>

#include "torch_binding/c10d/argument_checks.h"

namespace fasthorovod::torch_binding {

std::vector<std::uint64_t> block_sizes(const std::vector<at::Tensor>& tensors, WireUnit unit) {
  std::vector<std::uint64_t> sizes;
  sizes.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    sizes.push_back(static_cast<std::uint64_t>(tensor.numel()) * unit.per_element);
  }
  const bool equal = std::ranges::all_of(sizes, [&](auto size) { return size == sizes.front(); });
  if (equal) sizes.clear();
  return sizes;
}

std::vector<std::uint64_t> split_sizes(const at::Tensor& tensor, const std::vector<int64_t>& splits,
                                       int size, WireUnit unit, const char* what) {
  if (splits.empty()) {
    TORCH_CHECK_VALUE(
        tensor.numel() % size == 0 && (tensor.dim() == 0 || tensor.size(0) % size == 0), what,
        ": a tensor of shape ", tensor.sizes(), " does not divide among ", size,
        " ranks along its first dimension");
    return {};
  }
  check_count(splits.size(), size, what);
  std::int64_t sum = 0;
  for (const std::int64_t split : splits) {
    TORCH_CHECK_VALUE(split >= 0, what, ": a split size is negative");
    sum += split;
  }
  const std::int64_t rows = tensor.dim() == 0 ? 1 : tensor.size(0);
  TORCH_CHECK_VALUE(sum == rows, what, ": the split sizes add up to ", sum, ", not to the ", rows,
                    " of the first dimension");
  const auto row = rows == 0 ? 0 : static_cast<std::uint64_t>(tensor.numel() / rows);
  std::vector<std::uint64_t> sizes;
  sizes.reserve(splits.size());
  for (const std::int64_t split : splits) {
    sizes.push_back(static_cast<std::uint64_t>(split) * row * unit.per_element);
  }
  return sizes;
}

}  // namespace fasthorovod::torch_binding
