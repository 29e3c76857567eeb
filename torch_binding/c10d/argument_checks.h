// What every operation of torch.distributed asks of its arguments. Each check throws a ValueError
// with a sentence that says what was given and what is allowed; `what` is the operation, as the
// user called it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fasthorovod::torch_binding {

/// The one tensor of a list that torch passes for a single tensor.
const at::Tensor& only(const std::vector<at::Tensor>& tensors, const char* what);

/// True for layouts that leave values out.
bool is_sparse(const at::Tensor& tensor);

/// Input and output hold values of one type.
void check_same_type(const at::Tensor& a, const at::Tensor& b);

/// A list has one tensor for each of `size` ranks.
void check_count(std::size_t given, int size, const char* what);

/// `whole` has as many elements as `size` times `part`, of the same type.
void check_parts(const at::Tensor& whole, const at::Tensor& part, int size, const char* what);

/// Tags of messages are not negative: those are this library's own.
std::uint32_t checked_tag(int tag, const char* what);

}  // namespace fasthorovod::torch_binding
