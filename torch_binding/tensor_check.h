// Which tensors can travel, and under which type.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "core/data_type.h"
#include "core/result.h"

namespace fasthorovod::torch_binding {

/// The wire type of a tensor, or kInvalidArgument with a sentence that names what is not supported
/// about it and what is: sparse, quantized, complex and float8 tensors, and devices that values
/// cannot be copied from.
core::Result<core::DataType> wire_type(const at::Tensor& tensor);

/// False when two elements may share memory (an expanded tensor): such a tensor cannot be written
/// in place.
bool elements_are_apart(const at::Tensor& tensor);

/// Whether the rules that delay updates can work on the tensor's own memory; else kInvalidArgument
/// with a sentence that names the tensor and says what it must be.
core::Status check_delayed(const std::string& name, const at::Tensor& tensor);

}  // namespace fasthorovod::torch_binding
