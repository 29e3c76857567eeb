#include "torch_binding/c10d/argument_checks.h"

#include <c10/util/Exception.h>

namespace fasthorovod::torch_binding {

const at::Tensor& only(const std::vector<at::Tensor>& tensors, const char* what) {
  TORCH_CHECK_VALUE(tensors.size() == 1, what, ": one tensor is expected, not ", tensors.size());
  return tensors.front();
}

bool is_sparse(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() != at::kStrided && tensor.layout() != at::kMkldnn;
}

void check_same_type(const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK_VALUE(a.scalar_type() == b.scalar_type(),
                    "input and output must be of one type, but are ", a.scalar_type(), " and ",
                    b.scalar_type());
}

void check_count(std::size_t given, int size, const char* what) {
  TORCH_CHECK_VALUE(given == static_cast<std::size_t>(size), what, ": a tensor for each of the ",
                    size, " ranks is expected, not ", given);
}

void check_parts(const at::Tensor& whole, const at::Tensor& part, int size, const char* what) {
  check_same_type(whole, part);
  TORCH_CHECK_VALUE(whole.numel() == part.numel() * size, what, ": the whole has ", whole.numel(),
                    " elements, which is not ", size, " times the ", part.numel(), " of a part");
}

std::uint32_t checked_tag(int tag, const char* what) {
  TORCH_CHECK_VALUE(tag >= 0, what, ": tag ", tag, " is negative");
  return static_cast<std::uint32_t>(tag);
}

}  // namespace fasthorovod::torch_binding
